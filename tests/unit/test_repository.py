"""What the repository promises about itself: sizes, names, front pages, no trace of a machine."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOMS = ROOT / "src" / "isthmus"
MADE = {".git", ".venv", ".cache", "__pycache__", ".hypothesis", "dist", "build"}
FILE_LIMIT = 600
FUNCTION_LIMIT = 60

# Written so that this file does not name what it looks for.
TRACES = {
    "a registry's host": r"(pypi|pythonhosted|npmjs|proxy[.]golang)[.](org|com)|crates[.]io",
    "an index": r"--(extra-)?index-[u]rl|--find-[l]inks",
    "a path of somebody's machine": r"(?<![\w.~-])/([w]ork|[r]oot)/",
    "notes from outside the project": r"\b[s]hared/(design|facts|cases|seeds)\b",
    "a name that says nothing": r"(?<=src/isthmus/)(utils|helpers|common|misc)\b",
}


def files(suffixes: set[str] | None = None) -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        within = path.relative_to(ROOT)
        if any(part in MADE or part.endswith("_cache") for part in within.parts):
            continue
        if path.is_file() and (suffixes is None or path.suffix in suffixes):
            yield path


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


SOURCES = [path for path in files({".py", ".pyi"}) if not path.stem.endswith("_pb2")]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_fits_in_a_head(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LIMIT


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_functions_fit_on_a_page(path: Path) -> None:
    long = [
        f"{node.name}: {length} lines"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LIMIT
    ]
    assert long == []


def rooms() -> set[str]:
    found = {path.parent.name for path in ROOMS.glob("*/__init__.py")}
    return found | {path.stem for path in ROOMS.glob("*.py") if path.stem != "__init__"}


def layers() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (
        one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    )
    return {word.strip("() ") for layer in contract["layers"] for word in layer.split("|")}


def test_every_room_has_a_layer() -> None:
    assert rooms() <= layers()


def test_the_pure_rooms_stand_in_the_contract_that_keeps_them_so() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (pure,) = (
        one
        for one in settings["tool"]["importlinter"]["contracts"]
        if one["type"] == "forbidden" and "asyncio" in one["forbidden_modules"]
    )
    wanted = {"errors", "engine", "model", "ir", "mesh", "dialects"}
    assert {f"isthmus.{room}" for room in wanted} <= set(pure["source_modules"])
    assert "allow_indirect_imports" not in pure


def test_unit_tests_mirror_the_rooms() -> None:
    tested = {path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir()}
    assert tested - {"__pycache__", "bench", "scripts"} <= rooms()


@pytest.mark.parametrize("path", sorted(ROOMS.glob("**/__init__.py")), ids=name)
def test_a_package_opens_with_its_front_page(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("what", TRACES)
def test_nothing_names(what: str) -> None:
    trace = re.compile(TRACES[what])
    found = []
    for path in files():
        text = f"{name(path)}\n{path.read_bytes().decode(errors='replace')}"
        found += [f"{name(path)}: {match.group()}" for match in trace.finditer(text)]
    assert found == []

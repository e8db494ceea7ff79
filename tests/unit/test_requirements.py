"""The locks: exact, hashed, naming no host, in step with pyproject.toml; and each reasoned for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = [one for group in PROJECT["optional-dependencies"].values() for one in group]


def plain(requirement: str) -> str:
    """The name in `Name[extra]>=1; marker`, as locks write it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def pins(lock: Path) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9-]+)(?:\[[a-z,-]+\])?==([^ \\]+)", lock.read_text(), re.MULTILINE)
    return dict(found)


def wanted(source: Path) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in source.read_text().splitlines())
    return {plain(line) for line in lines if line and not line.startswith("-")}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_hashes_and_nothing_names_a_host(lock: Path) -> None:
    text = lock.read_text()
    entries = re.split(r"\n(?=[a-z])", text.strip())
    assert len(entries) == len(pins(lock)) > 0
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|file:|\.(?:com|org|net|io)\b", text) == []


def test_the_runtime_lock_has_all_that_the_project_asks_for() -> None:
    asked = {plain(one) for one in PROJECT["dependencies"]}
    assert asked <= set(pins(ROOT / "requirements" / "runtime.txt"))


@pytest.mark.parametrize("source", ["dev", "bootstrap"])
def test_a_lock_has_all_that_its_source_asks_for(source: str) -> None:
    folder = ROOT / "requirements"
    assert wanted(folder / f"{source}.in") <= set(pins(folder / f"{source}.txt"))


def test_the_locks_agree_where_they_meet() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        for package, version in pins(lock).items():
            versions.setdefault(package, set()).add(version)
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


def test_every_dependency_has_a_decision() -> None:
    told = "\n".join(path.read_text() for path in (ROOT / "docs" / "decisions").glob("*.md"))
    names = {plain(one) for one in (*PROJECT["dependencies"], *EXTRAS)}
    names |= wanted(ROOT / "requirements" / "dev.in")
    assert sorted(package for package in names if f"`{package}`" not in told) == []


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(path.name[:4] for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == [f"{number:04}" for number in range(len(numbers))]

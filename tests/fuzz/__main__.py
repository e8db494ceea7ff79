"""`make fuzz`: each target for a while, with inputs that coverage leads (atheris, libFuzzer).

    python -m tests.fuzz [--seconds N] [--keep] [TARGET ...]

What was found interesting is kept in .cache/fuzz/TARGET and is where the next run begins; `--keep`
puts short ones of them into tests/fuzz/corpus, which every `make test` replays.
An input
that ends a target is written beside it, as crash-...; give it to `python -m tests.fuzz --one FILE
TARGET` for the traceback. An input that takes ten seconds, or a process of a gigabyte, is a fault
too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.fuzz.corpus import keep, kept

CACHE = Path(".cache") / "fuzz"
PER_INPUT = 10
"""Seconds."""
MEMORY = 1024
"""MiB of one process: there is growth where a night's run reaches it."""
LONGEST = 4096
"""Bytes of one input."""
KEPT = 100
SHORT = 600
"""How many inputs of a target are kept in the repository, and how long one may be."""


def fuzz(name: str, seconds: int) -> None:
    """Run one target in this process; it ends with the process."""
    import atheris  # noqa: PLC0415 - an own requirements file: only who fuzzes has it

    with atheris.instrument_imports(include=["isthmus"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - what is imported here is traced
    target = TARGETS[name]
    corpus = CACHE / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate((*target.seeds, *kept(name))):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = CACHE / f"{name}.words"
    words.write_text("".join(f'"{word.replace(chr(34), "")}"\n' for word in target.words))
    options = [
        f"-max_total_time={seconds}", f"-timeout={PER_INPUT}", f"-rss_limit_mb={MEMORY}",
        f"-max_len={LONGEST}", f"-dict={words}", f"-artifact_prefix={CACHE}/{name}-",
        "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], target.make())
    atheris.Fuzz()


def distil(name: str) -> list[bytes]:
    """Short inputs that reached something new when they were found: KEPT of them, of any length."""
    found = {path.read_bytes() for path in (CACHE / name).iterdir() if path.is_file()}
    short = sorted((each for each in found if len(each) <= SHORT), key=lambda e: (len(e), e))
    step = max(1, -(-len(short) // KEPT))
    return short[::step]


def main() -> int:
    """All targets, or those that are named, each in a process of its own."""
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - a fuzzing process imports it traced

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true", help="put what was found into the corpus")
    parser.add_argument("--one", type=Path, help="run a target with this input alone")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    names = asked.targets or list(TARGETS)
    if asked.one is not None:
        for name in names:
            TARGETS[name].make()(asked.one.read_bytes())
        return 0
    failed = [name for name in names if not _run(name, asked.seconds)]
    for name in names if asked.keep else ():
        keep(name, distil(name))
    print("found something:" if failed else "nothing found", *failed)
    return 1 if failed else 0


def _run(name: str, seconds: int) -> bool:
    print(f"---- {name}, {seconds} s", flush=True)
    code = f"from tests.fuzz.__main__ import fuzz; fuzz({name!r}, {seconds})"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())

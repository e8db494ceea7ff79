"""Hold each room to its share of covered lines; the shares stand in pyproject.toml.

Reads the data that `pytest --cov` has left, prints one line per room, exits 1 if one is below.
"""

from __future__ import annotations

import io
import sys
import tomllib
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Print what each room has; return the exit code."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    coverage = Coverage(config_file=str(ROOT / "pyproject.toml"))
    coverage.load()
    short = 0
    for room, wanted in settings["tool"]["isthmus"]["coverage"].items():
        lines = io.StringIO()
        covered = coverage.report(include=[f"*/src/isthmus/{room}/*"], file=lines)
        print(f"coverage of {room}: {covered:.1f} % of lines, at least {wanted} %")
        if covered < wanted:
            short += 1
            print(lines.getvalue())
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())

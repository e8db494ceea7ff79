"""Run the benches that were named, or all, and print their figures as one table."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Sequence

import bench
from bench.table import Figure, table


def modules() -> list[str]:
    """The names of the benches."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(name for name in found if name != "table" and not name.startswith("_"))


def main(wanted: Sequence[str]) -> int:
    """Run them one after the other; a bench that fails is told and the others still run."""
    known, figures, failed = modules(), list[Figure](), 0
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        print(f"bench: no such bench: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    for name in wanted or known:
        print(f"bench: {name} ...", file=sys.stderr, flush=True)
        try:
            figures.extend(importlib.import_module(f"bench.{name}").figures())
        except Exception:  # noqa: BLE001  # whatever one bench does, the others are wanted too
            traceback.print_exc()
            failed += 1
    print(table(figures))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m isthmus.lab.faces NAME`; without a name FACES_SERVICE says it, as in containers."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

SERVICES = ("gui", "face", "smiley", "color", "load")


def main(argv: Sequence[str]) -> int:
    """Run a service; its exit code."""
    named = [word for word in argv[:1] if not word.startswith("-")]
    asked = named[0] if named else "workload"
    if asked == "workload":
        asked = os.environ.get("FACES_SERVICE", "")
    service = asked.rstrip("0123456789")  # smiley2 and color3 are what their names begin with
    if service not in SERVICES:
        known = ", ".join(SERVICES)
        sys.stderr.write(
            f"faces: no service {asked!r}; name one of {known}, or set FACES_SERVICE\n"
        )
        return 2
    run = import_module(f"isthmus.lab.faces.{service}").main
    return int(run(argv[len(named) :]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

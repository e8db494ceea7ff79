"""Golden files: the expected text stands beside the test, one readable file per case.

`golden("service.yaml", text)` in `tests/golden/test_endpoints.py` compares `text` with
`tests/golden/test_endpoints/service.yaml`. `make golden` rewrites the files; the diff is reviewed.
"""

from __future__ import annotations

import difflib
from pathlib import Path


class Golden:
    """The golden files of one test module."""

    def __init__(self, module: Path, *, rewrite: bool) -> None:
        self.folder = module.parent / module.stem
        self._rewrite = rewrite
        self._faults: list[str] = []

    def __call__(self, name: str, text: str) -> None:
        """Hold `text` against the file `name`; every difference is told when the test ends."""
        path = self.folder / name
        if self._rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        if not path.exists():
            self._faults.append(f"{path} is missing; `make golden` writes it")
            return
        held = path.read_text()
        if held != text:
            diff = difflib.unified_diff(
                held.splitlines(), text.splitlines(), str(path), "now", lineterm=""
            )
            self._faults.append("\n".join(diff) or f"{path}: only the line ends differ")

    def close(self) -> None:
        assert not self._faults, "\n\n".join(self._faults)

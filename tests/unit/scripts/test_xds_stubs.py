"""The committed stubs are what the script makes: `make proto` writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent


def test_stubs_are_up_to_date(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "xds_stubs.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=60)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.pyi")}
    assert made
    for path, text in made.items():
        assert (ROOT / "stubs" / path).read_bytes() == text, path

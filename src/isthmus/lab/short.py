"""Names of Unix sockets, which the kernel wants short. Light: all `isthmus lab` commands pass."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def short(path: Path) -> Iterator[str]:
    """A name for a Unix socket that is short enough, however deep its folder lies."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

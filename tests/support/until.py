"""Waiting for something in another process, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.05


def until(look: Callable[[], T | None], seconds: float, why: Callable[[], str]) -> T:
    """Look again and again until there is something; fails with `why()` after `seconds`."""
    end = time.monotonic() + seconds  # noqa: TID251  # another process' time
    while (found := look()) is None:
        assert time.monotonic() < end, why()  # noqa: TID251
        time.sleep(PAUSE)  # noqa: TID251
    return found

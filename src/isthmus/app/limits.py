"""What the process asks of its machine and of its interpreter."""

from __future__ import annotations

import gc
import resource


def raise_file_limit() -> None:
    """Use all the file descriptors we may: each watch and stream holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def settle_memory() -> None:
    """After the first sync: what is there stays, so the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)

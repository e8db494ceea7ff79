"""What the process asks of its machine and of its interpreter."""

from __future__ import annotations

import gc
import resource
import sys


def raise_file_limit() -> None:
    """Use all the file descriptors we may: each watch and stream holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files() -> int:
    """How many files we may have open at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def let_threads_in() -> None:
    """Let a waiting thread have the interpreter within a millisecond.

    Longer than a slice of work in the loop, and the thread that writes the store may starve: see
    docs/decisions/0019-sqlite-is-a-log-memory-is-read.md.
    """
    sys.setswitchinterval(0.001)


def settle_memory() -> None:
    """After the first sync: what is there stays, so the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)

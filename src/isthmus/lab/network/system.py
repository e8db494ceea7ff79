"""The kernel's calls that Python 3.11 lacks: namespaces and mounts.

Everything here acts on the calling *thread* alone (unshare, setns) or on its mount namespace.
"""

from __future__ import annotations

import ctypes
import os

CLONE_FS = 0x200
CLONE_NEWNS = 0x20000
CLONE_NEWUTS = 0x4000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)
_libc.sethostname.argtypes = (ctypes.c_char_p, ctypes.c_size_t)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    """Give the calling thread namespaces of its own."""
    _checked(_libc.unshare(flags), "unshare")


def setns(handle: int, kind: int) -> None:
    """Move the calling thread into the namespace behind an open file."""
    _checked(_libc.setns(handle, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, as the system call of this name does."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), flags, data.encode() or None
    )
    _checked(result, target)


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Show `source` at `target` too, with what is mounted below it."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | _kept_flags(target))


def _kept_flags(target: str) -> int:
    """Flags that a user namespace may not take off: they must be said again on a remount."""
    held = os.statvfs(target).f_flag
    return held & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)


def sethostname(name: str) -> None:
    """The name of the machine, as the calling thread's UTS namespace has it."""
    raw = name.encode()[:64]
    _checked(_libc.sethostname(raw, len(raw)), "sethostname")


def die_with_parent(signal: int) -> None:
    """Have the kernel send this process `signal` when the thread that started it ends."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def net_namespace() -> int:
    """An open handle of the calling thread's network namespace."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def mount_namespace() -> int:
    """An open handle of the calling thread's mount namespace."""
    return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

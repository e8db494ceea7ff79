"""Leaving the machine's namespaces for the lab's own, and the promise that nothing outlives it.

The lab is one PID namespace: when its first process ends, however it ends, the kernel kills every
other, and with the last of them go the mount and network namespaces, links, addresses and rules,
because nothing of it has a name outside. As root this is done directly; without root inside a user
namespace, where this user is root and nobody else exists.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

from isthmus.errors import UserFault
from isthmus.lab.network import system

OWN = system.CLONE_NEWNS | system.CLONE_NEWNET | system.CLONE_NEWPID | system.CLONE_NEWUTS
"""What every lab has for itself."""

SCRATCH = Path("/dev/shm")  # noqa: S108  # the lab mounts its own file system there
"""Memory of the lab, gone with it."""


def enter(main: Callable[[], int]) -> int:
    """Run `main` as the lab inside its own namespaces; return its exit code.

    Must be called by a process with a single thread, which then waits.

    Raises:
        UserFault: this machine lets nobody make namespaces, not even rootless; says what to do.
    """
    system.die_with_parent(signal.SIGKILL)
    _leave()
    first = os.fork()
    if first == 0:
        os._exit(_first_process(main))
    _ignore_signals()
    _, status = os.waitpid(first, 0)
    return os.waitstatus_to_exitcode(status)


def _leave() -> None:
    uid, gid = os.getuid(), os.getgid()
    try:
        if uid == 0:
            try:
                system.unshare(OWN)
            except PermissionError:  # root without its powers, as in most containers
                _rootless(uid, gid)
        else:
            _rootless(uid, gid)
    except OSError as fault:
        raise _impossible(fault) from fault


def _rootless(uid: int, gid: int) -> None:
    system.unshare(system.CLONE_NEWUSER | OWN)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def _impossible(fault: OSError) -> UserFault:
    why = {
        errno.EPERM: "it forbids user namespaces to this user",
        errno.EACCES: "it forbids user namespaces to this user",
        errno.ENOSPC: "its limit of namespaces is reached (sysctl user.max_user_namespaces)",
        errno.EINVAL: "its kernel has no namespaces",
    }.get(fault.errno or 0, fault.strerror or "")
    return UserFault(
        f"this machine does not let a lab have namespaces of its own: {why}; run it as root, or "
        "allow unprivileged user namespaces"
    )


def _first_process(main: Callable[[], int]) -> int:
    """Process 1 of the lab: starts the lab, takes in orphans, ends when the lab ends."""
    system.die_with_parent(signal.SIGKILL)
    _mounts()
    lab = os.fork()
    if lab == 0:
        os._exit(main())
    _ignore_signals()
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            return 1
        if ended == lab:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _ignore_signals() -> None:
    """The one who ends a lab talks to the lab itself."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _mounts() -> None:
    """What is mounted from here on is the lab's alone."""
    system.mount("none", "/", flags=system.MS_REC | system.MS_PRIVATE)
    try:
        system.mount("proc", "/proc", "proc", system.MS_NOSUID | system.MS_NODEV)
    except OSError:  # a container that hides parts of /proc; process numbers then are its own
        os.environ["ISTHMUS_LAB_FOREIGN_PROC"] = "1"
    system.mount("tmpfs", str(SCRATCH), "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=1777")

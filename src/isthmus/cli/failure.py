"""How a command says that something went wrong.

One line, `isthmus: error: what and where; what to do next`, and never a traceback: that of a bug
goes into a file whose name is told.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
import traceback
from pathlib import Path

import click

from isthmus import __version__
from isthmus.errors import IsthmusError

MACHINE = frozenset(
    {
        errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO,
        errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    }
)  # fmt: skip
"""What a machine lacks or forbids: nobody's bug, wherever it strikes."""

MANY = 10
"""Causes told of one error; an object with a hundred faults has one fault."""


def usage(fault: click.UsageError) -> int:
    """Wrong words or flags. A bare `isthmus` shows the help and is wrong usage too."""
    if isinstance(fault, click.exceptions.NoArgsIsHelpError):
        fault.show()
        return 2
    _say(_sentence(fault.format_message()))
    command = fault.ctx.command_path if fault.ctx is not None else "isthmus"
    _line(f"Try `{command} --help`.")
    return 2


def refused(fault: IsthmusError) -> int:
    """Something was understood and cannot be."""
    _say(fault.message)
    for cause in fault.causes[:MANY]:
        _line(f"  * {cause.path or '(object)'}: {cause.message}")
    if len(fault.causes) > MANY:
        _line(f"  ... and {len(fault.causes) - MANY} more")
    return 1


def unexpected(fault: Exception) -> int:
    """A group of errors of ours is the first of them; the rest is our fault."""
    known = foreseen(fault)
    if known is not None:
        return refused(known)
    if isinstance(fault, OSError) and fault.errno in MACHINE:
        where = f" ({fault.filename})" if fault.filename else ""
        _say(f"this machine cannot: {fault.strerror}{where}")
        return 1
    return bug(fault)


def bug(fault: Exception) -> int:
    """We are at fault: keep the traceback, tell where."""
    name = secrets.token_hex(4)
    about = f"isthmus {__version__}, python {sys.version}\n{sys.argv}\n"
    report = about + "".join(traceback.format_exception(fault))
    where = _keep(name, report)
    _say(f"internal error {name}: a bug in isthmus; please report it with {where}")
    return 1


def foreseen(fault: BaseException) -> IsthmusError | None:
    """The first of our own errors in a group of nothing else, or None."""
    if isinstance(fault, IsthmusError):
        return fault
    if isinstance(fault, BaseExceptionGroup):
        inner = [foreseen(member) for member in fault.exceptions]
        return inner[0] if all(inner) else None
    return None


def _keep(name: str, report: str) -> Path:
    """Write the report where its owner alone reads it: the state directory, else a temporary."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    for folder in (Path(state) / "isthmus", Path(tempfile.gettempdir())):
        path = folder / f"isthmus-bug-{name}.log"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            continue
        with os.fdopen(handle, "w") as file:
            file.write(report)
        return path
    _line(report)  # no disk at all: better here than lost
    return Path("the text above")


def _sentence(message: str) -> str:
    """Click's messages are sentences; ours begin small and end without a dot."""
    return (message[:1].lower() + message[1:]).removesuffix(".")


def _say(message: str) -> None:
    _line(f"isthmus: error: {message}")


def _line(message: str) -> None:
    click.echo(message, err=True)

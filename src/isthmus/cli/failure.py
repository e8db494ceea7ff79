"""How a command says that something went wrong.

One line, `isthmus: error: what and where; what to do next`, and never a traceback: that of a bug
goes into a file whose name is told.
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
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
    """A group of foreseen errors is the first of them; the rest is our fault.

    Foreseen are errors of ours, what the machine lacks, and a reader that has left.
    """
    leaves = list(_leaves(fault))
    if all(isinstance(leaf, BrokenPipeError) for leaf in leaves) and _unread():
        return _unheard()
    first = leaves[0]
    if not all(map(_foreseen, leaves)):
        return bug(fault)
    if isinstance(first, IsthmusError):
        return refused(first)
    where = f" ({first.filename})" if isinstance(first, OSError) and first.filename else ""
    _say(f"this machine cannot: {getattr(first, 'strerror', first)}{where}")
    return 1


def _unread() -> list[int]:
    """Which of standard output and error are pipes that nobody reads: the kernel says POLLERR."""
    poll = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a stream may be closed, or no file at all
            poll.register(stream.fileno(), 0)
    return [handle for handle, event in poll.poll(0) if event & select.POLLERR]


def _unheard() -> int:
    """Nobody reads any more: `isthmus ... | head` is no failure, and there is nobody to tell.

    What is still to be written goes nowhere, so that the interpreter's last flush finds no fault.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for handle in _unread():
        os.dup2(nowhere, handle)
    os.close(nowhere)
    return 0


def bug(fault: Exception) -> int:
    """We are at fault: keep the traceback, tell where."""
    name = secrets.token_hex(4)
    about = f"isthmus {__version__}, python {sys.version}\n{sys.argv}\n"
    report = about + "".join(traceback.format_exception(fault))
    where = _keep(name, report)
    _say(f"internal error {name}: a bug in isthmus; please report it with {where}")
    return 1


def _leaves(fault: BaseException) -> Iterator[BaseException]:
    """The error, or those that a group of groups holds, in order."""
    if isinstance(fault, BaseExceptionGroup):
        for member in fault.exceptions:
            yield from _leaves(member)
    else:
        yield fault


def _foreseen(fault: BaseException) -> bool:
    return isinstance(fault, IsthmusError) or (
        isinstance(fault, OSError) and fault.errno in MACHINE
    )


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
    """Sentences of Click begin small here, unless with a name, and end without a dot."""
    named = message[1:2].isupper()
    return (message if named else message[:1].lower() + message[1:]).removesuffix(".")


def _say(message: str) -> None:
    _line(f"isthmus: error: {message}")


def _line(message: str) -> None:
    click.echo(message, err=True)

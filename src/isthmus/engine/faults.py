"""What the engine refuses. Every one of these is a bug in the caller, never bad user input."""

from __future__ import annotations

from isthmus.errors import IsthmusError


class EngineError(IsthmusError):
    """Root of the engine's refusals; reason InternalError, because users cannot cause them."""


class BadKey(EngineError):
    """A key holds something that is not str, int, None, an enum, a tuple or a frozen Struct."""


class BadQuery(EngineError):
    """A query is not a module-level function, was called wrongly, or returned a mutable value."""


class InsideQuery(EngineError):
    """What belongs outside queries (commit, read, settle, a scan) was tried inside one."""


class OutsideQuery(EngineError):
    """A query was called like a function where no query is running."""


class BadCommit(EngineError):
    """A commit holds something that is not a change."""


class Cycle(EngineError):
    """A cell reads itself, directly or through others. Loop inside one query with a visited set.

    A query must not catch it: which cell of the circle meets it depends on which was asked first.
    """


class NotListed(EngineError):
    """`names` of a table that was declared without a scope."""


class StaleFork(EngineError):
    """The parent of the fork has committed since; fork again."""


class ClosedWatch(EngineError):
    """The watch was closed."""

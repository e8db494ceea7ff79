"""The incremental database: a spreadsheet for programs.

Facts lie in *tables*; *queries* are plain functions of a view and a key whose reads are noted and
whose values are memoised; a *commit* of changes is one revision, marks what it may have touched and
evaluates nothing; a *watch* names cells somebody cares about, is woken when one may have changed,
and takes the newest values when its owner is ready.

What it is not: it stores nothing on disk, knows no mesh, no threads and no event loop, and has no
scans: a query reads a row, an index, a join or the listed names of a scope, by key.

Its words: table, row, key, index, join; query, cell, read; commit, revision; watch, wake, settle,
take; fork, trace. docs/engine.md teaches them in five minutes.
"""

from isthmus.engine.cell import UNSET
from isthmus.engine.database import Database, Stats
from isthmus.engine.difference import ByIdentity
from isthmus.engine.faults import (
    BadCommit,
    BadKey,
    BadQuery,
    ClosedWatch,
    Cycle,
    EngineError,
    InsideQuery,
    NotListed,
    OutsideQuery,
    StaleFork,
)
from isthmus.engine.fork import Fork
from isthmus.engine.join import OPERATORS, Expression, Join, Labelled, Operator, Selector
from isthmus.engine.query import Query, query
from isthmus.engine.source import Change, Delete, Index, Put, Table
from isthmus.engine.trace import Trace
from isthmus.engine.view import View
from isthmus.engine.watch import Watch

__all__ = [
    "OPERATORS",
    "UNSET",
    "BadCommit",
    "BadKey",
    "BadQuery",
    "ByIdentity",
    "Change",
    "ClosedWatch",
    "Cycle",
    "Database",
    "Delete",
    "EngineError",
    "Expression",
    "Fork",
    "Index",
    "InsideQuery",
    "Join",
    "Labelled",
    "NotListed",
    "Operator",
    "OutsideQuery",
    "Put",
    "Query",
    "Selector",
    "StaleFork",
    "Stats",
    "Table",
    "Trace",
    "View",
    "Watch",
    "query",
]

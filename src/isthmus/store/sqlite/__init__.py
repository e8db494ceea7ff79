"""A store in one SQLite file, for one process.

SQLite is the durable half only: a log of changes that one thread appends to. Everything is read
from memory (`store.timeline`), which is filled from the log when the file is opened. So no reader
waits for a disk or a lock, lists and watches cost no SQL, and the thread makes a handful of SQLite
calls per group of writes: each call gives up the interpreter's lock, and has to win it back from a
busy event loop.

Its words:

- *job*: a transaction on its way to the thread, with the future that waits for it.
- *group*: the jobs that waited; one SQLite transaction, one wait for the disk. Each has its own
  compares, revision and answer.
- *landing*: a durable group arrives in the loop: readers and watchers see it, then its writers
  are answered.
- *row*: one change of one key in the log. A row goes when it is superseded at the floor.
"""

from isthmus.store.sqlite.file import SCHEMA, File
from isthmus.store.sqlite.store import SQLite

__all__ = ["SCHEMA", "File", "SQLite"]

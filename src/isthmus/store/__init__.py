"""Where objects live: records of bytes under keys, revisions, history, watches.

Not here: what objects mean (`mesh`), who may write them (`serve`), what follows from a write
(`controllers`). Everybody who writes goes through `Objects`; everybody who reads in bulk lists once
and watches from there.

Its words:

- *record*: one object as stored, canonical JSON (`store.codec`), and the revision of its last
  change.
- *revision*: the number of a transaction that changed something; Kubernetes' resourceVersion.
- *floor*: the oldest revision that can still be read; what is older is Compacted.
- *cursor*: a watcher's place in the history. It waits there, nothing is queued for it.
- *admission*: a rule that needs more than the object, held in the same transaction as the write.

A new store is one module that passes `tests/contract/test_store.py`.
"""

from isthmus.store.contract import (
    Batch,
    Committed,
    Compare,
    Delete,
    Event,
    Op,
    Page,
    Put,
    Record,
    Refused,
    Store,
    Watch,
)
from isthmus.store.history import History
from isthmus.store.memory import Memory
from isthmus.store.objects import Objects

__all__ = [
    "Batch",
    "Committed",
    "Compare",
    "Delete",
    "Event",
    "History",
    "Memory",
    "Objects",
    "Op",
    "Page",
    "Put",
    "Record",
    "Refused",
    "Store",
    "Watch",
]

"""Object semantics over a store: the one way in for everybody who writes.

The API server, the controllers and other clusters' mirrors write through `Objects`; whoever only
reads uses the store. Not here: what a kind allows (`model`), who may write (`serve`), what follows
from a write (`controllers`).

Its words:

- *change*: a pure step from the stored document to the wanted one, run again if others were faster.
- *admission*: a rule that needs more than the object; it may change the document and add compares
  and writes to the same transaction.
- *marked*: asked to be deleted, but something must happen first (finalizers, grace).
"""

from isthmus.store.objects.objects import ATTEMPTS, MAX_OBJECT, Objects
from isthmus.store.objects.refusals import already_exists, conflict, invalid, not_found
from isthmus.store.objects.terms import (
    ANY,
    Admission,
    AdmissionChain,
    Change,
    Preconditions,
    Proposed,
    Verdict,
    Writer,
    Written,
)

__all__ = [
    "ANY",
    "ATTEMPTS",
    "MAX_OBJECT",
    "Admission",
    "AdmissionChain",
    "Change",
    "Objects",
    "Preconditions",
    "Proposed",
    "Verdict",
    "Writer",
    "Written",
    "already_exists",
    "conflict",
    "invalid",
    "not_found",
]

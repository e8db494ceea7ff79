"""The words of object writes: what is asked, what is proposed to admissions, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from isthmus.model.kind import Document, Kind
from isthmus.store.contract import Compare, Op


class Preconditions(NamedTuple):
    """What must hold of the stored object, or Conflict."""

    uid: str = ""
    revision: int = 0


ANY = Preconditions()


class Proposed(NamedTuple):
    """A write on its way to the store, shown to every admission.

    `old` is None on create, `new` None on removal. A delete that only marks the object (finalizers,
    a Pod's grace) has both, `new` with its deletionTimestamp. `subresource` is "", "status",
    "scale" or "finalize". Neither document may be changed in place.
    """

    kind: Kind
    namespace: str
    name: str
    old: Document | None
    new: Document | None
    subresource: str


class Verdict(NamedTuple):
    """What an admission says.

    Perhaps a changed document (None: leave it; of no effect on a delete), and what the same
    transaction must compare and write besides. A compare that does not hold runs the whole write
    again.
    """

    document: Document | None
    compares: tuple[Compare, ...] = ()
    ops: tuple[Op, ...] = ()
    warnings: tuple[str, ...] = ()


class Admission(Protocol):
    """A rule that needs more than the object.

    The namespace exists, a ClusterIP is free, the graph stays whole.
    """

    async def admit(self, proposed: Proposed) -> Verdict:
        """The verdict, or a UserFault."""
        ...


class Written(NamedTuple):
    """The object as it is now, in the stored version, with its resourceVersion.

    `warnings` are for the writer. `changed`: something was written (or, in a dry run, would be).
    `removed`: the object is gone; `document` is the last that was seen of it.
    """

    document: Document
    revision: int
    warnings: tuple[str, ...] = ()
    changed: bool = True
    removed: bool = False


Change = Callable[[Document], Document]
"""A pure step from the stored document to the wanted one.

It gets a copy of its own, with metadata.resourceVersion, and is run again when somebody else was
faster. A resourceVersion in what it returns is a precondition; empty means none.
"""


class Writer(Protocol):
    """What Objects offers; see its docstrings for the rules (Kubernetes API conventions)."""

    async def create(self, kind: Kind, document: Document, *, dry_run: bool = False) -> Written: ...

    async def update(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Change,
        *,
        subresource: str = "",
        preconditions: Preconditions = ANY,
        dry_run: bool = False,
    ) -> Written: ...

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = ANY,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Written: ...


AdmissionChain = Sequence[Admission]

"""Object semantics over a store: the one way in for everybody who writes (API server, controllers).

SIGNATURES AGREED BETWEEN ROOMS; the store's builder fills them in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from isthmus.model.kind import Document, Kind
from isthmus.store.contract import Compare, Op


class Preconditions(NamedTuple):
    """What must hold of the stored object, or Conflict."""

    uid: str = ""
    revision: int = 0


class Proposed(NamedTuple):
    """A write on its way to the store, shown to every admission. `old` is None on create, `new` None on removal.

    `subresource` is "", "status" or "scale".
    """

    kind: Kind
    namespace: str
    name: str
    old: Document | None
    new: Document | None
    subresource: str


class Verdict(NamedTuple):
    """What an admission says: perhaps a changed document, and what the same transaction must compare and write."""

    document: Document | None
    compares: tuple[Compare, ...] = ()
    ops: tuple[Op, ...] = ()
    warnings: tuple[str, ...] = ()


class Admission(Protocol):
    """A rule that needs more than the object: the namespace exists, a ClusterIP is free, the graph stays whole."""

    async def admit(self, proposed: Proposed) -> Verdict:
        """The verdict, or a UserFault."""
        ...


class Written(NamedTuple):
    """The object as it is now (stored version), its revision, and warnings for the writer."""

    document: Document
    revision: int
    warnings: tuple[str, ...] = ()
    changed: bool = True


Change = Callable[[Document], Document]
"""A pure step from the stored document to the wanted one; run again when somebody else was faster."""


class Writer(Protocol):
    """What Objects offers; see its docstrings for the rules (Kubernetes API conventions)."""

    async def create(self, kind: Kind, document: Document, *, dry_run: bool = False) -> Written: ...

    async def update(
        self, kind: Kind, namespace: str, name: str, change: Change, *,
        subresource: str = "", preconditions: Preconditions = Preconditions(), dry_run: bool = False,
    ) -> Written: ...  # fmt: skip

    async def delete(
        self, kind: Kind, namespace: str, name: str, *,
        preconditions: Preconditions = Preconditions(), propagation: str = "Background",
        grace_seconds: int | None = None, dry_run: bool = False,
    ) -> Written: ...  # fmt: skip


AdmissionChain = Sequence[Admission]

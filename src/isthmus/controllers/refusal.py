"""How the admissions here refuse: Kubernetes' sentences, each fault with its path."""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.errors import Cause, Invalid, Subject
from isthmus.store.objects import Proposed, invalid


def subject(proposed: Proposed) -> Subject:
    """What the write is about."""
    kind = proposed.kind
    return Subject(kind.group, kind.plural, kind.name, proposed.name)


def refuse(proposed: Proposed, causes: Iterable[Cause]) -> Invalid:
    """The refusal that names all causes."""
    return invalid(proposed.kind, proposed.name, tuple(causes))

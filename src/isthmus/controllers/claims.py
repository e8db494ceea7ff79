"""Who controls what: adopting what a selector selects, releasing what it no longer does.

Kubernetes' rule ("controllerRef"): an object with no controller that matches is taken; one of ours
that stopped matching is let go; one of somebody else is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from isthmus.controllers.steps import JSON, Update, canonical
from isthmus.model.key import ObjectKey
from isthmus.model.meta import Meta


class HasMeta(Protocol):
    """A row of anything."""

    @property
    def metadata(self) -> Meta: ...


R = TypeVar("R", bound=HasMeta)


class Claim(NamedTuple, Generic[R]):
    """What is controlled now, in order, and the steps that correct it."""

    mine: dict[ObjectKey, R]
    adopted: tuple[Update, ...]
    released: tuple[Update, ...]


def controller_uid(meta: Meta) -> str:
    """The uid of the controlling owner, or ""."""
    return next((owner.uid for owner in meta.owner_references if owner.controller), "")


def claim(
    resource: str,
    owner: Mapping[str, JSON],
    selected: Iterable[ObjectKey],
    owned: Iterable[ObjectKey],
    get: Callable[[ObjectKey], R | None],
    *,
    adopting: bool,
) -> Claim[R]:
    """Compare what the owner selects with what it controls; a dying owner adopts nothing."""
    chosen = frozenset(selected)
    mine: dict[ObjectKey, R] = {}
    adopted: list[Update] = []
    released: list[Update] = []
    for key in sorted(chosen.union(owned)):
        row = get(key)
        if row is None:
            continue
        manager, going = controller_uid(row.metadata), row.metadata.deletion_timestamp
        if manager == owner["uid"] and key in chosen:
            mine[key] = row
        elif manager == owner["uid"] and not going:
            released.append(_owners(resource, key, row, {"uid": owner["uid"], "$patch": "delete"}))
        elif not manager and not going and adopting and key in chosen:
            adopted.append(_owners(resource, key, row, dict(owner)))
    return Claim(mine, tuple(adopted), tuple(released))


def _owners(resource: str, key: ObjectKey, row: HasMeta, reference: dict[str, JSON]) -> Update:
    merge = canonical({"metadata": {"ownerReferences": [reference]}})
    return Update(resource, key.namespace, key.name, row.metadata.uid, merge)

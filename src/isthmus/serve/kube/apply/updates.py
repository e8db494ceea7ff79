"""Keeping the accounts of owners on every create, update and patch."""

from __future__ import annotations

from typing import Any

from isthmus.errors import BadRequest
from isthmus.model.kind import Document
from isthmus.serve.kube.apply import managers
from isthmus.serve.kube.apply.compare import NO_DIFFERENCE
from isthmus.serve.kube.apply.fields import EMPTY
from isthmus.serve.kube.apply.managers import Held, Manager
from isthmus.serve.kube.apply.writing import Changes, Writing


def tracked(writing: Writing, live: Document | None, wanted: Document) -> Document:
    """The wanted document with its owners: the writer owns what it changes, nobody what is gone.

    Both documents are in the version of the write; without `live` it is a create. A writer that
    says no managedFields, or none that can be read, leaves those that are. `[{}]` resets them, and
    then nobody keeps accounts until somebody applies (as in Kubernetes).
    """
    changes = Changes(writing, live, wanted)
    held, given = listed(live), listed(wanted)
    if live is not None and changes.own is NO_DIFFERENCE and given in (None, [], held):
        return with_owners(wanted, held)
    managed = _given(writing, held, given)
    if live is not None and not managed:
        return with_owners(wanted, None)
    managed = settled(managed, changes)
    mine = changes.own.written
    if mine:
        before = managed.get(writing.updater)
        fields = mine.union(before.fields if before else EMPTY)
        managed[writing.updater] = Held(fields, writing.api_version, writing.now)
    return with_owners(wanted, managers.write(managers.bounded(managed)))


def _given(writing: Writing, held: Any, given: Any) -> dict[Manager, Held]:  # noqa: ANN401 - any JSON values
    """The owners before this write: those that the writer says, else those that are stored."""
    if writing.subresource or given is None:
        return readable(held)
    if given == [{}]:
        return {}
    return readable(given) or readable(held)


def readable(given: Any) -> dict[Manager, Held]:  # noqa: ANN401 - any JSON value
    """The owners in a managedFields value; nobody if it cannot be read."""
    try:
        return managers.read(given)
    except BadRequest:
        return {}


def settled(
    managed: dict[Manager, Held], changes: Changes, applier: Manager | None = None
) -> dict[Manager, Held]:
    """Nobody but the writer owns what changed; `applier` keeps what it is said to own.

    Managers whose version the kind no longer has are left out.
    """
    left: dict[Manager, Held] = {}
    for manager, held in managed.items():
        change = changes.of(held.version)
        if manager == applier:
            left[manager] = held
        elif change is not None:
            fields = held.fields.difference(change.written).difference(change.removed)
            left[manager] = held._replace(fields=fields)
    return left


def listed(document: Document | None) -> Any:  # noqa: ANN401 - any JSON value
    """The managedFields that a document says; None if it says none."""
    metadata = (document or {}).get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def with_owners(document: Document, owners: Any) -> Document:  # noqa: ANN401 - any JSON value
    """The document with these managedFields; without any if there are none."""
    metadata = dict(document.get("metadata") or {})
    metadata.pop("managedFields", None)
    if owners:
        metadata["managedFields"] = owners
    return {**document, "metadata": metadata}

"""Namespace rules of writing: nothing new in a namespace that is missing or on its way out."""

from __future__ import annotations

import msgspec

from isthmus.controllers.refusal import subject
from isthmus.errors import Cause, Forbidden, NotFound, Subject
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.store.contract import Compare, Store
from isthmus.store.objects import Proposed, Verdict

FINALIZER = "kubernetes"
"""In spec.finalizers of every Namespace until its content is gone."""

NAME_LABEL = "kubernetes.io/metadata.name"

TERMINATING = "NamespaceTerminating"
"""Reason of the cause that tells this refusal from others: whoever sees it has come too late."""

IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that nobody may delete: what is in them would go too (Kubernetes' own three)."""


class NamespaceLives:
    """Admission: creates happen in namespaces that exist and stay (Kubernetes: NamespaceLifecycle).

    The namespace's record is compared in the transaction, so that an object cannot slip into a
    namespace that somebody deletes at the same moment.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, proposed: Proposed) -> Verdict:
        """The document. NotFound if the namespace is missing, Forbidden if it is terminating.

        Forbidden also for the deletion of a namespace that every cluster has.
        """
        if _kills(proposed) and proposed.name in IMMORTAL:
            about = subject(proposed)
            text = f'namespaces "{proposed.name}" is forbidden: this namespace may not be deleted'
            raise Forbidden(text, about=about)
        if proposed.old is not None or proposed.new is None or proposed.subresource:
            return Verdict(proposed.new)
        if not proposed.kind.namespaced:
            return Verdict(_newborn(proposed))
        key = Key("namespaces", "", proposed.namespace)
        record = await self._store.get(key)
        if record is None:
            about = Subject("", "namespaces", "Namespace", proposed.namespace)
            raise NotFound(f'namespaces "{proposed.namespace}" not found', about=about)
        if msgspec.json.decode(record.value)["metadata"].get("deletionTimestamp"):
            raise _terminating(proposed)
        return Verdict(proposed.new, (Compare(key, record.revision),))


def _kills(proposed: Proposed) -> bool:
    """Whether the write begins the end of a Namespace; one that is ending already may end."""
    old, new = proposed.old, proposed.new
    if proposed.kind.resource != "namespaces" or old is None:
        return False
    lives = not old["metadata"].get("deletionTimestamp")
    return lives and (new is None or bool(new["metadata"].get("deletionTimestamp")))


def _terminating(proposed: Proposed) -> Forbidden:
    about, namespace = subject(proposed), proposed.namespace
    text = (
        f'{about.qualified} "{about.name}" is forbidden: unable to create new content in namespace'
    )
    cause = Cause("metadata.namespace", f"namespace {namespace} is being terminated", TERMINATING)
    text = f"{text} {namespace} because it is being terminated"
    return Forbidden(text, about=about, causes=[cause])


def _newborn(proposed: Proposed) -> Document | None:
    """A Namespace begins with the label that carries its name, for selectors of namespaces."""
    new = proposed.new
    if new is None or proposed.kind.resource != "namespaces":
        return new
    metadata = new["metadata"]
    labels = (metadata.get("labels") or {}) | {NAME_LABEL: proposed.name}
    return new | {"metadata": metadata | {"labels": labels}}

"""Nobody gives rights that they do not have.

An admission of the API's own writes, in the words and with the ways out of Kubernetes ("Privilege
escalation prevention"): whoever writes a role holds every right in it, or has the verb `escalate`
on it; whoever binds a role holds every right in it, or has the verb `bind` on it; whoever makes a
ClusterRole that gathers others may everything. Unlike there, a role that somebody may not read is
not described to them, nor is it told whether it exists.

Who writes stands in `ASKER`, which the dispatcher sets for the time of a request. Without one the
write is refused: controllers, who write for nobody, have objects of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import msgspec

from isthmus.errors import Forbidden, NotFound, Subject
from isthmus.mesh.rights import EVERYTHING, TooManyRights, missing
from isthmus.model import document as look
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.model.rbac import GROUP, PolicyRule, RoleRef
from isthmus.serve.kube.auth import MASTERS, Attributes, Authorizer, User
from isthmus.store.contract import Compare, Record, Store
from isthmus.store.objects import Proposed, Verdict

ASKER: ContextVar[User] = ContextVar("asker")

SHOWN: Final = 20
"""Most rights that a refusal names."""

_KEPT_BY_SERVER: Final = frozenset(
    {
        "resourceVersion", "generation", "managedFields", "finalizers", "ownerReferences",
        "deletionTimestamp", "deletionGracePeriodSeconds",
    }
)  # fmt: skip
"""Metadata that gives no rights: what is needed to let an object go."""


class NoEscalation:
    """The admission."""

    def __init__(self, authorizer: Authorizer, store: Store) -> None:
        self._authorizer = authorizer
        self._store = store

    async def admit(self, proposed: Proposed) -> Verdict:
        """The document; Forbidden naming the rights that are lacking."""
        new = proposed.new
        if proposed.kind.group != GROUP or new is None or not _says_more(proposed.old, new):
            return Verdict(new)
        user = ASKER.get(None)
        if user is None:
            raise Forbidden("rights are given by somebody, or not at all", about=_about(proposed))
        if MASTERS in user.groups:
            return Verdict(new)
        if proposed.kind.name.endswith("Binding"):
            return Verdict(new, await self._bind(user, proposed, new))
        self._write(user, proposed, new)
        return Verdict(new)

    # ---------------------------------------------------------------------------------- roles

    def _write(self, user: User, proposed: Proposed, new: Document) -> None:
        if self._may(user, "escalate", proposed.kind.plural, proposed.namespace, proposed.name):
            return
        gathers = [each for each in (proposed.old, new) if look.get(each, "aggregationRule")]
        if gathers and self._lacking(user, proposed, EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise Forbidden(why, about=_about(proposed))
        self._require(user, proposed, _rules(new))

    # ------------------------------------------------------------------------------- bindings

    async def _bind(self, user: User, proposed: Proposed, new: Document) -> tuple[Compare, ...]:
        """The bound role must be the one that was looked at: the transaction compares it."""
        to = msgspec.convert(look.mapping(new, "roleRef"), RoleRef)
        resource = "clusterroles" if to.kind == "ClusterRole" else "roles"
        if self._may(user, "bind", resource, proposed.namespace, to.name):
            return ()
        within = proposed.namespace if resource == "roles" else ""
        key = Key(f"{resource}.{GROUP}", within, to.name)
        record = await self._store.get(key)
        seen = self._may(user, "get", resource, within, to.name)
        if record is None and seen:
            about = Subject(GROUP, resource, to.kind, to.name)
            raise NotFound("not found", about=about)
        rules = _rules_of(record)
        self._require(user, proposed, rules, shown=seen, known=record is not None)
        return (Compare(key, record.revision),) if record is not None else ()

    # --------------------------------------------------------------------------------- shared

    def _may(self, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
        asked = Attributes(verb, GROUP, "v1", resource, "", namespace, name)
        return self._authorizer.decide(user, asked).allowed

    def _lacking(
        self, user: User, proposed: Proposed, rules: Sequence[PolicyRule]
    ) -> tuple[PolicyRule, ...]:
        held = self._authorizer.rights(user, proposed.namespace)
        try:
            return missing(held, rules)
        except TooManyRights:
            why = "it says too much to be compared with what you may: write it as smaller roles"
            raise Forbidden(why, about=_about(proposed)) from None

    def _require(
        self,
        user: User,
        proposed: Proposed,
        rules: Sequence[PolicyRule],
        *,
        shown: bool = True,
        known: bool = True,
    ) -> None:
        lacking = self._lacking(user, proposed, rules)
        if lacking or not known:
            _refuse(user, proposed, lacking if shown else ())


def _refuse(user: User, proposed: Proposed, lacking: Sequence[PolicyRule]) -> NoReturn:
    groups = " ".join(f'"{group}"' for group in user.groups)
    lead = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not'
    lines = "".join(f"\n{line}" for line in _described(lacking))
    raise Forbidden(f"{lead} currently held{':' if lines else ''}{lines}", about=_about(proposed))


def _described(lacking: Iterable[PolicyRule]) -> list[str]:
    """A line for each group of single rights that differ in their verbs alone."""
    merged: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)
    for rule in lacking:
        about = (rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls)
        merged[about] += rule.verbs
    names = ("APIGroups", "Resources", "ResourceNames", "NonResourceURLs")
    lines = []
    for about, verbs in merged.items():
        parts = [*zip(names, about, strict=True), ("Verbs", verbs)]
        said = [f"{name}:[{_quoted(values)}]" for name, values in parts if values]
        lines.append(f"{{{', '.join(said)}}}")
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {rest} more"] if rest > 0 else lines


def _quoted(values: Iterable[str]) -> str:
    return " ".join(f'"{value}"' for value in values)


def _about(proposed: Proposed) -> Subject:
    kind = proposed.kind
    return Subject(kind.group, kind.plural, kind.name, proposed.name)


def _rules(document: Document) -> tuple[PolicyRule, ...]:
    return msgspec.convert(document.get("rules") or (), tuple[PolicyRule, ...])


def _rules_of(record: Record | None) -> tuple[PolicyRule, ...]:
    return _rules(msgspec.json.decode(record.value)) if record is not None else ()


def _says_more(old: Document | None, new: Document) -> bool:
    """Whether anything changes but what the server keeps and what lets the object go."""
    return old is None or _said(old) != _said(new)


def _said(document: Document) -> Document:
    metadata = document.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name not in _KEPT_BY_SERVER}
    return {**document, "metadata": kept}

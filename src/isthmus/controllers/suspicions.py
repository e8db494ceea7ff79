"""What is suspicious about a route or policy that is written: warnings, which kubectl shows.

An admission that refuses nothing. References may be written before what they lead to; who writes
them is told what is not there yet, or can never take them. Statuses say the same later on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.model.document import items, mapping, number, text
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.model.rules import is_kind
from isthmus.store.contract import Store
from isthmus.store.objects import Proposed, Verdict

POLICY: Final = "policy.linkerd.io"
GATEWAY: Final = "gateway.networking.k8s.io"
MOST: Final = 32
"""References of one object that are looked up."""

_KINDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("", "Service", "services"),
    (POLICY, "EgressNetwork", f"egressnetworks.{POLICY}"),
    (POLICY, "Server", f"servers.{POLICY}"),
    (POLICY, "HTTPRoute", f"httproutes.{POLICY}"),
    (GATEWAY, "HTTPRoute", f"httproutes.{GATEWAY}"),
    (GATEWAY, "GRPCRoute", f"grpcroutes.{GATEWAY}"),
)
_ROUTES: Final = frozenset(
    {f"{name}.{GATEWAY}" for name in ("grpcroutes", "httproutes", "tcproutes", "tlsroutes")}
    | {f"httproutes.{POLICY}"}
)
_AUTHORIZATIONS: Final = f"authorizationpolicies.{POLICY}"
_LIMITS: Final = f"httplocalratelimitpolicies.{POLICY}"


class _Refers(NamedTuple):
    """A reference of an object: where it stands, and where it leads."""

    path: str
    key: Key
    kind: str
    ref: Mapping[str, Any]


class Suspicions:
    """Warns of parents and targets that are not there.

    Authentications often come later in the same file, so of them the status speaks.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, proposed: Proposed) -> Verdict:
        """The document as it is, with warnings about references that are new in it."""
        new = proposed.new
        if new is None or proposed.subresource:
            return Verdict(new)
        before = {one.key for one in _refers(proposed, proposed.old)}
        told: list[str] = []
        for one in [each for each in _refers(proposed, new) if each.key not in before][:MOST]:
            record = await self._store.get(one.key)
            held = msgspec.json.decode(record.value) if record is not None else None
            told += _suspicions(one, held)
        return Verdict(new, warnings=tuple(told))


def _refers(proposed: Proposed, document: Document | None) -> Iterator[_Refers]:
    resource = proposed.kind.resource
    if document is None:
        return
    if resource in _ROUTES:
        listed: Iterable[tuple[str, Mapping[str, Any]]] = (
            (f"spec.parentRefs[{at}]", ref)
            for at, ref in enumerate(items(document, "spec.parentRefs"))
        )
    elif resource in (_AUTHORIZATIONS, _LIMITS):
        listed = [("spec.targetRef", mapping(document, "spec.targetRef"))]
    else:
        return
    for path, ref in listed:
        for group, kind, held in _KINDS:
            if is_kind(ref, group, kind):
                namespace = text(ref, "namespace") or proposed.namespace
                yield _Refers(path, Key(held, namespace, text(ref, "name")), kind, ref)


def _suspicions(one: _Refers, held: Document | None) -> Iterator[str]:
    what = f"{one.kind} {one.key.namespace}/{one.key.name}"
    if held is None:
        yield f"{one.path}: {what} does not exist (yet): until it does, this has no effect"
    elif one.kind == "Service" and one.path.startswith("spec.parentRefs"):
        yield from _service(one, held, what)


def _service(one: _Refers, held: Document, what: str) -> Iterator[str]:
    if text(held, "spec.type") == "ExternalName" or text(held, "spec.clusterIP") == "None":
        yield f"{one.path}: {what} has no cluster IP, so no route can be for it"
        return
    port = number(one.ref, "port")
    if port and all(number(each, "port") != port for each in items(held, "spec.ports")):
        yield f"{one.path}.port: {what} has no port {port}"

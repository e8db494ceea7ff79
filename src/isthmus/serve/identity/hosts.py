"""Hosts: machines whose agents may certify the workloads bound to them.

A host is a Node. When an agent redeems an invitation, the Node (made if need be) is annotated with
the hash of the agent's public key; that key alone speaks for the host, for as long as the Node and
its annotation are there. So deleting the Node revokes the host, and a new Node of the same name
owes nothing to the old one's agent.

What is bound to a host: Pods, by spec.nodeName; ExternalWorkloads, by an annotation.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.aio import Clock
from isthmus.ca import Account, Invitation, Realm, join
from isthmus.calls import Refused
from isthmus.errors import AlreadyExists, Conflict, NotFound
from isthmus.ir.identity import parse_identity
from isthmus.ir.names import Dns, Spiffe
from isthmus.model.core.config import SECRET
from isthmus.model.core.node import NODE
from isthmus.model.core.pod import POD
from isthmus.model.document import text, texts
from isthmus.model.kind import Document, Kind
from isthmus.model.names import subdomain_problems
from isthmus.model.times import format_time
from isthmus.model.workload import EXTERNAL_WORKLOAD, LEAVING
from isthmus.serve.identity.contract import Caller
from isthmus.store.contract import Store
from isthmus.store.objects import Preconditions, Writer

HOST_KEY: Final = "isthmus.dev/host-key"
"""Annotation of a Node: SHA-256 of the public key that speaks for it."""
HOST: Final = "isthmus.dev/host"
"""Annotation of an ExternalWorkload: the host whose agent may act for it."""

_KINDS: Final = {"pod": POD, "externalworkload": EXTERNAL_WORKLOAD}
_ENDED: Final = ("Succeeded", "Failed")


class _Kept(NamedTuple):
    """What is kept of an invitation."""

    hash: str
    host: str
    expires: float
    uid: str


class Hosts:
    """The hosts of one cluster."""

    def __init__(
        self, realm: Realm, cluster: str, store: Store, objects: Writer, clock: Clock
    ) -> None:
        self._realm = realm
        self._cluster = cluster
        self._store = store
        self._objects = objects
        self._clock = clock

    async def join(self, invitation: Invitation, host: str, key: str) -> None:
        """Redeem an invitation for `host`; from now on `key` speaks for it.

        Raises:
            Refused: it was never made, is spent, has expired, or is for another host.
        """
        name = invitation.object_name
        kept = await self._kept(name)
        if kept is None or not join.fits(invitation.secret, kept.hash):
            raise Refused("FAILED_PRECONDITION", "the join token is not known: spent, or not ours")
        if kept.expires <= self._clock.time():
            raise Refused("FAILED_PRECONDITION", "the join token has expired: make a new one")
        if kept.host != host:
            raise Refused("FAILED_PRECONDITION", "the join token is for another host")
        try:  # whoever deletes it has it: two cannot
            await self._objects.delete(
                SECRET,
                self._realm.control_plane_namespace,
                name,
                preconditions=Preconditions(uid=kept.uid),
            )
        except (NotFound, Conflict) as fault:
            raise Refused("FAILED_PRECONDITION", "the join token was just spent") from fault
        await self._speak(host, key)

    async def sweep(self) -> int:
        """Remove what is kept of invitations that nobody redeemed in time; how many those were."""
        namespace = self._realm.control_plane_namespace
        gone = 0
        for record in (await self._store.list(SECRET.resource, namespace)).records:
            kept = _kept(_document(record.value))
            if kept is not None and kept.expires <= self._clock.time():
                gone += await self._remove(record.key.name, kept.uid)
        return gone

    async def _remove(self, name: str, uid: str) -> bool:
        namespace = self._realm.control_plane_namespace
        try:
            await self._objects.delete(
                SECRET, namespace, name, preconditions=Preconditions(uid=uid)
            )
        except (NotFound, Conflict):  # somebody was faster
            return False
        return True

    async def _kept(self, name: str) -> _Kept | None:
        found = await self._read(SECRET, self._realm.control_plane_namespace, name)
        return _kept(found)

    async def _speak(self, host: str, key: str) -> None:
        annotations = {HOST_KEY: key}
        node: Document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": host, "annotations": annotations},
        }
        try:
            await self._objects.create(NODE, node)
        except AlreadyExists:
            await self._objects.update(NODE, "", host, lambda held: _annotated(held, annotations))

    async def require(self, caller: Caller) -> None:
        """Refused unless the caller's key still speaks for its host."""
        node = await self._read(NODE, "", caller.host)
        held = texts(node, "metadata.annotations").get(HOST_KEY, "") if node is not None else ""
        if not caller.key or held != caller.key or text(node, "metadata.deletionTimestamp"):
            raise Refused("PERMISSION_DENIED", f"the host {caller.host!r} is not known any more")

    async def tell(self, caller: Caller, path: str, *, leaving: bool) -> None:
        """Note whether an ExternalWorkload (`NS/NAME`) of the caller's host leaves or is there.

        Raises:
            Refused: it is not known, or not on the host.
        """
        await self.require(caller)
        await self.account(caller.host, f"externalworkload/{path}")
        namespace, _, name = path.partition("/")
        status = "True" if leaving else "False"
        now = format_time(self._clock.utc())
        await self._objects.update(
            EXTERNAL_WORKLOAD, namespace, name,
            lambda held: _said(held, status, now), subresource="status",
        )  # fmt: skip

    async def account(self, host: str, reference: str) -> Account:
        """The ServiceAccount of what `reference` (`pod/NS/NAME`) names, if it is bound to `host`.

        Raises:
            Refused: there is no such thing, or it is elsewhere. Which of the two is not told.
        """
        word, _, rest = reference.partition("/")
        namespace, _, name = rest.partition("/")
        kind = _KINDS.get(word)
        if kind is None or subdomain_problems(namespace) or subdomain_problems(name):
            raise Refused("INVALID_ARGUMENT", "the token is neither a token nor names a workload")
        found = await self._read(kind, namespace, name)
        account = self._account_on(host, kind, found) if found is not None else None
        if account is None:
            raise Refused("PERMISSION_DENIED", f"no such workload on the host {host!r}")
        return account

    def _account_on(self, host: str, kind: Kind, found: Document) -> Account | None:
        namespace = text(found, "metadata.namespace")
        if kind is POD:
            here = text(found, "spec.nodeName") == host
            if not here or text(found, "status.phase") in _ENDED:
                return None
            return Account(namespace, text(found, "spec.serviceAccountName") or "default")
        if texts(found, "metadata.annotations").get(HOST) != host:
            return None
        account = self._named(text(found, "spec.meshTLS.identity"))
        # Whoever may write in one namespace must not become somebody of another.
        return account if account is not None and account.namespace == namespace else None

    def _named(self, identity: str) -> Account | None:
        match parse_identity(identity):
            case Dns(name):
                return self._realm.account(name)
            case Spiffe(domain, ("ns", namespace, "sa", name)):
                same = domain == self._realm.trust_domain
                return Account(namespace, name) if same else None
            case _:
                return None

    async def _read(self, kind: Kind, namespace: str, name: str) -> Document | None:
        record = await self._store.get(kind.key(namespace, name))
        return None if record is None else _document(record.value)


def _document(value: bytes) -> Document | None:
    found: Any = msgspec.json.decode(value)
    return found if isinstance(found, dict) else None


def _kept(found: Document | None) -> _Kept | None:
    """What a Secret says of an invitation; None if it is of another type."""
    if found is None or text(found, "type") != join.SECRET_TYPE:
        return None
    data = {field: _decoded(value) for field, value in texts(found, "data").items()}
    expires = data.get("expires", "")
    return _Kept(
        hash=data.get("hash", ""),
        host=data.get("host", ""),
        expires=float(expires) if expires.isascii() and expires.isdecimal() else 0.0,
        uid=text(found, "metadata.uid"),
    )


def _said(held: Document, status: str, now: str) -> Document:
    """With the condition; unchanged where it says so already, or never said anything else."""
    state = held.get("status") or {}
    conditions = [each for each in state.get("conditions") or [] if isinstance(each, dict)]
    before = next((each for each in conditions if each.get("type") == LEAVING), None)
    if (before or {}).get("status", "False") == status:
        return held
    new = {
        "type": LEAVING,
        "status": status,
        "reason": "AgentStops" if status == "True" else "AgentRuns",
        "message": "said by the agent of its host",
        "lastTransitionTime": now,
    }
    others = [each for each in conditions if each is not before]
    return {**held, "status": {**state, "conditions": [*others, new]}}


def _annotated(held: Document, annotations: dict[str, str]) -> Document:
    metadata = held.get("metadata") or {}
    merged = (metadata.get("annotations") or {}) | annotations
    return {**held, "metadata": {**metadata, "annotations": merged, "resourceVersion": ""}}


def _decoded(value: str) -> str:
    try:
        return b64decode(value, validate=True).decode()
    except ValueError:
        return ""

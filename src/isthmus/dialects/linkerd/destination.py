"""The Destination service: questions, and the bytes of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from isthmus.dialects.linkerd.address import encoded
from isthmus.dialects.linkerd.book import AddressBook, Entry, Run
from isthmus.dialects.linkerd.profile import destination_profile
from isthmus.engine import Query, View, query
from isthmus.mesh.queries import (
    AddressHost,
    Authority,
    BadAuthority,
    BadHost,
    GetKey,
    Host,
    InstanceHost,
    InstanceName,
    IpName,
    ObjectKey,
    Piece,
    ProfileKey,
    Refused,
    ServiceHost,
    ServiceName,
    SetKey,
    Token,
    Why,
    get_refusal,
    parse_authority,
    parse_token,
    piece_groups,
    pieces,
    profile,
    resting,
    sets,
    settings,
    subject_refusal,
)
from isthmus.proto.linkerd import destination_pb2 as pb


class Read(Protocol):
    """One answer of the database, now."""

    def __call__(self, query: Query[..., Any], /, *key: Any) -> Any:  # noqa: ANN401  # any query
        """The value of `query` at `key`."""


class Fault(NamedTuple):
    """Why there is no stream: the name of a gRPC status, and a text."""

    status: str
    text: str


INVALID: Final = "INVALID_ARGUMENT"
PRECONDITION: Final = "FAILED_PRECONDITION"
NOT_FOUND: Final = "NOT_FOUND"
"""Proxies take the first two as final, and ask again after any other."""

_STATUS: Final = {
    Why.MISSING: NOT_FOUND,
    Why.EXTERNAL_NAME: INVALID,
    Why.CONFLICT: PRECONDITION,
    Why.NO_REMOTE_SERVICE: PRECONDITION,
    Why.NO_CLUSTER: NOT_FOUND,
}

_SHOWN: Final = 128
"""Characters of a path in a text: it travels in HTTP/2 trailers."""


# ----------------------------------------------------------------------------- questions


class _Request(NamedTuple):
    """A GetDestination as read."""

    path: str
    authority: Authority | BadAuthority | BadHost
    token: Token
    cluster: str


def _request(read: Read, body: bytes) -> _Request | Fault:
    try:
        message = pb.GetDestination.FromString(body)
    except DecodeError:
        return Fault(INVALID, "The request is no GetDestination")
    here = read(settings)
    authority = parse_authority(message.path, here.cluster_domain)
    token = parse_token(message.context_token)
    return _Request(_shown(message.path), authority, token, here.cluster)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def get_question(read: Read, body: bytes) -> GetKey | Fault:
    """The key of `addresses` that a Get asks for, or why it gets no stream."""
    asked = _request(read, body)
    if isinstance(asked, Fault):
        return asked
    match asked.authority:
        case Authority(ServiceName(namespace, service), port):
            instance = ""
        case Authority(InstanceName(namespace, service, instance), port):
            pass
        case Authority(IpName(ip)):
            return Fault(INVALID, f"IP queries not supported by Get API: host={ip}")
        case _:
            return Fault(INVALID, f"Invalid authority: {asked.path}")
    key = ObjectKey(asked.cluster, namespace, service)
    refused: Refused | None = read(get_refusal, key)
    if refused is not None:
        return Fault(_STATUS[refused.why], _get_text(refused, asked.path))
    return GetKey(key, port, instance, asked.token.node)


def _get_text(refused: Refused, path: str) -> str:
    match refused.why:
        case Why.EXTERNAL_NAME:
            return f"Invalid authority: {path}"
        case Why.NO_REMOTE_SERVICE:
            return f"Remote discovery service missing remote service name {path}"
        case _:
            return refused.text


def profile_question(read: Read, body: bytes) -> ProfileKey | Fault:
    """The key of `profile_bytes` that a GetProfile asks for, or why it gets no stream."""
    asked = _request(read, body)
    if isinstance(asked, Fault):
        return asked
    match asked.authority:
        case BadAuthority(cause):
            return Fault(INVALID, f'invalid authority: "{asked.path}": "{cause}"')
        case BadHost(text, cause):
            return Fault(INVALID, f'invalid service "{_shown(text)}": "{cause}"')
        case Authority() as wanted:
            return _profile_key(read, asked, wanted)


def _profile_key(read: Read, asked: _Request, wanted: Authority) -> ProfileKey | Fault:
    host = _host(asked.cluster, wanted.name)
    refused: Refused | None = read(subject_refusal, host, wanted.port)
    if refused is None:
        return ProfileKey(host, wanted.port, asked.token.namespace)
    if refused.why is Why.EXTERNAL_NAME:
        return Fault(INVALID, f'invalid service "{_shown(wanted.host)}": "{refused.text}"')
    return Fault(_STATUS[refused.why], refused.text)


def _host(cluster: str, name: ServiceName | InstanceName | IpName) -> Host:
    match name:
        case ServiceName(namespace, service):
            return ServiceHost(ObjectKey(cluster, namespace, service))
        case InstanceName(namespace, service, instance):
            return InstanceHost(ObjectKey(cluster, namespace, service), instance)
        case IpName(ip):
            return AddressHost(cluster, ip)


# ------------------------------------------------------------------------------- answers


@query
def addresses(db: View, key: GetKey) -> AddressBook:
    """What a Get stream should hold. All askers that see the same sets share one book."""
    return book(db, sets(db, key))


@query
def book(db: View, parts: tuple[SetKey, ...]) -> AddressBook:
    """The union of sets; an address that several have is in the first of them."""
    runs = [run(db, piece) for part in parts for piece in pieces(db, part)]
    if len(parts) > 1:
        runs = _first_wins(runs)
    return AddressBook(tuple(filter(None, runs)))


@query
def run(db: View, piece: Piece) -> Run:
    """The entries of a piece of a set.

    Who is not ready is encoded as well: whatever comes, or comes back, costs no more than a look.
    """
    for member in resting(db, piece):
        encoded(db, member)
    found = [
        Entry(member.ip, member.port, labels, wire)
        for labels, members in piece_groups(db, piece)
        for member in members
        if (wire := encoded(db, member)) is not None
    ]
    found.sort()
    return tuple(found)


def _first_wins(runs: Sequence[Run]) -> list[Run]:
    """Runs of sets that know nothing of each other: without what an earlier one has."""
    seen: set[tuple[str, int]] = set()
    kept: list[Run] = []
    for each in runs:
        sockets = {entry[:2] for entry in each}
        if not seen.isdisjoint(sockets):
            each = tuple(entry for entry in each if entry[:2] not in seen)  # noqa: PLW2901
        seen |= sockets
        kept.append(each)
    return kept


@query
def profile_bytes(db: View, key: ProfileKey) -> bytes:
    """What a GetProfile stream should hold: one DestinationProfile."""
    wire = destination_profile(profile(db, key), settings(db).meshed_http2)
    return wire.SerializeToString(deterministic=True)

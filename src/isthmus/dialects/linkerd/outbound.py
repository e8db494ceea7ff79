"""The OutboundPolicies service: questions, and the bytes of their answers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from isthmus.dialects.linkerd.backends import Towards
from isthmus.dialects.linkerd.destination import INVALID, NOT_FOUND, Fault, Read
from isthmus.dialects.linkerd.policy import policy
from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.queries import (
    Accrual,
    Asked,
    Dialled,
    LoadBias,
    Named,
    ObjectKey,
    Place,
    accrual,
    is_known,
    load_bias,
    outbound_for,
    service_named,
    settings,
)
from isthmus.proto.linkerd import net_pb2
from isthmus.proto.linkerd import outbound_pb2 as pb

DEFAULT_PORT: Final = 80
_HIGHEST: Final = 65535
_LONGEST: Final = 4096
_SHOWN: Final = 128


class _Workload(msgspec.Struct, frozen=True):
    """Who asks, as its injector wrote it."""

    ns: str


_DECODER: Final = msgspec.json.Decoder(_Workload)


def namespace_of(workload: str) -> str | None:
    """The namespace of `NS:POD` or of a JSON object with `ns`; None for anything else."""
    if len(workload) > _LONGEST:
        return None
    if not workload.lstrip().startswith("{"):
        namespace, colon, pod = workload.partition(":")
        return namespace if colon and namespace and pod else None
    try:
        return _DECODER.decode(workload).ns or None
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None


def outbound_question(read: Read, body: bytes) -> Asked | Fault:
    """What a TrafficSpec asks for, or why it gets no answer."""
    try:
        spec = pb.TrafficSpec.FromString(body)
    except DecodeError:
        return Fault(INVALID, "The request is no TrafficSpec")
    namespace = namespace_of(spec.source_workload)
    if namespace is None:
        shown = spec.source_workload[:_SHOWN]
        return Fault(INVALID, f"source_workload {shown!r} is neither NS:POD nor an object with ns")
    client = Place(read(settings).cluster, namespace)
    asked: Asked | Fault
    match spec.WhichOneof("target"):
        case "addr":
            asked = _dialled(client, spec.addr)
        case "authority":
            asked = _named(read, client, spec.authority)
        case _:
            return Fault(INVALID, "a TrafficSpec needs a target: addr or authority")
    if isinstance(asked, Fault) or read(is_known, asked):
        return asked
    return Fault(NOT_FOUND, "No such service")


def _dialled(client: Place, addr: net_pb2.TcpAddress) -> Dialled | Fault:
    match addr.ip.WhichOneof("ip"):
        case "ipv4":
            ip = str(IPv4Address(addr.ip.ipv4))
        case "ipv6":
            ip = str(IPv6Address(addr.ip.ipv6.first << 64 | addr.ip.ipv6.last))
        case _:
            return Fault(INVALID, "addr has no IP")
    if not 0 < addr.port <= _HIGHEST:
        return Fault(INVALID, f"addr has no port: {addr.port}")
    return Dialled(client, ip, addr.port)


def _named(read: Read, client: Place, authority: str) -> Named | Fault:
    """`NAME.NAMESPACE.svc` with or without a port; the port is 80 if there is none, or 0."""
    shown = authority[:_SHOWN]
    host, colon, text = authority.rpartition(":")
    if not colon:
        host, text = authority, ""
    if not host or len(authority) > _LONGEST or (text and not _is_port(text)):
        return Fault(INVALID, f"invalid authority {shown!r}")
    found = service_named(host, read(settings).cluster_domain)
    if found is None:
        return Fault(NOT_FOUND, f"No such service: {shown}")
    service = ObjectKey(client.cluster, *found)
    return Named(client, service, int(text or 0) or DEFAULT_PORT)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= _HIGHEST


# ----------------------------------------------------------------------------------- answers


@query
def outbound_policy(db: View, asked: Asked) -> bytes:
    """What a Watch should hold: one OutboundPolicy."""
    said = outbound_for(db, asked)
    ip = asked.ip if isinstance(asked, Dialled) else ""
    failing, bias = _towards_service(db, said.parent)
    wire = policy(said, Towards(ip, asked.port, bias), failing)
    return wire.SerializeToString(deterministic=True)


def _towards_service(db: View, parent: Ref | None) -> tuple[Accrual | None, LoadBias | None]:
    """How the parent wants endpoints that fail to be looked at, if it is a Service."""
    if parent is None or parent.kind != "Service":
        return None, None
    service = ObjectKey(parent.cluster, parent.namespace, parent.name)
    return accrual(db, service), load_bias(db, service)

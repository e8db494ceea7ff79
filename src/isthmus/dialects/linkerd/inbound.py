"""The InboundServerPolicies service: questions, and Servers as the bytes of their answers.

Metadata names no namespace, as Linkerd's: it is the workload's own. Servers and authorizations are
labelled in lower case, all other kinds as they are spelt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, ip_network
from typing import Final, assert_never

import msgspec
from google.protobuf.message import DecodeError

from isthmus.dialects.linkerd import rules as wire
from isthmus.dialects.linkerd.address import duration
from isthmus.dialects.linkerd.destination import INVALID, NOT_FOUND, Fault, Read
from isthmus.engine import View, query
from isthmus.ir.inbound import (
    Anybody,
    Authentication,
    Authorization,
    Inbound,
    InboundGrpcRoute,
    InboundRoute,
    Network,
    Peers,
    RateLimit,
    Speech,
    TlsOnly,
)
from isthmus.ir.names import (
    AnyIdentity,
    Default,
    Dns,
    IdentityMatch,
    IdentitySuffix,
    Source,
    Spiffe,
)
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import Fail, Forbid, HeaderChange, Mirror, Redirect, Rewrite, RuleFilter
from isthmus.mesh.queries import has_policy, inbound, parse_workload, settings
from isthmus.proto.linkerd import inbound_pb2 as pb
from isthmus.proto.linkerd import meta_pb2, net_pb2

_LARGEST: Final = 65535
_INTERNAL: Final = 13
_FORBIDDEN: Final = Fail(403, 7, "forbidden")

UNSAYABLE: Final = "a filter that linkerd2-proxy cannot do here"


# ----------------------------------------------------------------------------- questions


def inbound_question(read: Read, body: bytes) -> InboundName | Fault:
    """The key of `server_policy` that a PortSpec asks for, or why it gets no answer."""
    try:
        asked = pb.PortSpec.FromString(body)
    except DecodeError:
        return Fault(INVALID, "The request is no PortSpec")
    workload = parse_workload(asked.workload, read(settings).cluster)
    if workload is None:
        return Fault(INVALID, f"Invalid workload: {asked.workload[:128]}")
    if not 0 < asked.port <= _LARGEST:
        return Fault(INVALID, f"Invalid port: {asked.port}")
    if not read(has_policy, workload):
        return Fault(NOT_FOUND, "unknown server")
    return InboundName(workload, asked.port)


@query
def server_policy(db: View, name: InboundName) -> bytes | None:
    """What a WatchPort stream should hold: one Server.

    None where the workload is gone: who is still connected to it keeps to what was said last.
    """
    if not has_policy(db, name.workload):
        return None
    return server(inbound(db, name)).SerializeToString(deterministic=True)


# -------------------------------------------------------------------------------- Server


def server(found: Inbound) -> pb.Server:
    """A port as a proxy is told of it."""
    return pb.Server(
        protocol=_protocol(found),
        authorizations=_authorizations(found, found.authorizations),
        labels=_labels(found.source),
    )


def _protocol(found: Inbound) -> pb.ProxyProtocol:
    kinds = pb.ProxyProtocol
    match found.speech:
        case Speech.DETECT:
            return kinds(
                detect=kinds.Detect(
                    timeout=duration(found.detect_timeout),
                    http_routes=_http_routes(found),
                    http_local_rate_limit=_limit(found.rate_limit),
                )
            )
        case Speech.HTTP1:
            limit = _limit(found.rate_limit)
            return kinds(http1=kinds.Http1(routes=_http_routes(found), local_rate_limit=limit))
        case Speech.HTTP2:
            limit = _limit(found.rate_limit)
            return kinds(http2=kinds.Http2(routes=_http_routes(found), local_rate_limit=limit))
        case Speech.GRPC:
            return kinds(grpc=kinds.Grpc(routes=[_grpc(found, one) for one in found.grpc_routes]))
        case Speech.OPAQUE:
            return kinds(opaque=kinds.Opaque())
        case Speech.TLS:
            return kinds(tls=kinds.Tls())
        case _:
            assert_never(found.speech)


def named(source: Source, *, lower: bool = False) -> meta_pb2.Metadata:
    """Where a part comes from."""
    if isinstance(source, Default):
        return meta_pb2.Metadata(default=source.name)
    ref = source.ref
    kind = ref.kind.lower() if lower else ref.kind
    resource = meta_pb2.Resource(group=ref.group or "core", kind=kind, name=ref.name)
    return meta_pb2.Metadata(resource=resource)


def _labels(source: Source) -> dict[str, str]:
    """The same as older proxies read it."""
    if isinstance(source, Default):
        return {"group": "", "kind": "default", "name": source.name}
    return {"group": source.ref.group, "kind": source.ref.kind.lower(), "name": source.ref.name}


# ----------------------------------------------------------------------- authorizations


def _authorizations(found: Inbound, some: Iterable[Authorization]) -> list[pb.Authz]:
    """Who may in. A strict workload takes nobody without TLS, but for the kubelet's probes."""
    return [_authorization(_demanding(found, one)) for one in some if one.networks]


def _demanding(found: Inbound, one: Authorization) -> Authorization:
    if not found.strict or one.source == Default("probe"):
        return one
    if isinstance(one.authentication, Anybody):
        return msgspec.structs.replace(one, authentication=TlsOnly())
    return one


def _authorization(one: Authorization) -> pb.Authz:
    return pb.Authz(
        networks=[_network(each) for each in one.networks],
        authentication=_authentication(one.authentication),
        labels=_labels(one.source),
        metadata=named(one.source, lower=True),
    )


def _network(one: Network) -> pb.Network:
    wire_net = pb.Network(net=_block(one.cidr))
    getattr(wire_net, "except").extend(map(_block, one.excepts))
    return wire_net


def _block(cidr: str) -> net_pb2.IPNetwork:
    found = ip_network(cidr, strict=False)
    address = found.network_address
    if isinstance(address, IPv4Address):
        ip = net_pb2.IPAddress(ipv4=int(address))
    else:
        first, last = divmod(int(address), 1 << 64)
        ip = net_pb2.IPAddress(ipv6=net_pb2.IPv6(first=first, last=last))
    return net_pb2.IPNetwork(ip=ip, prefix_len=found.prefixlen)


def _authentication(asked: Authentication) -> pb.Authn:
    anybody = pb.Authn.PermitUnauthenticated()
    match asked:
        case Anybody():
            return pb.Authn(unauthenticated=anybody)
        case TlsOnly():
            return pb.Authn(meshTLS=pb.Authn.PermitMeshTLS(unauthenticated=anybody))
        case Peers(identities=identities):
            clients = pb.Authn.PermitMeshTLS.PermitClientIdentities(
                identities=[pb.Identity(name=name) for name in _names(identities)],
                suffixes=[pb.IdentitySuffix(parts=parts) for parts in _suffixes(identities)],
            )
            return pb.Authn(meshTLS=pb.Authn.PermitMeshTLS(identities=clients))
        case _:
            assert_never(asked)


def _names(matches: Iterable[IdentityMatch]) -> Iterator[str]:
    for one in matches:
        match one:
            case Dns(name=name):
                yield name
            case Spiffe():
                yield one.uri
            case IdentitySuffix() | AnyIdentity():
                continue


def _suffixes(matches: Iterable[IdentityMatch]) -> Iterator[tuple[str, ...]]:
    """Labels in written order; none at all is everybody who has an identity."""
    for one in matches:
        match one:
            case IdentitySuffix(labels=labels):
                yield labels
            case AnyIdentity():
                yield ()
            case Dns() | Spiffe():
                continue


# -------------------------------------------------------------------------------- routes


def _http_routes(found: Inbound) -> list[pb.HttpRoute]:
    return [_http(found, one) for one in found.http_routes]


def _http(found: Inbound, route: InboundRoute) -> pb.HttpRoute:
    rules = [
        pb.HttpRoute.Rule(
            matches=[match for one in rule.matches for match in wire.http_matches(one)],
            filters=http_filters(rule.filters),
        )
        for rule in route.rules
        if not rule.matches or any(list(wire.http_matches(one)) for one in rule.matches)
    ]
    return pb.HttpRoute(
        metadata=named(route.source),
        hosts=wire.host_matches(route.hosts),
        authorizations=_authorizations(found, route.authorizations),
        rules=rules,
    )


def http_filters(filters: Iterable[RuleFilter]) -> Iterator[pb.HttpRoute.Filter]:
    """Filters of requests. What a proxy cannot do at all answers 500 to what it is for.

    Without it the request would pass as it is, or be for another route, with other authorizations.
    """
    kind = pb.HttpRoute.Filter
    for one in filters:
        match one:
            case HeaderChange(on_response=False):
                yield from (
                    kind(request_header_modifier=wire.request_headers(each)) for each in apart(one)
                )
            case HeaderChange() | Mirror():
                continue
            case Redirect():
                yield kind(redirect=wire.redirect(one))
            case Fail():
                yield kind(failure_injector=wire.http_failure(one))
            case Forbid():
                yield kind(failure_injector=wire.http_failure(_FORBIDDEN))
            case Rewrite():
                yield kind(failure_injector=wire.http_failure(Fail(500, _INTERNAL, UNSAYABLE)))
            case _:
                assert_never(one)


def _grpc(found: Inbound, route: InboundGrpcRoute) -> pb.GrpcRoute:
    rules = []
    for rule in route.rules:
        matches = [match for one in rule.matches if (match := wire.grpc_match(one)) is not None]
        if matches or not rule.matches:
            rules.append(pb.GrpcRoute.Rule(matches=matches, filters=grpc_filters(rule.filters)))
    return pb.GrpcRoute(
        metadata=named(route.source),
        hosts=wire.host_matches(route.hosts),
        authorizations=_authorizations(found, route.authorizations),
        rules=rules,
    )


def grpc_filters(filters: Iterable[RuleFilter]) -> Iterator[pb.GrpcRoute.Filter]:
    """Filters of calls; of these a proxy knows fewer."""
    kind = pb.GrpcRoute.Filter
    for one in filters:
        match one:
            case HeaderChange(on_response=False):
                yield from (
                    kind(request_header_modifier=wire.request_headers(each)) for each in apart(one)
                )
            case HeaderChange() | Mirror():
                continue
            case Fail():
                yield kind(failure_injector=wire.grpc_failure(one))
            case Forbid():
                yield kind(failure_injector=wire.grpc_failure(_FORBIDDEN))
            case Redirect() | Rewrite():
                yield kind(failure_injector=wire.grpc_failure(Fail(500, _INTERNAL, UNSAYABLE)))
            case _:
                assert_never(one)


def apart(change: HeaderChange) -> tuple[HeaderChange, ...]:
    """Proxies add before they set: a name that is both set and added to needs two changes."""
    both = {name.lower() for name, _ in change.set} & {name.lower() for name, _ in change.add}
    if not both:
        return (change,)
    return (
        HeaderChange(set=change.set),
        HeaderChange(add=change.add, remove=change.remove),
    )


# --------------------------------------------------------------------------- rate limits


def _limit(said: RateLimit | None) -> pb.HttpLocalRateLimit | None:
    if said is None:
        return None
    kind = pb.HttpLocalRateLimit
    overrides = [
        kind.Override(
            limit=kind.Limit(requestsPerSecond=one.per_second),
            clients=kind.Override.ClientIdentities(
                identities=[pb.Identity(name=name) for name in _names(one.identities)]
            ),
        )
        for one in said.overrides
    ]
    return kind(
        metadata=named(said.source),
        total=kind.Limit(requestsPerSecond=said.total) if said.total is not None else None,
        identity=kind.Limit(requestsPerSecond=said.each) if said.each is not None else None,
        overrides=overrides,
    )

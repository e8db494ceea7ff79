"""Listener and routes of what reaches a workload.

One listener, 4143, with a family of chains per port that differs from the rest. Mesh TLS is told
apart by its server name, and what is inside by ALPN; TLS with any other name is the application's;
plaintext passes unless the workload is strict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb
from envoy.config.route.v3 import route_components_pb2 as pb_route
from envoy.config.route.v3 import route_pb2
from envoy.type.matcher.v3 import regex_pb2 as regex
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.envoy import filters as changes
from isthmus.dialects.envoy import limits, manager, names, routes, stats, tls
from isthmus.dialects.envoy.clusters import labelled
from isthmus.dialects.envoy.endpoints import socket_address
from isthmus.dialects.envoy.outbound import INBOUND_PORT, PORT
from isthmus.dialects.xds import rbac
from isthmus.dialects.xds.hosts import Way, by_host, domain
from isthmus.engine import View, query
from isthmus.ir.hosts import PLAIN
from isthmus.ir.inbound import (
    Inbound,
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
    Speech,
    hosts_decide,
    paths_decide,
)
from isthmus.ir.names import Default, Ref
from isthmus.ir.proxy import InboundName
from isthmus.mesh.queries import ELSEWHERE, inbound, inbounds, settings
from isthmus.proto.xds import Resource, duration, resource

CLIENT: Final = "l5d-client-id"
"""The request header that tells an application who calls (Linkerd's)."""

_PROOF: Final = "x-forwarded-client-cert"
"""What the proxy itself says of the client's certificate (Envoy's)."""


def _spellings(header: str) -> list[str]:
    """Other names that servers of CGI's kind take for this one: `-` and `_` are one there."""
    first, *rest = header.split("-")
    found = [first]
    for each in rest:
        found = [f"{front}{mark}{each}" for front in found for mark in "-_"]
    return found[1:]


_HIDDEN: Final = (
    routes.PROTOCOL,
    limits.CALLER,
    CLIENT,
    *_spellings(CLIENT),
    *_spellings(_PROOF),
)
_SOON: Final = 1_000
"""Milliseconds that plaintext clients wait on opaque ports of a server that speaks first."""

_BYTES: Final = frozenset({Speech.OPAQUE, Speech.TLS})
_DECLARED: Final = {
    Speech.HTTP1: manager.HTTP1,
    Speech.HTTP2: manager.HTTP2,
    Speech.GRPC: manager.HTTP2,
}
"""Ports that are known to speak HTTP, and which version clients without a sidecar must speak."""


# ------------------------------------------------------------------------------ listener


@query
def inbound_listener(db: View, workload: Ref) -> Resource:
    """The listener of a workload."""
    told = [inbound(db, name) for name in inbounds(db, workload)]
    common = told[0]
    apart = [one for one in told[1:] if differs(one, common)]
    opaque = [one.port for one in apart if one.speech is Speech.OPAQUE]
    wire = pb.Listener(
        name=names.INBOUND,
        address=socket_address("::" if settings(db).ipv6 else "0.0.0.0", INBOUND_PORT),  # noqa: S104
        listener_filters=[
            manager.ORIGINAL_DST,
            manager.SEE_TLS,
            manager.except_on(manager.SEE_HTTP, opaque),
        ],
        listener_filters_timeout=manager.limit(_SOON if opaque else common.detect_timeout),
        continue_on_listener_filters_timeout=True,
        traffic_direction=base.INBOUND,
        filter_chains=_chains([*apart, common]),
    )
    wire.address.socket_address.ipv4_compat = settings(db).ipv6
    return resource(wire, wire.name, clusters=[names.APP, names.REFUSED], origin=common.source)


def differs(one: Inbound, common: Inbound) -> bool:
    """Whether a port is treated otherwise than those of which nothing is known."""
    return msgspec.structs.replace(one, port=common.port) != common


def _chains(told: Sequence[Inbound]) -> Iterator[component.FilterChain]:
    for port in (PORT, INBOUND_PORT):
        match = component.FilterChainMatch(destination_port=UInt32Value(value=port))
        yield manager.chain(f"own-{port}", [manager.refuse()], match)
    for one in told:
        yield from _family(one)


def _family(one: Inbound) -> Iterator[component.FilterChain]:
    """All chains of a port: once a port has one, those without a port do not count for it.

    A sidecar says in ALPN what it sends, also where it takes an opaque port for HTTP. Without ALPN
    comes a linkerd2-proxy, which sends what the port speaks. Where a port is declared to speak
    HTTP, bytes are read as that, whatever the client says: else they would pass by the routes.
    """
    requests = _Inside([manager.server_side(names.inbound_routes(one.port))], _labels(one))
    raw = requests if one.speech in _DECLARED else _bytes(one, meshed=True)
    yield _mesh(one, "mesh-http", tls.HTTP, requests)
    yield _mesh(one, "mesh-tcp", tls.TCP, raw)
    yield _mesh(one, "mesh-grpc", tls.GRPC, requests)
    yield _mesh(one, "mesh", "", raw if one.speech in _BYTES else requests)
    yield from _strict(one) if one.strict else _permissive(one)


class _Inside(NamedTuple):
    """What a chain does, and what its connections are labelled with."""

    filters: list[component.Filter]
    labels: str


def _mesh(one: Inbound, name: str, alpn: str, inside: _Inside) -> component.FilterChain:
    """Server names stand on every one of them: a chain with some shadows those without."""
    match = _match(one, transport_protocol="tls")
    match.server_names.extend(map(domain, one.accepted_snis))
    if alpn:
        match.application_protocols.append(alpn)
    socket = tls.downstream(alpn if alpn == tls.GRPC else "")
    return manager.chain(
        _named(one, name), inside.filters, match, labels=inside.labels, socket=socket
    )


def _permissive(one: Inbound) -> Iterator[component.FilterChain]:
    own_tls = _match(one, transport_protocol="tls")
    plain = _match(one, transport_protocol="raw_buffer")
    codec = _DECLARED.get(one.speech)
    if codec is not None:
        declared = [manager.server_side(names.inbound_routes(one.port), codec)]
        yield manager.chain(_named(one, "app-tls"), [manager.refuse()], own_tls)
        yield manager.chain(_named(one, "plain"), declared, plain, labels=_labels(one))
        return
    onward, labels = _bytes(one, meshed=False)
    yield manager.chain(_named(one, "app-tls"), onward, own_tls, labels=labels)
    yield manager.chain(_named(one, "plain"), onward, plain, labels=labels)
    if one.speech not in _BYTES:
        yield _plain_http(one, names.inbound_routes(one.port))


def _strict(one: Inbound) -> Iterator[component.FilterChain]:
    """Nothing but mesh TLS; the kubelet's probes, which have none, may still ask."""
    refused = [manager.refuse(stats.INBOUND_TCP)]
    yield manager.chain(_named(one, "refused"), refused, _match(one), labels=_closed(one))
    if one.speech not in _BYTES and _probes(one):
        yield _plain_http(one, names.probe_routes(one.port))


def _plain_http(one: Inbound, named: str) -> component.FilterChain:
    match = _match(one, transport_protocol="raw_buffer")
    match.application_protocols.extend(manager.PLAINTEXT_HTTP)
    return manager.chain(
        _named(one, "plain-http"), [manager.server_side(named)], match, labels=_labels(one)
    )


def _match(one: Inbound, transport_protocol: str = "") -> component.FilterChainMatch:
    match = component.FilterChainMatch(transport_protocol=transport_protocol)
    if one.port != ELSEWHERE:
        match.destination_port.CopyFrom(UInt32Value(value=one.port))
    return match


def _named(one: Inbound, name: str) -> str:
    return f"{name}-{one.port}" if one.port != ELSEWHERE else name


def _labels(one: Inbound) -> str:
    return stats.joined(stats.server_labels(one.source, one.port))


def _closed(one: Inbound) -> str:
    return stats.joined(stats.server_labels(one.source, one.port), stats.open_labels(None))


def _bytes(one: Inbound, *, meshed: bool) -> _Inside:
    carry = manager.carry("inbound", [(names.APP, 1)], stats.INBOUND_TCP)
    opened = rbac.opened_by(rbac.left_to_ask(one.authorizations, meshed=meshed))
    labels = stats.joined(stats.server_labels(one.source, one.port), stats.open_labels(opened))
    return _Inside(manager.admit(one.authorizations, carry, meshed=meshed), labels)


# -------------------------------------------------------------------------------- routes


@query
def inbound_routes(db: View, workload: Ref, port: int) -> Resource:
    """The routes of a workload's port."""
    found = inbound(db, InboundName(workload, port))
    some = found.grpc_routes if found.speech is Speech.GRPC else found.http_routes
    return _configured(names.inbound_routes(port), found, some)


@query
def probe_routes(db: View, workload: Ref, port: int) -> Resource | None:
    """Only what needs no authorization of the port's own: probes. None where there are none."""
    found = inbound(db, InboundName(workload, port))
    some = _probes(found)
    return _configured(names.probe_routes(port), found, some) if some else None


def has_probe_routes(found: Inbound) -> bool:
    """Whether only probes may come in plaintext."""
    return found.strict and found.speech not in _BYTES and bool(_probes(found))


def _probes(found: Inbound) -> tuple[InboundRoute, ...]:
    return tuple(one for one in found.http_routes if one.source == Default("probe"))


def _configured(
    name: str, found: Inbound, some: Sequence[InboundRoute] | Sequence[InboundGrpcRoute]
) -> Resource:
    """A port without routes lets pass whatever it admits."""
    everything = InboundRoute(found.source, rules=(InboundRule(),))
    wire = route_pb2.RouteConfiguration(
        name=name,
        ignore_port_in_host_matching=True,
        virtual_hosts=[
            _virtual_host(domain, ways, found) for domain, ways in by_host(some or (everything,))
        ],
    )
    if found.rate_limit is not None and limits.awake(found.rate_limit):
        for filter_name, said in limits.settings(found.rate_limit).items():
            wire.typed_per_filter_config[filter_name].CopyFrom(said)
    return resource(wire, name, clusters=[names.APP, names.APP_HTTP1], origin=found.source)


def _virtual_host(name: str, ways: Sequence[Way], found: Inbound) -> pb_route.VirtualHost:
    """What callers say of themselves is removed, then what is known of them is added."""
    host = pb_route.VirtualHost(
        name=name,
        domains=[name] if name == "*" else [name, f"{name}."],
        request_headers_to_remove=_HIDDEN,
        request_headers_to_add=[_CLIENT],
        routes=[*_refusals(found), *(wire for way in ways for wire in _way(way, found))],
    )
    if not rbac.unrestricted(found.authorizations):
        rules = rbac.per_route(found.authorizations)
        host.typed_per_filter_config[rbac.HTTP_FILTER].CopyFrom(rules)
    return host


def _refusals(found: Inbound) -> Iterator[pb_route.Route]:
    """What an application may read as another path or host than this proxy does."""
    if paths_decide(found.http_routes):
        pattern = regex.RegexMatcher(regex="[^;]*;.*")
        yield _refused(pb_route.RouteMatch(safe_regex=pattern))
    if hosts_decide((*found.http_routes, *found.grpc_routes)):
        match = pb_route.RouteMatch(prefix="/")
        match.headers.append(_NOT_PLAIN)
        yield _refused(match)


def _refused(match: pb_route.RouteMatch) -> pb_route.Route:
    """400, whoever asks."""
    wire = changes.reply(match, 400, "")
    wire.typed_per_filter_config[rbac.HTTP_FILTER].CopyFrom(rbac.nothing_asked())
    _uncounted(wire)
    return wire


def _uncounted(wire: pb_route.Route) -> None:
    for filter_name, said in limits.off().items():
        wire.typed_per_filter_config[filter_name].CopyFrom(said)


def _way(way: Way, found: Inbound) -> Iterator[pb_route.Route]:
    """A match as two routes: what was HTTP/1 before our own HTTP/2, and everything else."""
    if not isinstance(way.route, InboundRoute | InboundGrpcRoute):
        return
    both = (*found.authorizations, *way.route.authorizations)
    labels = stats.joined(
        stats.server_labels(found.source, found.port),
        _route_labels(way.route),
        stats.open_labels(rbac.opened_by(both)),
        stats.limit_labels(found.rate_limit) if found.rate_limit is not None else (),
    )
    for wire in _onward(way):
        wire.name = "/".join(filter(None, stats.route_labels(way.route.source)))
        wire.metadata.CopyFrom(labelled(labels))
        if way.route.authorizations:
            wire.typed_per_filter_config[rbac.HTTP_FILTER].CopyFrom(rbac.per_route(both))
        if found.rate_limit is not None and not wire.HasField("route"):
            _uncounted(wire)
        yield wire


def _route_labels(route: InboundRoute | InboundGrpcRoute) -> tuple[str, str, str]:
    group, kind, _, name = stats.route_labels(route.source)
    return group, kind, name


def _onward(way: Way) -> Iterator[pb_route.Route]:
    said = way.rule.filters if isinstance(way.rule, InboundRule | InboundGrpcRule) else ()
    match = routes.route_match(way.match)
    answer = changes.answer(said, match)
    if answer is not None:
        yield answer
        return
    for cluster in (names.APP_HTTP1, names.APP):
        wire = pb_route.Route(match=match)
        if cluster == names.APP_HTTP1:
            wire.match.headers.append(_WAS_HTTP1)
        action = pb_route.RouteAction(
            cluster=cluster, timeout=duration(0), retry_policy=routes.harmless_retry()
        )
        changes.apply(wire, action, said)
        wire.route.CopyFrom(action)
        yield wire


_NOT_PLAIN: Final = pb_route.HeaderMatcher(
    name=":authority",
    string_match=string.StringMatcher(safe_regex=regex.RegexMatcher(regex=PLAIN)),
    invert_match=True,
)
"""In every virtual host: Envoy cuts off what stands behind the last colon, whatever it is."""
_WAS_HTTP1: Final = pb_route.HeaderMatcher(
    name=routes.PROTOCOL, string_match=string.StringMatcher(prefix="HTTP/1")
)
_CLIENT: Final = base.HeaderValueOption(
    header=base.HeaderValue(key=CLIENT, value="%DOWNSTREAM_PEER_DNS_SAN%"),
    append_action=base.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
)

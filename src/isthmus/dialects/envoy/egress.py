"""What no Service's listener is for: the listener of all other addresses, and routes out.

One listener looks at what comes, by port, address and first bytes. Envoy compares the port before
the address, so a port with routes of its own at one EgressNetwork is told of all others as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as pb
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.envoy import manager, names, routes, stats, streams
from isthmus.dialects.envoy.outbound import DETECT_TIMEOUT, INBOUND_PORT, PORT
from isthmus.dialects.envoy.streams import Raw
from isthmus.dialects.xds import rbac
from isthmus.engine import View, query
from isthmus.ir.names import Default
from isthmus.ir.outbound import Detect, Grpc, Http1, Http2, Outbound, Tcp, Tls
from isthmus.ir.proxy import OutboundName
from isthmus.mesh.queries import (
    ANY_PORT,
    INSIDE,
    UNMANAGED,
    ObjectKey,
    Place,
    classed,
    egress_names,
    egress_place,
    network_ref,
    outbound,
    outside,
    unmanaged,
    unseen_ports,
)
from isthmus.proto.xds import Resource, resource

OWN_PORTS: Final = (PORT, INBOUND_PORT)
"""Whoever dials the proxy itself is refused, or it would dial itself for ever."""

Meaning = tuple[ObjectKey | None, bool, bool]


class Part(NamedTuple):
    """Addresses of one meaning, at one port (0: every port that is not told by itself)."""

    meaning: Meaning
    prefixes: tuple[str, ...]
    port: int

    def match(self) -> component.FilterChainMatch:
        """Connections to here."""
        wire = component.FilterChainMatch(prefix_ranges=map(rbac.cidr_range, self.prefixes))
        if self.port:
            wire.destination_port.CopyFrom(UInt32Value(value=self.port))
        return wire

    def plain(self) -> component.FilterChainMatch:
        """Those of them that do not begin with TLS."""
        wire = self.match()
        wire.transport_protocol = "raw_buffer"
        return wire

    def http(self) -> component.FilterChainMatch:
        """Those of them that begin with HTTP, not inside TLS."""
        wire = self.plain()
        wire.application_protocols.extend(manager.PLAINTEXT_HTTP)
        return wire


Chains = Iterator[tuple[component.FilterChain, Sequence[str]]]
"""Chains with the clusters that they send to."""


# -------------------------------------------------------------------------------- listener


@query
def detect_listener(db: View, where: Place) -> Resource:
    """The listener for clients of a namespace; all of a class share one."""
    own = egress_place(db, where)
    if own != where:
        return detect_listener(db, own)
    found = list(_chains(db, where))
    unseen = unseen_ports(db, where).ranges
    wire = pb.Listener(
        name=names.DETECT,
        internal_listener=pb.Listener.InternalListenerConfig(),
        listener_filters=[
            manager.ORIGINAL_DST,
            manager.except_within(manager.SEE_TLS, unseen),
            manager.except_within(manager.SEE_HTTP, unseen),
        ],
        listener_filters_timeout=manager.limit(DETECT_TIMEOUT),
        continue_on_listener_filters_timeout=True,
        traffic_direction=base.OUTBOUND,
        filter_chains=(chain for chain, _ in found),
    )
    rest = _unmanaged_raw(UNMANAGED)
    wire.default_filter_chain.CopyFrom(manager.chain("tcp", rest.filters, labels=rest.labels))
    sent = {names.PASSTHROUGH, names.REFUSED}.union(*(clusters for _, clusters in found))
    return resource(wire, wire.name, clusters=sent)


def _chains(db: View, where: Place) -> Chains:
    for port in OWN_PORTS:
        match = component.FilterChainMatch(destination_port=UInt32Value(value=port))
        yield manager.chain(f"own-{port}", [manager.refuse()], match), ()
    told = {name.port for name in egress_names(db, where)} - set(OWN_PORTS)
    for port in sorted({*told, ANY_PORT}):
        for part in _parts(db, where, port):
            yield from _part(db, where, part)


def _parts(db: View, where: Place, port: int) -> list[Part]:
    """The map of addresses, those of one meaning together."""
    found: dict[Meaning, list[str]] = {}
    for region in outside(db, where):
        found.setdefault(region.meaning, []).append(region.prefix)
    return [Part(meaning, tuple(prefixes), port) for meaning, prefixes in found.items()]


def _part(db: View, where: Place, part: Part) -> Chains:
    network, refused, inside = part.meaning
    if refused:
        yield manager.chain(f"refused{_tail(part)}", [manager.refuse()], part.match()), ()
    elif network is None:
        yield from _unmanaged(INSIDE if inside else UNMANAGED, part)
    else:
        name = OutboundName(network_ref(network), part.port, where.namespace)
        yield from _network(name, outbound(db, name), part)


def _tail(part: Part) -> str:
    return f":{part.port}" if part.port else ""


# ------------------------------------------------------------------------ where nobody says


def _unmanaged(source: Default, part: Part) -> Chains:
    """As it comes to where it was going."""
    passing = routes.passthrough(source)
    name = f"{source.name}{_tail(part)}"
    client = manager.client_side(passing)
    yield manager.chain(f"{name}|http", [client], part.http()), (names.PASSTHROUGH,)
    yield from _bytes(name, _unmanaged_raw(source), part)


def _unmanaged_raw(source: Default) -> Raw:
    protocol = unmanaged(source, ANY_PORT).protocol
    (route,) = protocol.tcp if isinstance(protocol, Detect) else ()
    return streams.raw(route, routes.Parent(None, 0, source.name))


def _bytes(name: str, found: Raw, part: Part) -> Chains:
    """What is no HTTP, beside a chain that is for HTTP alone.

    That one is for plaintext, and Envoy looks no further than to the first chains that fit so far:
    what is plaintext too needs a chain of its own, like everything else.
    """
    for kind, match in (("tcp", part.plain()), ("tls", part.match())):
        chain = manager.chain(f"{name}|{kind}", found.filters, match, labels=found.labels)
        yield chain, found.clusters


# --------------------------------------------------------------------------- EgressNetworks


def _network(name: OutboundName, found: Outbound, part: Part) -> Chains:
    here, parent = names.egress(name), routes.parent_of(found)
    anywhere = name.port == ANY_PORT
    log = (stats.ANY_PORT if anywhere else stats.OUTBOUND).connections
    match found.protocol:
        case Detect(tcp=raw_routes):
            yield manager.chain(f"{here}|http", [_client(here, anywhere=anywhere)], part.http()), ()
            yield from _bytes(here, streams.raw(raw_routes[0], parent, log), part)
        case Grpc() | Http2():
            client = manager.client_side(here, manager.HTTP2)
            yield manager.chain(f"{here}|http", [client], part.match()), ()
        case Http1():
            client = manager.client_side(here, manager.HTTP1)
            yield manager.chain(f"{here}|http", [client], part.match()), ()
        case Tls(routes=tls_routes):
            told = streams.tls_chains(f"{here}|tls", tls_routes, parent, part.match(), log)
            yield from ((chain, raw.clusters) for chain, raw in told)
            yield manager.chain(f"{here}|refused", [manager.refuse()], part.match()), ()
        case Tcp(routes=raw_routes):
            raw = streams.raw(raw_routes[0], parent, log)
            chain = manager.chain(f"{here}|tcp", raw.filters, part.match(), labels=raw.labels)
            yield chain, raw.clusters


def _client(name: str, *, anywhere: bool) -> component.Filter:
    count = stats.ANY_PORT if anywhere else stats.OUTBOUND
    return manager.client_side(name, count=count, denies=True)


@query
def egress_routes(db: View, name: OutboundName) -> Resource | None:
    """The routes of an EgressNetwork's port; None where it has no HTTP."""
    own = classed(db, name)
    if own != name:
        return egress_routes(db, own)
    return routes.routes_of(db, name, names.egress(name))

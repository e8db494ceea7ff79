"""What a gRPC server that listens by xDS is told: who may call what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from envoy.config.core.v3 import address_pb2 as address
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as listener
from envoy.config.route.v3 import route_components_pb2 as route
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.type.matcher.v3 import regex_pb2 as regex

from isthmus.dialects.grpc import tls
from isthmus.dialects.grpc.clients import ROUTER
from isthmus.dialects.xds import rbac
from isthmus.dialects.xds.hosts import Way, by_host
from isthmus.dialects.xds.matches import grpc_match, http_match
from isthmus.dialects.xds.ports import read_port
from isthmus.engine import View, query
from isthmus.ir.inbound import (
    Inbound,
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
    Speech,
)
from isthmus.ir.names import Origin, Ref
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import Fail, Forbid, GrpcMatch, HttpMatch, Redirect, Rewrite
from isthmus.mesh.queries import inbound
from isthmus.proto.xds import Resource, packed, resource

TEMPLATE: Final = "grpc/server?xds.resource.listening_address="
"""`server_listener_resource_name_template` of the client's bootstrap, without its `%s`."""


def listens(name: str) -> tuple[str, int] | None:
    """The address and port in a server's resource name."""
    if not name.startswith(TEMPLATE):
        return None
    host, _, port = name.removeprefix(TEMPLATE).rpartition(":")
    number = read_port(port)
    return (host.strip("[]"), number) if number and host else None


@query
def server_listener(db: View, workload: Ref, name: str, host: str, port: int) -> Resource:
    """The listener of a server at an address: mesh TLS if the workload is strict."""
    found = inbound(db, InboundName(workload, port))
    calls = attached(found)
    filters = [ROUTER]
    if calls or not rbac.unrestricted(found.authorizations):
        filters.insert(0, _rules(found))
    manager = hcm.HttpConnectionManager(
        stat_prefix="inbound",
        http_filters=filters,
        route_config=_routes(found, calls) if calls else _everything(),
    )
    chain = component.FilterChain(
        name="default",
        filters=[component.Filter(name="http", typed_config=packed(manager))],
    )
    if found.strict:
        chain.transport_socket.CopyFrom(tls.downstream())
    where = address.SocketAddress(address=host, port_value=port)
    wire = listener.Listener(
        name=name, address=address.Address(socket_address=where), filter_chains=[chain]
    )
    return resource(wire, name, origin=found.source)


def _rules(found: Inbound) -> hcm.HttpFilter:
    config = http_rbac.RBAC()
    if not rbac.unrestricted(found.authorizations):
        config.rules.CopyFrom(rbac.rules(found.authorizations))
    return hcm.HttpFilter(name=rbac.HTTP_FILTER, typed_config=packed(config))


# -------------------------------------------------------------------------------- routes


def attached(found: Inbound) -> tuple[InboundRoute | InboundGrpcRoute, ...]:
    """The routes that somebody wrote; default ones change nothing for calls."""
    some = found.grpc_routes if found.speech is Speech.GRPC else found.http_routes
    return tuple(one for one in some if isinstance(one.source, Origin))


def _everything() -> route_pb2.RouteConfiguration:
    return _configured([("*", [_passing(route.RouteMatch(prefix="/"))])])


def _routes(
    found: Inbound, calls: Sequence[InboundRoute | InboundGrpcRoute]
) -> route_pb2.RouteConfiguration:
    hosts = (
        (domain, [wire for way in ways for wire in _way(way, found)])
        for domain, ways in by_host(calls)
    )
    return _configured(hosts)


def _configured(
    hosts: Iterable[tuple[str, Sequence[route.Route]]],
) -> route_pb2.RouteConfiguration:
    return route_pb2.RouteConfiguration(
        name="inbound",
        virtual_hosts=[
            route.VirtualHost(name=domain, domains=[domain], routes=routes)
            for domain, routes in hosts
        ],
    )


def _passing(match: route.RouteMatch) -> route.Route:
    return route.Route(match=match, non_forwarding_action=route.NonForwardingAction())


def _way(way: Way, found: Inbound) -> Iterator[route.Route]:
    """A match, and who may make the calls that it is for. No call has a query or another method."""
    if not isinstance(way.rule, InboundRule | InboundGrpcRule):
        return
    match = _match(way.match)
    if match is None:
        return
    wire = _passing(match)
    own = way.route.authorizations if isinstance(way.route, InboundRoute | InboundGrpcRoute) else ()
    asked = rbac.per_route((*found.authorizations, *own))
    if any(isinstance(one, Fail | Forbid | Redirect | Rewrite) for one in way.rule.filters):
        asked = rbac.nobody()
    wire.typed_per_filter_config[rbac.HTTP_FILTER].CopyFrom(asked)
    yield wire


def _match(said: HttpMatch | GrpcMatch) -> route.RouteMatch | None:
    """In the words that gRPC knows: it has no prefix by segments, and nothing but POST."""
    if isinstance(said, GrpcMatch):
        wire = grpc_match(said)
        wire.ClearField("grpc")
        return wire
    if said.query or (said.method and "POST" not in said.method):
        return None
    wire = http_match(msgspec.structs.replace(said, method=()))
    base = wire.path_separated_prefix
    if base:
        wire.safe_regex.CopyFrom(regex.RegexMatcher(regex=f"{re.escape(base)}(?:/.*)?"))
    return wire

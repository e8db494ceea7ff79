"""What a gRPC server that listens by xDS is told: who may call."""

from __future__ import annotations

from typing import Final

from envoy.config.core.v3 import address_pb2 as address
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2 as listener
from envoy.config.route.v3 import route_components_pb2 as route
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.extensions.transport_sockets.tls.v3 import common_pb2 as common
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as tls
from google.protobuf.wrappers_pb2 import BoolValue

from isthmus.dialects.grpc.clients import ROUTER
from isthmus.dialects.xds import rbac
from isthmus.dialects.xds.ports import read_port
from isthmus.engine import View, query
from isthmus.ir.inbound import Inbound
from isthmus.ir.names import Ref
from isthmus.ir.proxy import InboundName
from isthmus.mesh.queries import inbound
from isthmus.proto.xds import Resource, packed, resource

TEMPLATE: Final = "grpc/server?xds.resource.listening_address="
"""`server_listener_resource_name_template` of the client's bootstrap, without its `%s`."""

PROVIDER: Final = "default"
"""The instance of `certificate_providers` in the process's bootstrap: the agent's files."""


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
    filters = [ROUTER]
    if not rbac.unrestricted(found.authorizations):
        filters.insert(0, _rules(found))
    manager = hcm.HttpConnectionManager(
        stat_prefix="inbound", http_filters=filters, route_config=_everything()
    )
    chain = component.FilterChain(
        name="default",
        filters=[component.Filter(name="http", typed_config=packed(manager))],
    )
    if found.strict:
        chain.transport_socket.name = "envoy.transport_sockets.tls"
        chain.transport_socket.typed_config.CopyFrom(packed(_tls()))
    where = address.SocketAddress(address=host, port_value=port)
    wire = listener.Listener(
        name=name, address=address.Address(socket_address=where), filter_chains=[chain]
    )
    return resource(wire, name, origin=found.source)


def _rules(found: Inbound) -> hcm.HttpFilter:
    config = http_rbac.RBAC(rules=rbac.rules(found.authorizations))
    return hcm.HttpFilter(name=rbac.HTTP_FILTER, typed_config=packed(config))


def _everything() -> route_pb2.RouteConfiguration:
    all_calls = route.Route(
        match=route.RouteMatch(prefix="/"), non_forwarding_action=route.NonForwardingAction()
    )
    host = route.VirtualHost(name="*", domains=["*"], routes=[all_calls])
    return route_pb2.RouteConfiguration(name="inbound", virtual_hosts=[host])


def _tls() -> tls.DownstreamTlsContext:
    """Keys and trust from the process's own provider of certificates."""
    own = common.CertificateProviderPluginInstance(instance_name=PROVIDER)
    validation = common.CertificateValidationContext(ca_certificate_provider_instance=own)
    context = tls.CommonTlsContext(
        tls_certificate_provider_instance=own, validation_context=validation
    )
    return tls.DownstreamTlsContext(
        common_tls_context=context, require_client_certificate=BoolValue(value=True)
    )

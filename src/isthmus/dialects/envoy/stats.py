"""Metrics: few series with packed labels, which the agent unpacks.

The number of labels is what metrics cost on the data path. So everything that is known beforehand
is one label, `labels`, a text joined by bars that lies in the metadata of routes and chains:

    requests     parent_group|parent_kind|parent_namespace|parent_name|parent_port|
                 parent_section_name|route_group|route_kind|route_namespace|route_name
    inbound      srv_group|srv_kind|srv_name|srv_port|route_group|route_kind|route_name|
                 open_kind|open_name: of who lets everybody in, "" where rules ask
    connections  srv_group|srv_kind|srv_name|srv_port|open_kind|open_name

and beside it only what a request decides. One counter and one histogram per logger; sums and other
families are made on re-export. Values never hold a bar: names of objects cannot.

    isthmus_outbound_http   labels, hostname, status, grpc, flags, details
    isthmus_outbound_tcp    labels, flags
    isthmus_inbound_http    labels, status, grpc, flags, client, authz
    isthmus_inbound_tcp     labels, port, flags, client, authz
    isthmus_*_ms            histograms: labels only

`authz` is the rule that let a client in (`authorizationpolicy/shop/cart`, `default/localhost`),
with `~` in front where it only audits. Where rules ask and it is empty, the client was refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from envoy.config.accesslog.v3 import accesslog_pb2 as accesslog
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from xds.type.v3 import typed_struct_pb2

from isthmus.ir.names import Default, Origin, Ref, Source
from isthmus.proto.xds import PREFIX, packed

SERIES: Final = 20_000
"""The most series of one counter in one proxy: host names come from outside."""

ALLOWED: Final = ("isthmus_", "cluster_manager.", "listener_manager.", "server.")
"""Beginnings of the names of the only statistics that are kept."""

BUCKETS: Final = (25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 10_000.0)
"""Upper bounds of the histograms, in milliseconds."""

_AUTHZ: Final = "%DYNAMIC_METADATA(envoy.filters.http.rbac:enforced_effective_policy_id)%"
_TCP_AUTHZ: Final = "%DYNAMIC_METADATA(envoy.filters.network.rbac:enforced_effective_policy_id)%"


def _tags(said: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value_format": value} for name, value in said.items()]


def _logger(name: str, labels: str, tags: Mapping[str, str]) -> accesslog.AccessLog:
    """Envoy's stats logger, newer than the generated classes: hence a TypedStruct."""
    counter = {"stat": {"name": name, "tags": _tags({"labels": labels, **tags})}, "value_fixed": 1}
    timing = {
        "stat": {"name": f"{name}_ms", "tags": _tags({"labels": labels})},
        "unit": "Milliseconds",
        "value_format": "%DURATION%",
    }
    config = {
        "stats_scope": {"prefix": "", "enable_eviction": True, "max_counters": SERIES},
        "counters": [counter],
        "histograms": [timing],
    }
    value = Struct()
    json_format.ParseDict(config, value)
    wire = typed_struct_pb2.TypedStruct(
        type_url=f"{PREFIX}envoy.extensions.access_loggers.stats.v3.Config", value=value
    )
    return accesslog.AccessLog(name="envoy.access_loggers.stats", typed_config=packed(wire))


_ROUTE: Final = "%METADATA(ROUTE:isthmus:labels)%"
_CHAIN: Final = "%METADATA(LISTENER_FILTER_CHAIN:isthmus:labels)%"

_REQUEST: Final = {
    "hostname": "%REQ(:AUTHORITY)%",
    "status": "%RESPONSE_CODE%",
    "grpc": "%GRPC_STATUS_NUMBER%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
}
OUTBOUND_HTTP: Final = _logger("isthmus_outbound_http", _ROUTE, _REQUEST)
OUTBOUND_TCP: Final = _logger("isthmus_outbound_tcp", _CHAIN, {"flags": "%RESPONSE_FLAGS%"})

_PORT: Final = "%DOWNSTREAM_LOCAL_PORT%"
ANY_PORT_HTTP: Final = _logger(
    "isthmus_outbound_http",
    f"%METADATA(ROUTE:isthmus:parent)%|{_PORT}|%METADATA(ROUTE:isthmus:route)%",
    _REQUEST,
)
ANY_PORT_TCP: Final = _logger(
    "isthmus_outbound_tcp",
    f"%METADATA(LISTENER_FILTER_CHAIN:isthmus:parent)%|{_PORT}"
    "|%METADATA(LISTENER_FILTER_CHAIN:isthmus:route)%",
    {"flags": "%RESPONSE_FLAGS%"},
)
"""The same where the parent's port is the one that was dialled, whichever that is."""

INBOUND_HTTP: Final = _logger(
    "isthmus_inbound_http",
    _ROUTE,
    {
        "status": "%RESPONSE_CODE%",
        "grpc": "%GRPC_STATUS_NUMBER%",
        "flags": "%RESPONSE_FLAGS%",
        "client": "%DOWNSTREAM_PEER_DNS_SAN%",
        "authz": _AUTHZ,
    },
)
INBOUND_TCP: Final = _logger(
    "isthmus_inbound_tcp",
    _CHAIN,
    {
        "port": "%DOWNSTREAM_LOCAL_PORT%",
        "flags": "%RESPONSE_FLAGS%",
        "client": "%DOWNSTREAM_PEER_DNS_SAN%",
        "authz": _TCP_AUTHZ,
    },
)


def parent_labels(parent: Ref | None, port: int, name: str = "") -> tuple[str, ...]:
    """Linkerd's labels of a parent, in their order; without an object, the default's `name`."""
    if parent is None:
        return ("", "default", "", name, "", "")
    shown = str(port) if port else ""
    return (parent.group or "core", parent.kind, parent.namespace, parent.name, shown, "")


def route_labels(source: Source) -> tuple[str, str, str, str]:
    """Linkerd's labels of a route, in their order."""
    match source:
        case Default(name=name):
            return ("", "default", "", name)
        case Origin(ref=ref):
            return (ref.group or "core", ref.kind, ref.namespace, ref.name)


def backend_labels(source: Source) -> tuple[str, ...]:
    """Linkerd's labels of a backend, in their order."""
    group, kind, namespace, name = route_labels(source)
    port = source.port if isinstance(source, Origin) else 0
    return (group, kind, namespace, name, str(port) if port else "", "")


def server_labels(source: Source, port: int) -> tuple[str, ...]:
    """Linkerd's labels of who describes a port: a Server, or the default policy."""
    group, kind, _, name = route_labels(source)
    return (group, kind.lower(), name, str(port) if port else "")


def open_labels(source: Source | None) -> tuple[str, str]:
    """Kind and name of the authorization that lets everybody in; None where rules ask."""
    if source is None:
        return ("", "")
    _, kind, _, name = route_labels(source)
    return (kind.lower(), name)


def joined(*groups: tuple[str, ...]) -> str:
    """Labels as one text."""
    return "|".join(part for group in groups for part in group)

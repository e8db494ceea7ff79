"""Metrics: few series with one label, which the agent takes apart.

The number of labels is what metrics cost on the data path: each is put together and looked up for
every request. So there is one, `labels`, a text of groups between semicolons. What is known
beforehand lies in the metadata of routes, clusters and chains, its parts joined by bars:

    route        parent_group|parent_kind|parent_namespace|parent_name|parent_port|
                 parent_section_name|route_group|route_kind|route_namespace|route_name, and the
                 backend behind it, where requests go where they were going
    backend      backend_group|backend_kind|backend_namespace|backend_name|backend_port|
                 backend_section_name: of the cluster, which for some is only `-`
    server       srv_group|srv_kind|srv_name|srv_port
    served       server|route_group|route_kind|route_name|open_kind|open_name: the latter of who
                 lets everybody in, "" where rules ask; and the limit behind it, where there is one
    opened       server|open_kind|open_name
    limit        ratelimit_group|ratelimit_kind|ratelimit_name|ratelimit_scope

and these are the counters, each with the groups of its label; the last may hold anything:

    isthmus_outbound_http   route; backend; status; grpc; flags; attempts; host
    isthmus_outbound_try    route; backend; status; grpc; flags
    isthmus_outbound_tcp    route; backend; what; flags; ip; port; server name
    isthmus_inbound_http    served; status; grpc; flags; port; authz; client
    isthmus_inbound_lost    server; port; client
    isthmus_inbound_tcp     opened; what; flags; port; authz; client
    isthmus_outbound_http_ms  a histogram: route; backend
    isthmus_inbound_http_ms   a histogram: served

`isthmus_outbound_try` counts attempts that failed, and no others; `isthmus_inbound_lost` requests
that no route is for. `what` says whether a connection
was made or ended. `authz` is the rule that let a client in (`authorizationpolicy/shop/cart`,
`default/localhost`), with `~` in front where it only audits. Where rules ask and it is empty, the
client was refused. Names of objects hold neither bars nor semicolons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from envoy.config.accesslog.v3 import accesslog_pb2 as accesslog
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as route_components
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from xds.type.v3 import typed_struct_pb2

from isthmus.ir.inbound import RateLimit
from isthmus.ir.names import Default, Origin, Ref, Source
from isthmus.proto.xds import PREFIX, packed

SERIES: Final = 20_000
"""The most series of one counter in one proxy: host names come from outside."""

TIMED: Final = 2_000
"""The most histograms of one logger."""

ALLOWED: Final = ("isthmus_", "cluster_manager.", "listener_manager.", "server.")
"""Beginnings of the names of the only statistics that are kept."""

BUCKETS: Final = (
    1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 10_000.0,
)  # fmt: skip
"""Upper bounds of the histograms, in milliseconds: Linkerd's, and some between."""

SOMEBODY: Final = "-"
"""Labels of clusters that are no backend by themselves: a request to them was sent somewhere."""

FAILED: Final = 400
"""The least status of an attempt that failed."""

_AUTHZ: Final = "%DYNAMIC_METADATA(envoy.filters.http.rbac:enforced_effective_policy_id)%"
_TCP_AUTHZ: Final = "%DYNAMIC_METADATA(envoy.filters.network.rbac:enforced_effective_policy_id)%"
_ROUTE: Final = "%METADATA(ROUTE:isthmus:labels)%"
_CHAIN: Final = "%METADATA(LISTENER_FILTER_CHAIN:isthmus:labels)%"
_CLUSTER: Final = "%METADATA(CLUSTER:isthmus:labels)%"
_HOST: Final = "%REQ(:AUTHORITY):253%"
_ENDED: Final = "%RESPONSE_CODE%;%GRPC_STATUS_NUMBER%;%RESPONSE_FLAGS%"
_PORT: Final = "%DOWNSTREAM_LOCAL_PORT%"
_CLIENT: Final = "%DOWNSTREAM_PEER_DNS_SAN%"


def _stat(name: str, *groups: str) -> dict[str, Any]:
    return {"name": name, "tags": [{"name": "labels", "value_format": ";".join(groups)}]}


def _logger(name: str, groups: Sequence[str], timed: Sequence[str] = ()) -> accesslog.AccessLog:
    """Envoy's stats logger, newer than the generated classes: hence a TypedStruct."""
    config: dict[str, Any] = {
        "stats_scope": {
            "prefix": "",
            "enable_eviction": True,
            "max_counters": SERIES,
            "max_histograms": TIMED,
        },
        "counters": [{"stat": _stat(name, *groups), "value_fixed": 1}],
    }
    if timed:
        stat = _stat(f"{name}_ms", *timed)
        timing = {"stat": stat, "unit": "Milliseconds", "value_format": "%DURATION%"}
        config["histograms"] = [timing]
    value = Struct()
    json_format.ParseDict(config, value)
    wire = typed_struct_pb2.TypedStruct(
        type_url=f"{PREFIX}envoy.extensions.access_loggers.stats.v3.Config", value=value
    )
    return accesslog.AccessLog(name="envoy.access_loggers.stats", typed_config=packed(wire))


class Loggers(NamedTuple):
    """What counts requests, attempts that fail, and connections, of what leaves."""

    requests: accesslog.AccessLog
    attempts: accesslog.AccessLog
    connections: accesslog.AccessLog


def _outbound(route: str, chain: str) -> Loggers:
    requests = _logger(
        "isthmus_outbound_http",
        (route, _CLUSTER, _ENDED, "%UPSTREAM_REQUEST_ATTEMPT_COUNT%", _HOST),
        (route, _CLUSTER),
    )
    attempts = _logger("isthmus_outbound_try", (route, _CLUSTER, _ENDED))
    attempts.filter.CopyFrom(_failed())
    end = ("%ACCESS_LOG_TYPE%;%RESPONSE_FLAGS%", "%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%", _PORT)
    name = "%REQUESTED_SERVER_NAME%"
    connections = _logger("isthmus_outbound_tcp", (chain, _CLUSTER, *end, name))
    return Loggers(requests, attempts, connections)


def _failed() -> accesslog.AccessLogFilter:
    """Attempts that failed. Those that did not are counted with their requests."""
    least = base.RuntimeUInt32(default_value=FAILED, runtime_key="isthmus.failed")
    status = accesslog.ComparisonFilter(op=accesslog.ComparisonFilter.GE, value=least)
    grpc = accesslog.HeaderFilter(
        header=route_components.HeaderMatcher(
            name="content-type", string_match=string.StringMatcher(prefix="application/grpc")
        )
    )
    not_ok = accesslog.GrpcStatusFilter(statuses=[accesslog.GrpcStatusFilter.OK], exclude=True)
    call = accesslog.AndFilter(
        filters=[
            accesslog.AccessLogFilter(header_filter=grpc),
            accesslog.AccessLogFilter(grpc_status_filter=not_ok),
        ]
    )
    some = [
        accesslog.AccessLogFilter(status_code_filter=accesslog.StatusCodeFilter(comparison=status)),
        accesslog.AccessLogFilter(response_flag_filter=accesslog.ResponseFlagFilter()),
        accesslog.AccessLogFilter(and_filter=call),
    ]
    return accesslog.AccessLogFilter(or_filter=accesslog.OrFilter(filters=some))


OUTBOUND: Final = _outbound(_ROUTE, _CHAIN)
ANY_PORT: Final = _outbound(
    f"%METADATA(ROUTE:isthmus:parent)%|{_PORT}|%METADATA(ROUTE:isthmus:route)%",
    f"%METADATA(LISTENER_FILTER_CHAIN:isthmus:parent)%|{_PORT}"
    "|%METADATA(LISTENER_FILTER_CHAIN:isthmus:route)%",
)
"""The same where the parent's port is the one that was dialled, whichever that is."""

INBOUND_HTTP: Final = _logger(
    "isthmus_inbound_http",
    (_ROUTE, _ENDED, _PORT, _AUTHZ, _CLIENT),
    (_ROUTE,),
)
INBOUND_LOST: Final = _logger("isthmus_inbound_lost", (_CHAIN, _PORT, _CLIENT))
INBOUND_LOST.filter.response_flag_filter.flags.append("NR")
INBOUND_TCP: Final = _logger(
    "isthmus_inbound_tcp",
    (_CHAIN, "%ACCESS_LOG_TYPE%;%RESPONSE_FLAGS%", _PORT, _TCP_AUTHZ, _CLIENT),
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


def limit_labels(limit: RateLimit) -> tuple[str, str, str, str]:
    """Linkerd's labels of a rate limit, in their order. Which of two scopes said no is not seen."""
    group, kind, _, name = route_labels(limit.source)
    return (group, kind, name, "total" if limit.total is not None else "identity")


def joined(*groups: tuple[str, ...]) -> str:
    """Labels as one text."""
    return "|".join(part for group in groups for part in group)

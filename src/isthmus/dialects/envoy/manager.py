"""The parts of listeners: HTTP connection managers, TCP proxies, filters before both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from envoy.config.accesslog.v3 import accesslog_pb2 as accesslog
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.core.v3 import protocol_pb2 as protocol
from envoy.config.core.v3 import substitution_format_string_pb2 as substitution
from envoy.config.listener.v3 import listener_components_pb2 as pb
from envoy.config.route.v3 import route_components_pb2 as route_components
from envoy.config.route.v3 import route_pb2 as route
from envoy.extensions.filters.common.set_filter_state.v3 import value_pb2 as state
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac
from envoy.extensions.filters.http.router.v3 import router_pb2 as router
from envoy.extensions.filters.listener.http_inspector.v3 import http_inspector_pb2
from envoy.extensions.filters.listener.original_dst.v3 import original_dst_pb2
from envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2 import (  # noqa: E501
    HttpConnectionManager as Manager,
)
from envoy.extensions.filters.network.set_filter_state.v3 import set_filter_state_pb2
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2 as tcp
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from isthmus.dialects.envoy import limits, names, stats, tls
from isthmus.dialects.envoy.clusters import ADS, labelled
from isthmus.dialects.xds import rbac
from isthmus.ir.inbound import Authorization
from isthmus.proto.xds import duration, packed

PLAINTEXT_HTTP: Final = ("http/1.0", "http/1.1", "h2c")
"""What the inspector calls the versions of HTTP that it sees."""

_MANAGER: Final = "envoy.filters.network.http_connection_manager"
HTTP1: Final = Manager.HTTP1
HTTP2: Final = Manager.HTTP2

_TRUE: Final = BoolValue(value=True)
_FOREVER: Final = Duration()
"""No limit: how long silence may last is for the application to say."""

_ATTEMPTS: Final = UInt32Value(value=3)


def _filter(name: str, message: Message) -> pb.Filter:
    return pb.Filter(name=name, typed_config=packed(message))


# --------------------------------------------------------------------------------- HTTP


def _http_filter(name: str, message: Message) -> hcm.HttpFilter:
    return hcm.HttpFilter(name=name, typed_config=packed(message))


def _router(upstream_log: Iterable[accesslog.AccessLog] = ()) -> hcm.HttpFilter:
    said = router.Router(suppress_envoy_headers=True, upstream_log=upstream_log)
    return _http_filter("envoy.filters.http.router", said)


_ROUTER: Final = _router()
_RBAC: Final = hcm.HttpFilter(
    name=rbac.HTTP_FILTER, typed_config=packed(http_rbac.RBAC()), disabled=True
)
"""Sleeps until routes have rules for it, and costs nothing where nobody is asked. The rules are in
the routes, so that a change of them drains nobody."""


def _manager(
    side: str,
    codec: Manager.CodecType.ValueType,
    filters: Iterable[hcm.HttpFilter],
    logs: Iterable[accesslog.AccessLog],
) -> Manager:
    """What both sides have in common: as little of the proxy to be seen as can be.

    Paths have one form before anything looks at them (decision 20). Bodies are passed on as they
    come, upgrades to websockets too.
    """
    return Manager(
        stat_prefix=side,
        codec_type=codec,
        http_filters=filters,
        access_log=logs,
        upgrade_configs=[Manager.UpgradeConfig(upgrade_type="websocket")],
        http_protocol_options=protocol.Http1ProtocolOptions(accept_http_10=True),
        http2_protocol_options=protocol.Http2ProtocolOptions(allow_connect=True),
        stream_idle_timeout=_FOREVER,
        normalize_path=_TRUE,
        merge_slashes=True,
        path_with_escaped_slashes_action=Manager.REJECT_REQUEST,
        generate_request_id=BoolValue(value=False),
        preserve_external_request_id=True,
        skip_xff_append=True,
        server_header_transformation=Manager.PASS_THROUGH,
    )


def _told_grpc(status: int, code: int, flag: str = "") -> hcm.LocalReplyConfig:
    """GRPC clients that would be told this HTTP status by the proxy itself are told a code."""
    grpc = accesslog.HeaderFilter(
        header=route_components.HeaderMatcher(
            name="content-type", string_match=string.StringMatcher(prefix="application/grpc")
        )
    )
    by_status = accesslog.ComparisonFilter(
        op=accesslog.ComparisonFilter.EQ,
        value=base.RuntimeUInt32(default_value=status, runtime_key="isthmus.local_reply"),
    )
    parts = [
        accesslog.AccessLogFilter(header_filter=grpc),
        accesslog.AccessLogFilter(
            status_code_filter=accesslog.StatusCodeFilter(comparison=by_status)
        ),
    ]
    if flag:
        flags = accesslog.ResponseFlagFilter(flags=[flag])
        parts.append(accesslog.AccessLogFilter(response_flag_filter=flags))
    said = base.HeaderValueOption(
        header=base.HeaderValue(key="grpc-status", value=str(code)),
        append_action=base.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    both = accesslog.AccessLogFilter(and_filter=accesslog.AndFilter(filters=parts))
    return hcm.LocalReplyConfig(mappers=[hcm.ResponseMapper(filter=both, headers_to_add=[said])])


DENIED_GRPC: Final = _told_grpc(403, 9)
"""gRPC through a port that nobody said is gRPC: FAILED_PRECONDITION, as Linkerd answers it."""

NOT_FOUND_GRPC: Final = _told_grpc(404, 5, "NR")
"""A call that no GRPCRoute is for: NOT_FOUND, where Envoy would say that it is not implemented."""


def client_side(
    routes: str | route.RouteConfiguration,
    codec: Manager.CodecType.ValueType = Manager.AUTO,
    *,
    count: stats.Loggers = stats.OUTBOUND,
    denies: bool = False,
) -> pb.Filter:
    """Requests of the application on their way out, by routes of that name or these.

    `denies`: some of them may be refused though nobody said that they are gRPC.
    """
    wire = _manager("outbound", codec, [_router([count.attempts])], [count.requests])
    wire.local_reply_config.CopyFrom(NOT_FOUND_GRPC)
    if denies:
        wire.local_reply_config.MergeFrom(DENIED_GRPC)
    if isinstance(routes, str):
        wire.rds.CopyFrom(hcm.Rds(config_source=ADS, route_config_name=routes))
    else:
        wire.route_config.CopyFrom(routes)
    return _filter(_MANAGER, wire)


def server_side(routes: str, codec: Manager.CodecType.ValueType = Manager.AUTO) -> pb.Filter:
    """Requests for the application. It learns who calls; what a caller says of that is removed."""
    filters = [_RBAC, *limits.sleeping(), _ROUTER]
    wire = _manager("inbound", codec, filters, [stats.INBOUND_HTTP, stats.INBOUND_LOST])
    wire.local_reply_config.CopyFrom(NOT_FOUND_GRPC)
    wire.rds.CopyFrom(hcm.Rds(config_source=ADS, route_config_name=routes))
    wire.forward_client_cert_details = Manager.SANITIZE_SET
    wire.set_current_client_cert_details.CopyFrom(
        Manager.SetCurrentClientCertDetails(uri=True, dns=True)
    )
    return _filter(_MANAGER, wire)


# ---------------------------------------------------------------------------------- TCP


def carry(
    side: str,
    targets: Sequence[tuple[str, int]],
    log: accesslog.AccessLog | None,
) -> pb.Filter:
    """Bytes to one of these clusters, by weight. They are counted when made, and when ended."""
    wire = tcp.TcpProxy(
        stat_prefix=side,
        idle_timeout=_FOREVER,
        max_connect_attempts=_ATTEMPTS,
        access_log=[log] if log is not None else [],
    )
    wire.access_log_options.flush_access_log_on_connected = log is not None
    if len(targets) == 1:
        wire.cluster = targets[0][0]
    else:
        weights = tcp.TcpProxy.WeightedCluster.ClusterWeight
        some = [weights(name=name, weight=weight) for name, weight in targets if weight]
        wire.weighted_clusters.CopyFrom(tcp.TcpProxy.WeightedCluster(clusters=some))
    return _filter("envoy.filters.network.tcp_proxy", wire)


def refuse(log: accesslog.AccessLog | None = None) -> pb.Filter:
    """Close the connection."""
    return carry("refused", [(names.REFUSED, 1)], log)


def remember(key: str, value: str) -> pb.Filter:
    """Say something of the connection that the other end of this proxy reads."""
    text = substitution.SubstitutionFormatString()
    text.text_format_source.inline_string = value
    said = state.FilterStateValue(
        object_key=key, format_string=text, shared_with_upstream=state.FilterStateValue.ONCE
    )
    config = set_filter_state_pb2.Config(on_new_connection=[said])
    return _filter("envoy.filters.network.set_filter_state", config)


SPEAKS_RAW: Final = remember("envoy.network.application_protocols", tls.TCP)
"""The sidecar at the other end is told that raw bytes follow."""

ORIGINAL: Final = remember(
    "envoy.filters.listener.original_dst.local_ip", "%DOWNSTREAM_LOCAL_ADDRESS%"
)
"""Where the client was going, for the listener that the connection is handed to."""


def admit(
    authorizations: Sequence[Authorization], onward: pb.Filter, *, meshed: bool
) -> list[pb.Filter]:
    """Bytes onward from those who may send them; `meshed`: they came by mesh TLS.

    A rule looks at a connection when the client's first bytes are there. So what is known before,
    that nobody or everybody is admitted, is no rule: a server that speaks first says nothing to
    strangers.
    """
    left = rbac.left_to_ask(authorizations, meshed=meshed)
    if not left:
        return [refuse(stats.INBOUND_TCP)]
    if rbac.unrestricted(left):
        return [onward]
    rules = pb.Filter(name=rbac.NETWORK_FILTER, typed_config=rbac.for_connections(left))
    return [rules, onward]


# --------------------------------------------------------------------- filters before chains


def _before(name: str, message: Message) -> pb.ListenerFilter:
    return pb.ListenerFilter(name=f"envoy.filters.listener.{name}", typed_config=packed(message))


ORIGINAL_DST: Final = _before("original_dst", original_dst_pb2.OriginalDst())
SEE_HTTP: Final = _before("http_inspector", http_inspector_pb2.HttpInspector())
SEE_TLS: Final = _before("tls_inspector", tls_inspector_pb2.TlsInspector())


def except_on(seen: pb.ListenerFilter, ports: Sequence[int]) -> pb.ListenerFilter:
    """The same filter, which does not look at connections to these ports."""
    return except_within(seen, [(port, port) for port in ports])


def except_within(seen: pb.ListenerFilter, ports: Sequence[tuple[int, int]]) -> pb.ListenerFilter:
    """The same filter, which does not look at connections to ports in these ranges."""
    if not ports:
        return seen
    parts = [_within(*each) for each in ports]
    wire = pb.ListenerFilter()
    wire.CopyFrom(seen)
    if len(parts) == 1:
        wire.filter_disabled.CopyFrom(parts[0])
    else:
        matches = pb.ListenerFilterChainMatchPredicate.MatchSet(rules=parts)
        wire.filter_disabled.or_match.CopyFrom(matches)
    return wire


def _within(low: int, high: int) -> pb.ListenerFilterChainMatchPredicate:
    wire = pb.ListenerFilterChainMatchPredicate()
    wire.destination_port_range.start = low
    wire.destination_port_range.end = high + 1
    return wire


def chain(
    name: str,
    filters: Iterable[pb.Filter],
    match: pb.FilterChainMatch | None = None,
    *,
    labels: str | base.Metadata = "",
    socket: base.TransportSocket | None = None,
) -> pb.FilterChain:
    """A named chain. One that keeps name and content keeps its connections when others change."""
    wire = pb.FilterChain(name=name, filters=filters)
    if match is not None:
        wire.filter_chain_match.CopyFrom(match)
    if labels:
        said = labelled(labels) if isinstance(labels, str) else labels
        wire.metadata.CopyFrom(said)
    if socket is not None:
        wire.transport_socket.CopyFrom(socket)
    return wire


def limit(milliseconds: int) -> Duration:
    """How long a listener's filters may wait for the first bytes."""
    return duration(milliseconds)

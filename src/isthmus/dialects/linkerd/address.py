"""Endpoints as WeightedAddr."""

from __future__ import annotations

from typing import Final

from google.protobuf.duration_pb2 import Duration

from isthmus.dialects.linkerd.wire import tcp_address
from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Speaks
from isthmus.ir.names import Dns, Identity, Spiffe
from isthmus.mesh.queries import Http2Params, Member, endpoint, settings
from isthmus.proto.linkerd import destination_pb2 as pb

WEIGHT: Final = 10_000
"""The wire weight of an endpoint that weighs as much as any other."""


@query
def encoded(db: View, member: Member) -> bytes | None:
    """A member as WeightedAddr; None for one that cannot be told."""
    found = endpoint(db, member)
    if found is None:
        return None
    return weighted_addr(found, settings(db).meshed_http2).SerializeToString(deterministic=True)


def weighted_addr(found: Endpoint, http2: Http2Params | None) -> pb.WeightedAddr:
    """Everything a proxy needs to dial an endpoint; `http2` counts where a proxy is behind it."""
    wire = pb.WeightedAddr(
        addr=tcp_address(found.address, found.port),
        weight=found.weight * WEIGHT,
        metric_labels=dict(found.labels),
        tls_identity=_tls(found.identity, found.server_name),
        protocol_hint=_hint(found),
    )
    if found.authority is not None:
        wire.authority_override.authority_override = found.authority
    if http2 is not None and found.meshed:
        wire.http2.CopyFrom(http2_params(http2))
    return wire


def _tls(identity: Identity | None, server_name: str) -> pb.TlsIdentity | None:
    """Who must answer. Without a server name, a proxy asks for a DNS identity by itself."""
    wire = pb.TlsIdentity()
    match identity:
        case None:
            return None
        case Dns(name):
            wire.dns_like_identity.name = name
        case Spiffe():
            wire.uri_like_identity.uri = identity.uri
    if server_name:
        wire.server_name.name = server_name
    return wire


def _hint(found: Endpoint) -> pb.ProtocolHint | None:
    """What the proxy before an endpoint can do; there is no hint where there is no proxy."""
    if not found.meshed:
        return None
    wire = pb.ProtocolHint()
    match found.speaks:
        case Speaks.HTTP2:
            wire.h2.SetInParent()
        case Speaks.OPAQUE:
            wire.opaque.SetInParent()
        case Speaks.UNKNOWN:
            pass
    if isinstance(found.reach, LinkerdOpaque):
        wire.opaque_transport.inbound_port = found.reach.port
    return wire


def http2_params(said: Http2Params) -> pb.Http2ClientParams:
    """Client settings. Proxies want both windows, and both times of the keep-alive, or none."""
    wire = pb.Http2ClientParams()
    windows = said.connection_window and said.stream_window
    if windows or said.adaptive_window:
        wire.flow_control.initial_connection_window_size = said.connection_window
        wire.flow_control.initial_stream_window_size = said.stream_window
        wire.flow_control.adaptive_flow_control = said.adaptive_window
    if said.ping_interval is not None and said.ping_timeout is not None:
        wire.keep_alive.interval.CopyFrom(duration(said.ping_interval))
        wire.keep_alive.timeout.CopyFrom(duration(said.ping_timeout))
        wire.keep_alive.while_idle = said.ping_while_idle
    return wire


def duration(milliseconds: int) -> Duration:
    """A protobuf Duration."""
    seconds, rest = divmod(milliseconds, 1000)
    return Duration(seconds=seconds, nanos=rest * 1_000_000)

"""A client of the policy services: asks as linkerd2-proxy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from isthmus.cli.commands.diagnostics_client import ApiError
from isthmus.proto.linkerd import inbound_pb2, outbound_pb2

M = TypeVar("M", bound=Message)

INBOUND = "/io.linkerd.proxy.inbound.InboundServerPolicies/GetPort"
OUTBOUND = "/io.linkerd.proxy.outbound.OutboundPolicies/Get"
PATIENCE = 10.0
"""Seconds that an answer may take."""

_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 16 << 20))


def inbound(at: str, workload: str, ports: Sequence[int]) -> list[inbound_pb2.Server]:
    """What the proxy of `namespace:pod` lets in at each of these ports. ApiError if refused."""
    wanted = [inbound_pb2.PortSpec(workload=workload, port=port) for port in ports]
    return _ask(at, INBOUND, wanted, inbound_pb2.Server.FromString)


def outbound(at: str, workload: str, authority: str) -> outbound_pb2.OutboundPolicy:
    """What the proxy of a workload does with requests to `host:port`. ApiError if refused."""
    wanted = outbound_pb2.TrafficSpec(source_workload=workload, authority=authority)
    return _ask(at, OUTBOUND, [wanted], outbound_pb2.OutboundPolicy.FromString)[0]


def _ask(at: str, path: str, wanted: Sequence[Message], read: Callable[[bytes], M]) -> list[M]:
    with grpc.insecure_channel(at, options=_OPTIONS) as channel:
        call: Callable[..., M] = channel.unary_unary(
            path, request_serializer=lambda one: one.SerializeToString(), response_deserializer=read
        )
        try:
            return [call(one, timeout=PATIENCE) for one in wanted]
        except grpc.RpcError as fault:
            raise ApiError(fault.code(), fault.details() or "") from None

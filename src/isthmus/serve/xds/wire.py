"""Requests from bytes: the only place that reads xDS protobuf."""

from __future__ import annotations

from typing import Any, Final

from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from isthmus.errors import PeerFault
from isthmus.serve.xds.contract import Node
from isthmus.serve.xds.machine import DeltaRequest, SotwRequest

SERVICE: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
DELTA: Final = "DeltaAggregatedResources"
SOTW: Final = "StreamAggregatedResources"


def delta_request(data: bytes) -> tuple[DeltaRequest, Node | None]:
    """Read a DeltaDiscoveryRequest, and the node if it tells one.

    Raises:
        PeerFault: these bytes are no such message.
    """
    message = _read(discovery_pb2.DeltaDiscoveryRequest, data)
    request = DeltaRequest(
        message.type_url,
        message.response_nonce,
        _error(message),
        tuple(message.resource_names_subscribe),
        tuple(message.resource_names_unsubscribe),
        dict(message.initial_resource_versions),
    )
    return request, _node(message)


def sotw_request(data: bytes) -> tuple[SotwRequest, Node | None]:
    """Read a DiscoveryRequest, and the node if it tells one.

    Raises:
        PeerFault: these bytes are no such message.
    """
    message = _read(discovery_pb2.DiscoveryRequest, data)
    names = tuple(message.resource_names)
    request = SotwRequest(message.type_url, message.response_nonce, _error(message), names)
    return request, _node(message)


# Generated messages have no types: here bytes become values.
def _read(kind: Any, data: bytes) -> Any:  # noqa: ANN401
    try:
        return kind.FromString(data)
    except DecodeError as fault:
        raise PeerFault(f"bytes that are no {kind.DESCRIPTOR.name}") from fault


def _error(message: Any) -> str | None:  # noqa: ANN401
    if not message.HasField("error_detail"):
        return None
    return message.error_detail.message or f"code {message.error_detail.code}, without a message"


def _node(message: Any) -> Node | None:  # noqa: ANN401
    if not message.HasField("node"):
        return None
    node = message.node
    return Node(
        id=node.id,
        cluster=node.cluster,
        zone=node.locality.zone,
        agent=node.user_agent_name,
        agent_version=_version(node),
        features=frozenset(node.client_features),
        metadata=MessageToDict(node.metadata),
    )


def _version(node: Any) -> str:  # noqa: ANN401
    if node.HasField("user_agent_build_version"):
        version = node.user_agent_build_version.version
        return f"{version.major_number}.{version.minor_number}.{version.patch}"
    return str(node.user_agent_version)

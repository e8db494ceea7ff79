"""Requests from bytes."""

from __future__ import annotations

import pytest
from envoy.service.discovery.v3 import discovery_pb2

from isthmus.errors import PeerFault
from isthmus.serve.xds.machine import DeltaRequest, SotwRequest
from isthmus.serve.xds.wire import delta_request, sotw_request


def test_a_delta_request_is_read_whole() -> None:
    message = discovery_pb2.DeltaDiscoveryRequest(
        type_url="t",
        response_nonce="1",
        resource_names_subscribe=["a"],
        resource_names_unsubscribe=["b"],
        initial_resource_versions={"c": "2"},
    )
    read = DeltaRequest("t", "1", None, ("a",), ("b",), {"c": "2"})
    assert delta_request(message.SerializeToString()) == (read, None)


def test_a_rejection_has_a_message_even_if_it_has_none() -> None:
    message = discovery_pb2.DiscoveryRequest(type_url="t", resource_names=["a"])
    message.error_detail.code = 3
    request, _ = sotw_request(message.SerializeToString())
    assert request == SotwRequest("t", "", "code 3, without a message", ("a",))
    message.error_detail.message = "no"
    assert sotw_request(message.SerializeToString())[0].error == "no"


def test_a_node_is_what_it_says_of_itself() -> None:
    message = discovery_pb2.DiscoveryRequest()
    node = message.node
    node.id, node.cluster, node.locality.zone = "pod.ns", "web", "z1"
    node.user_agent_name = "envoy"
    node.user_agent_build_version.version.major_number = 1
    node.user_agent_build_version.version.minor_number = 39
    node.client_features.append("xds.config.resource-in-sotw")
    node.metadata.update({"a": {"b": [1, "c"]}})
    _, read = sotw_request(message.SerializeToString())
    assert read is not None
    assert read[:5] == ("pod.ns", "web", "z1", "envoy", "1.39.0")
    assert read.features == {"xds.config.resource-in-sotw"}
    assert read.metadata == {"a": {"b": [1, "c"]}}
    node.user_agent_version = "1.85.3"
    _, read = sotw_request(message.SerializeToString())
    assert read is not None
    assert read.agent_version == "1.85.3"


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x12\x02\xff\xff"])
def test_other_bytes_are_the_fault_of_the_peer(data: bytes) -> None:
    with pytest.raises(PeerFault, match="bytes that are no DiscoveryRequest"):
        sotw_request(data)
    with pytest.raises(PeerFault, match="bytes that are no DeltaDiscoveryRequest"):
        delta_request(data)

"""Bytes of responses, against the generated classes."""

from __future__ import annotations

import pytest
from envoy.service.discovery.v3 import discovery_pb2

from isthmus.serve.xds.machine import frames
from isthmus.serve.xds.machine.types import CLUSTER, ENDPOINTS


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_resource_is_framed_for_both_protocols(size: int) -> None:
    one = frames.framed("näme", "v1", CLUSTER, b"x" * size, clusters=("a",), origin="o")
    delta = discovery_pb2.DeltaDiscoveryResponse.FromString(
        frames.delta(CLUSTER, "7", [one.chunk, one.chunk], ["gone", "göne"])
    )
    assert (delta.type_url, delta.nonce) == (CLUSTER, "7")
    assert list(delta.removed_resources) == ["gone", "göne"]
    assert [(each.name, each.version) for each in delta.resources] == [("näme", "v1")] * 2
    assert delta.resources[0].resource.type_url == CLUSTER
    assert delta.resources[0].resource.value == b"x" * size
    whole = discovery_pb2.DiscoveryResponse.FromString(frames.whole(CLUSTER, "8", [one.any_chunk]))
    assert (whole.type_url, whole.nonce, whole.version_info) == (CLUSTER, "8", "8")
    assert [each.value for each in whole.resources] == [b"x" * size]
    assert (one.clusters, one.origin) == (("a",), "o")


def test_no_endpoints_is_an_assignment_with_a_name_alone() -> None:
    one = frames.no_endpoints("web")
    response = discovery_pb2.DiscoveryResponse.FromString(
        frames.whole(ENDPOINTS, "1", [one.any_chunk])
    )
    assert response.resources[0].value == b"\n\x03web"

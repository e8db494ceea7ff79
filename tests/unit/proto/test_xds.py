from __future__ import annotations

import pytest
from envoy.config.cluster.v3 import cluster_pb2
from envoy.service.discovery.v3 import discovery_pb2

from isthmus.proto.xds import CLUSTER, duration, field, packed, resource, unframed, varint


def test_a_resource_is_ready_for_both_kinds_of_responses() -> None:
    wire = cluster_pb2.Cluster(name="a")
    found = resource(wire, "a", clusters=("z", "b", "z"), origin="me")
    (delta,) = discovery_pb2.DeltaDiscoveryResponse.FromString(found.chunk).resources
    (whole,) = discovery_pb2.DiscoveryResponse.FromString(found.any_chunk).resources
    assert (delta.name, delta.version) == ("a", found.version)
    assert delta.resource == whole
    assert whole.type_url == CLUSTER
    assert cluster_pb2.Cluster.FromString(found.value) == wire
    assert (found.clusters, found.origin) == (("b", "z"), "me")
    assert resource(wire, "a", clusters=None).clusters is None


def test_the_version_is_the_contents() -> None:
    one, other = (resource(cluster_pb2.Cluster(name=name), "a") for name in ("a", "b"))
    assert one.version != other.version
    assert one.version == resource(cluster_pb2.Cluster(name="a"), "b").version


def test_long_values_are_framed_as_protobuf_does() -> None:
    wire = cluster_pb2.Cluster(name="x" * 100_000)
    found = resource(wire, "a")
    assert found.value == wire.SerializeToString()
    assert packed(wire).value == wire.SerializeToString()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_384, 3_000_000])
def test_a_field_is_undone(size: int) -> None:
    assert unframed(field(2, b"x" * size)) == b"x" * size


def test_what_is_cut_off_is_told() -> None:
    with pytest.raises(ValueError, match="cut off"):
        unframed(b"\x12\x80")


def test_numbers() -> None:
    assert varint(300) == b"\xac\x02"
    assert (duration(1_250).seconds, duration(1_250).nanos) == (1, 250_000_000)

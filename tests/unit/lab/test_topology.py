"""Topologies: what is read, and that every fault is told at once, with its place."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from isthmus.errors import Invalid, UserFault
from isthmus.lab import topology
from isthmus.lab.addressing import plan
from isthmus.lab.topology import Trust

WHERE = Path("/nowhere/topology.yaml")

GOOD = """
clusters:
- name: east
  podCIDR: 10.55.1.0/24
  serviceCIDR: 10.56.1.0/24
  network: flat
  server: {cluster-domain: example.org, ipv6: true, listen: {xds: "off"}}
- name: west
  podCIDR: 10.55.2.0/24
  serviceCIDR: 10.56.1.0/24
  network: flat
  nodes: [{name: a, labels: {zone: one}}, {name: b}]
- name: island
  podCIDR: 10.55.1.0/24
  serviceCIDR: 10.56.1.0/24
  network: sea
hosts:
- {name: color, network: egress, run: {image: "x:1", env: {PORT: 8000, ON: true}}}
networks:
- {name: flat, cidr: 172.17.1.0/24}
- {name: sea, cidr: 172.17.2.0/24}
- {name: egress, cidr: 198.51.100.0/24, reachableFrom: [east]}
trust: separate
images:
  "example.org/echo:*": [python3, -m, http.server, $PORT]
"""


def read(text: str) -> topology.Topology:
    return topology.read(text.encode(), where=WHERE)


def faults(text: str) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        read(text)
    return {cause.path: cause.message for cause in caught.value.causes}


def test_everything_that_can_be_written_is_read() -> None:
    found = read(GOOD)
    east, west, island = found.clusters
    assert (east.pod_cidr, east.network) == (IPv4Network("10.55.1.0/24"), "flat")
    assert east.server == {"cluster_domain": "example.org", "ipv6": True, "listen": ("xds=off",)}
    nodes = [(node.name, dict(node.labels)) for node in west.nodes]
    assert nodes == [("a", {"zone": "one"}), ("b", {})]
    assert [node.name for node in island.nodes] == ["island-node"]
    assert found.hosts[0].run is not None
    assert found.hosts[0].run.env == {"PORT": "8000", "ON": "true"}
    assert found.trust is Trust.SEPARATE
    assert found.images["example.org/echo:*"] == ("python3", "-m", "http.server", "$PORT")
    assert found.flat_with(east) == (west,)
    assert not found.reaches(west, found.network("egress"))
    assert found.reaches(east, found.network("egress"))
    assert found.reaches(island, found.network("flat"))


@pytest.mark.parametrize("name", topology.BUILT_IN)
def test_the_built_in_ones_are_good(name: str) -> None:
    plan(topology.load(name))


def test_all_faults_at_once_with_their_places() -> None:
    told = faults("""
clusters:
- {name: A b, podCIDR: 10.55.1.5/24, network: nowhere, colour: red}
- {name: east, podCIDR: 10.55.1.0/31, serviceCIDR: 10.56.1.0/24, network: flat,
   manifests: [no.yaml], server: {data-dir: /x, no-such: 1, default-inbound-policy: perhaps},
   nodes: []}
- {name: east, podCIDR: 10.55.9.0/24, serviceCIDR: [1], network: flat}
networks:
- {name: flat, cidr: 172.17.1.0/24, reachableFrom: [mars]}
- {name: flat, cidr: 172.18.1.0/24}
hosts: [{name: color}]
trust: some
images: {x: echo}
""")
    assert "is not a cluster name" in told["clusters[0].name"]
    assert "has host bits set" in told["clusters[0].podCIDR"]
    assert told["clusters[0].serviceCIDR"] == "must be written"
    assert told["clusters[0].network"] == "there is no network 'nowhere'; there are: flat"
    assert told["clusters[0].colour"].startswith("is no field of this; there are: name, podCIDR")
    assert told["clusters[1].podCIDR"] == "10.55.1.0/31 is not from /8 to /28"
    assert told["clusters[1].manifests[0]"] == "there is no file /nowhere/no.yaml"
    assert told["clusters[1].server.data-dir"] == "is decided by the lab"
    assert told["clusters[1].server.no-such"] == "is no flag of `isthmus server`"
    assert "'perhaps' is not one of" in told["clusters[1].server.default-inbound-policy"]
    assert told["clusters[1].nodes"] == "a cluster needs at least one node"
    assert told["clusters[2].name"] == "'east' is there already"
    assert told["clusters[2].serviceCIDR"] == "must be a text"
    assert (
        told["networks[0].reachableFrom[0]"] == "there is no cluster 'mars'; there are: A b, east"
    )
    assert told["networks[1].name"] == "'flat' is there already"
    assert told["hosts[0].network"] == "must be written"
    assert told["trust"] == "'some' is not one of shared, separate"
    assert told["images.x"] == "must be a list"


def test_ranges_that_one_packet_could_mean_both_of_may_not_overlap() -> None:
    told = faults("""
clusters:
- {name: a, podCIDR: 10.55.0.0/16, serviceCIDR: 10.56.1.0/24, network: flat}
- {name: b, podCIDR: 10.55.2.0/24, serviceCIDR: 10.56.1.0/24, network: flat}
- {name: c, podCIDR: 10.57.2.0/24, serviceCIDR: 10.55.3.0/24, network: flat}
- {name: d, podCIDR: 172.17.1.0/25, serviceCIDR: 172.17.1.0/26, network: flat}
networks:
- {name: flat, cidr: 172.17.1.0/24}
- {name: other, cidr: 172.17.0.0/16}
""")
    assert told == {
        "networks[1].cidr": "172.17.0.0/16 overlaps with networks[0].cidr (172.17.1.0/24)",
        "clusters[1].podCIDR": "10.55.2.0/24 overlaps with clusters[0].podCIDR (10.55.0.0/16)",
        "clusters[2].serviceCIDR": "10.55.3.0/24 overlaps with clusters[0].podCIDR (10.55.0.0/16)",
        "clusters[3].podCIDR": "172.17.1.0/25 overlaps with networks[1].cidr (172.17.0.0/16)",
        "clusters[3].serviceCIDR": (
            "172.17.1.0/26 overlaps with clusters[3].podCIDR (172.17.1.0/25)"
        ),
    }


def test_what_is_no_yaml_or_not_there_is_told() -> None:
    with pytest.raises(UserFault, match="topology.yaml: the body is not valid YAML"):
        read("clusters: [")
    with pytest.raises(UserFault, match="name a file, or one of faces, workshop"):
        topology.load("/no/such/file.yaml")
    assert "clusters" in faults("networks: []")


def test_a_field_written_twice_is_a_fault() -> None:
    assert faults(GOOD + "trust: shared\n") == {"trust": "is written twice"}


def test_every_address_follows_from_the_topology() -> None:
    found = plan(read(GOOD))
    east, west, island = found.clusters
    assert [each.loopback for each in found.clusters] == ["127.55.1.1", "127.55.2.1", "127.55.3.1"]
    assert [str(node.ip) for node in (*east.nodes, *west.nodes)] == [
        "172.17.1.2", "172.17.1.3", "172.17.1.4",
    ]  # fmt: skip
    assert str(island.nodes[0].ip) == "172.17.2.2"
    assert (str(east.gateway), str(east.pod_gateway)) == ("172.17.1.1", "10.55.1.1")
    assert (str(east.api_ip), str(east.dns_ip)) == ("10.56.1.1", "10.56.1.10")
    assert next(east.pod_ips()) == IPv4Address("10.55.1.2")
    assert [str(each.ip) for each in found.hosts_seen_by(east.cluster)] == ["198.51.100.2"]
    assert found.hosts_seen_by(west.cluster) == ()


def test_load_balancers_of_one_network_never_share_an_address() -> None:
    east, west, island = plan(read(GOOD)).clusters
    assert not set(east.balancer_ips()) & set(west.balancer_ips())
    assert min(east.balancer_ips()) == IPv4Address("172.17.1.128")
    assert max((*east.balancer_ips(), *west.balancer_ips())) == IPv4Address("172.17.1.254")
    assert len(list(island.balancer_ips())) == 127


def test_a_network_that_is_too_small_is_told() -> None:
    nodes = ", ".join(f"{{name: n{number}}}" for number in range(7))
    with pytest.raises(Invalid) as caught:
        plan(
            read(f"""
clusters: [{{name: a, podCIDR: 10.55.1.0/24, serviceCIDR: 10.56.1.0/24, network: n,
  nodes: [{nodes}]}}]
networks: [{{name: n, cidr: 172.17.1.0/28}}]
""")
        )
    assert [cause.path for cause in caught.value.causes] == ["networks[0].cidr"]

"""Two clusters on a flat network, one on another, machines outside: who reaches whom."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess

FETCH = (
    "import sys, urllib.request as u;"
    " print(u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=3).status)"
)
PEER = (
    "import socket, sys;"
    " s = socket.create_connection((sys.argv[1], 9000), 5); print(s.recv(99).decode())"
)
TELL = (
    "import socket\n"
    "l=socket.create_server(('',9000))\n"
    "while True:\n c,a=l.accept(); c.sendall(a[0].encode()); c.close()"
)  # fmt: skip

CLUSTERS = ("north", "south", "island")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("labs")
    tell = {"name": "tell", "image": "python", "command": ["python3", "-c", TELL]}
    objects = [
        t.pod("echo", t.container(), tell),
        t.service("echo", type="LoadBalancer"),
    ]
    clusters = [
        t.cluster(1, "north", "flat", "apps"),
        t.cluster(2, "south", "flat", "apps"),
        # The same pods' addresses as in `north`: on another network that is no contradiction.
        t.cluster(1, "island", "sea", "apps"),
    ]
    topology = {
        "clusters": clusters,
        "networks": [
            {"name": "flat", "cidr": "172.17.1.0/24"},
            {"name": "sea", "cidr": "172.17.2.0/24"},
            {"name": "egress", "cidr": "198.51.100.0/24", "reachableFrom": ["north"]},
        ],
        "hosts": [
            {
                "name": "color",
                "network": "egress",
                "run": {"image": t.ECHO, "env": {"PORT": "8000"}},
            }
        ],
    }
    with LabProcess(folder / "state", t.write(folder, topology, apps=objects)) as running:
        for name in CLUSTERS:
            running.kubectl(
                "wait", "pod/echo", "--for=condition=Ready", "--timeout=40s", context=name
            )
            ip = ".status.loadBalancer.ingress[0].ip"
            running.kubectl("wait", "svc/echo", f"--for=jsonpath={{{ip}}}", context=name)
        yield running


def ip_of(lab: LabProcess, cluster: str) -> str:
    return str(lab.get("pod", "echo", context=cluster)["status"]["podIP"])


def balancer_of(lab: LabProcess, cluster: str) -> str:
    service = lab.get("svc", "echo", context=cluster)
    return str(service["status"]["loadBalancer"]["ingress"][0]["ip"])


def run(lab: LabProcess, cluster: str, script: str, argument: str) -> str:
    """What a script prints in the pod of a cluster; "" when it fails."""
    done = lab.try_kubectl(
        "exec", "echo", "-c", "echo", "--", "python3", "-c", script, argument, context=cluster
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def test_a_context_for_each_cluster_in_one_kubeconfig(lab: LabProcess) -> None:
    contexts = lab.kubectl("config", "get-contexts", "-o", "name").split()
    assert contexts == ["north", "south", "island"] or sorted(contexts) == sorted(CLUSTERS)
    for name in CLUSTERS:
        nodes = lab.get("nodes", context=name)["items"]
        assert [each["metadata"]["name"] for each in nodes] == [f"{name}-node"]
    assert lab.kubectl("config", "current-context").strip() == "north"


def test_on_a_flat_network_pods_reach_pods_and_see_who_they_are(lab: LabProcess) -> None:
    north, south = ip_of(lab, "north"), ip_of(lab, "south")
    assert run(lab, "north", FETCH, f"http://{south}:8080/") == "200"
    assert run(lab, "south", FETCH, f"http://{north}:8080/") == "200"
    assert run(lab, "north", PEER, south) == north


def test_from_another_network_only_load_balancers_are_reached(lab: LabProcess) -> None:
    south = ip_of(lab, "south")
    assert run(lab, "island", FETCH, f"http://{south}:8080/") == ""
    for target in ("north", "south"):
        address = balancer_of(lab, target)
        assert run(lab, "island", FETCH, f"http://{address}/") == "200"
    assert run(lab, "north", FETCH, f"http://{balancer_of(lab, 'island')}/") == "200"


def test_load_balancers_of_one_network_have_different_addresses(lab: LabProcess) -> None:
    assert len({balancer_of(lab, name) for name in CLUSTERS}) == 3


def test_a_network_is_reached_only_from_where_it_says(lab: LabProcess) -> None:
    assert run(lab, "north", FETCH, "http://color:8000/") == "200"
    assert run(lab, "south", FETCH, "http://198.51.100.2:8000/") == ""
    hosts = lab.kubectl("exec", "echo", "-c", "echo", "--", "cat", "/etc/hosts", context="south")
    assert "color" not in hosts


def test_every_api_is_reached_from_every_cluster_at_the_address_of_its_context(
    lab: LabProcess,
) -> None:
    """What a Link made from a context needs: 127.55.N.1 means the same everywhere in a lab."""
    status = {each["name"]: each for each in lab.status["clusters"]}
    listens = {each["api"] for each in status.values()}
    assert len(listens) == 3
    kubeconfig = lab.get_config()
    assert {each["cluster"]["server"] for each in kubeconfig["clusters"]} == listens


def test_the_clusters_share_an_anchor_and_have_issuers_of_their_own(lab: LabProcess) -> None:
    folder = lab.state / "trust"
    anchors = {(folder / name / "ca.crt").read_bytes() for name in CLUSTERS}
    issuers = {(folder / name / "issuer.crt").read_bytes() for name in CLUSTERS}
    assert (len(anchors), len(issuers)) == (1, 3)
    assert all((folder / name / "issuer.key").stat().st_mode & 0o77 == 0 for name in CLUSTERS)


def test_many_at_once(lab: LabProcess) -> None:
    """Relays, watches and links under some load: nothing fails."""
    address = balancer_of(lab, "south")
    script = (
        "import sys, urllib.request as u\n"
        "o = u.build_opener(u.ProxyHandler({}))\n"
        "print(sum(o.open(sys.argv[1], timeout=10).status == 200 for _ in range(50)))"
    )
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: run(lab, "north", script, f"http://{address}/"), range(4)))
    assert done == ["50"] * 4


def test_a_node_may_be_one_of_several(tmp_path: Path) -> None:
    cluster = t.cluster(1, "east", "flat", "apps") | {
        "nodes": [{"name": "a", "labels": {"disk": "fast"}}, {"name": "b"}]
    }
    topology = {"clusters": [cluster], "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}]}
    fast = t.pod("fast", t.container(), nodeSelector={"disk": "fast"})
    path = t.write(tmp_path, topology, apps=[fast, t.deployment("spread", 4, t.container())])
    with LabProcess(tmp_path / "state", path) as lab:
        lab.kubectl("rollout", "status", "deploy/spread", "--timeout=30s")
        lab.kubectl("wait", "pod/fast", "--for=condition=Ready", "--timeout=30s")
        pods = lab.get("pods")["items"]
        by_node = [(each["spec"]["nodeName"], each["status"]["hostIP"]) for each in pods]
        assert set(by_node) == {("a", "172.17.1.2"), ("b", "172.17.1.3")}
        assert lab.get("pod", "fast")["spec"]["nodeName"] == "a"
        assert lab.kubectl("exec", "fast", "--", "hostname") == "fast\n"

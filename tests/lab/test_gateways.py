"""Two clusters on different networks, with equal addresses, linked through a gateway."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.lab import linked
from tests.lab import topologies as t
from tests.support.lab import LabProcess
from tests.support.server import PATIENCE
from tests.support.until import until

EXPORTED = {"mirror.linkerd.io/exported": "true"}
CALLER = "face.faces.serviceaccount.identity.linkerd.cluster.local"
URL = "http://smiley-east/center/"
TALK = t.deployment(
    "talk", 1,
    {
        "name": "talk",
        "image": "shell",
        "command": [sys.executable, str(linked.SPEAKER)],
        "ports": [{"containerPort": 7000}],
        "readinessProbe": {"tcpSocket": {"port": 7000}, "periodSeconds": 1},
    },
)  # fmt: skip
EXCHANGE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as line:
    line.sendall(sys.argv[3].encode())
    got = line.recv(65536)
    line.shutdown(socket.SHUT_WR)
    print((got + b"".join(iter(lambda: line.recv(65536), b""))).decode())
"""
HELLO = """
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    with socket.create_connection((sys.argv[1], 4143), timeout=20) as line:
        with context.wrap_socket(line, server_hostname=sys.argv[2]) as secure:
            print(secure.version())
except OSError as fault:
    print("closed")
"""
MANY = """
import http.client, sys
line = http.client.HTTPConnection(sys.argv[1], 80, timeout=20)
def pod():
    line.request("GET", "/center/")
    answer = line.getresponse()
    answer.read()
    return answer.getheader("X-Faces-Pod")
print(*{pod() for _ in range(250)})
"""
PLAIN = """
import socket, sys
with socket.create_connection((sys.argv[1], 4143), timeout=20) as line:
    line.sendall(b"GET / HTTP/1.1\\r\\nHost: smiley.faces\\r\\n\\r\\n")
    try:
        print(line.recv(100).decode() or "closed")
    except ConnectionResetError:
        print("closed")
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("gateways")
    TALK["metadata"]["namespace"] = "faces"
    decoy = linked.workload("decoy", 3)
    outside = {"linkerd.io/inject": "disabled"}
    decoy[-1]["spec"]["template"]["metadata"]["annotations"] = outside
    hub = [linked.NAMESPACE, *linked.workload("face"), *decoy]
    raw = {"config.linkerd.io/opaque-ports": "7000"}
    talk = linked.service("talk", EXPORTED, ports=[{"name": "raw", "port": 7000}])
    talk["metadata"]["annotations"] = raw
    east = [
        linked.NAMESPACE,
        *linked.workload("smiley", 2),
        linked.service("smiley", EXPORTED),
        linked.service("secret", {}, selector={"app": "smiley"}),
        TALK,
        talk,
    ]
    topology = {
        "clusters": [t.cluster(1, "hub", "here", "hub"), t.cluster(1, "east", "there", "east")],
        "networks": [
            {"name": "here", "cidr": "172.17.1.0/24"},
            {"name": "there", "cidr": "172.17.2.0/24"},
        ],
    }
    path = t.write(folder, topology, hub=hub, east=east)
    with LabProcess(folder / "state", path) as running:
        for where in ("hub face", "hub decoy", "east smiley", "east talk"):
            linked.rolled(running, *where.split())
        linked.link(running, "hub", "east", gateway=True)
        for name in ("smiley-east", "talk-east"):
            linked.filled(running, name)
        yield running


def gateway(lab: LabProcess) -> str:
    where = ("svc", "linkerd-gateway", "-n", "linkerd-multicluster")
    found = lab.get(*where, context="east")["status"]["loadBalancer"]["ingress"]
    return str(found[0]["ip"])


def test_who_is_called_knows_who_calls_and_nobody_is_mistaken_for_another(lab: LabProcess) -> None:
    """Pods here have the addresses of pods there."""
    ips = {
        name: {each["status"]["podIP"] for each in linked.pods(lab, cluster, name)}
        for cluster, name in (("hub", "face"), ("hub", "decoy"), ("east", "smiley"))
    }
    assert ips["smiley"] & (ips["face"] | ips["decoy"])
    there = linked.names(lab, "east")
    for _ in range(10):
        got = linked.fetch(lab, URL)
        assert got["pod"] in there
        assert got["headers"]["l5d-client-id"] == [CALLER]
        told = got["headers"]["x-forwarded-client-cert"][0]
        assert "By=spiffe://cluster.local/ns/faces/sa/smiley" in told
        assert "URI=spiffe://cluster.local/ns/faces/sa/face" in told


def test_bytes_of_no_protocol_pass_too(lab: LabProcess) -> None:
    assert linked.run(lab, EXCHANGE, "talk-east", "7000", "sesame") == "sesame"


def test_a_gateway_lets_in_names_that_are_exported_and_nothing_else(lab: LabProcess) -> None:
    at, domain = gateway(lab), "faces.east.internal.cluster.local"

    def hello(name: str) -> str:
        return linked.run(lab, HELLO, at, name, pod="decoy")

    assert hello(f"p80.smiley.{domain}") == "TLSv1.3"
    assert hello(f"p80.secret.{domain}") == "closed"
    assert hello(f"p81.smiley.{domain}") == "closed"
    assert hello(CALLER) == "closed"
    assert linked.run(lab, PLAIN, at, pod="decoy") == "closed"


def test_a_gateway_says_that_it_is_ready(lab: LabProcess) -> None:
    assert linked.fetch(lab, f"http://{gateway(lab)}:4191/ready")["status"] == 200


def test_every_pod_behind_a_gateway_gets_its_share(lab: LabProcess) -> None:
    """Also of a client with one connection: it is made anew again and again."""
    there, seen = linked.names(lab, "east"), set[str]()

    def look() -> bool | None:
        seen.update(linked.run(lab, MANY, "smiley-east").split())
        return True if seen == there else None

    until(look, PATIENCE, lambda: f"only {seen} of {there} were asked")


def test_changes_that_are_announced_fail_no_request(lab: LabProcess) -> None:
    """A pod goes, the gateway is replaced, a pod comes."""
    with linked.load(lab, "smiley-east") as end:
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=1", context="east")
        linked.rolled(lab, "east", "smiley")
        lab.kubectl("-n", "linkerd-multicluster", "rollout", "restart", "deploy/linkerd-gateway",
                    context="east")  # fmt: skip
        lab.kubectl("-n", "linkerd-multicluster", "rollout", "status", "deploy/linkerd-gateway",
                    "--timeout=60s", context="east")  # fmt: skip
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=2", context="east")
        linked.rolled(lab, "east", "smiley")
        counts = end()
    assert linked.failures(counts) == {}
    assert counts["200"] > 100


def test_if_nobody_is_there_the_answer_comes_at_once_and_it_is_no(lab: LabProcess) -> None:
    lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=0", context="east")
    with linked.load(lab, "smiley-east") as end:
        linked.emptied(lab, "smiley-east")
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=1", context="east")
        linked.rolled(lab, "east", "smiley")
        linked.filled(lab, "smiley-east")
        counts = end()
    assert linked.failures(counts).keys() <= {"503 no healthy upstream"}
    assert linked.fetch(lab, URL)["status"] == 200

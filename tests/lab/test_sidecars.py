"""Faces with real Envoys beside every pod: what is seen on the wire, and what fails meanwhile."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess, Traces
from tests.support.server import PATIENCE
from tests.support.traffic import beside, capture, server

FETCH = """
import json, sys, urllib.request as u
asked = u.Request(sys.argv[1], headers={"X-Faces-User": sys.argv[2]})
with u.build_opener(u.ProxyHandler({})).open(asked, timeout=10) as answer:
    print(json.dumps({"status": answer.status, **json.loads(answer.read())}))
"""
LOAD = """
import collections, http.client, json, select, sys, threading
counts, over = collections.Counter(), threading.Event()
def work():
    line = None
    while not over.wait(0.02):
        try:
            line = line or http.client.HTTPConnection("smiley", 80, timeout=10)
            line.request("GET", "/center/")
            answer = line.getresponse()
            answer.read()
            counts[str(answer.status)] += 1
            counts[answer.getheader("X-Faces-Pod", "nobody")] += 1
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
PLAIN = t.deployment(
    "plain", 1,
    {
        "name": "plain",
        "image": "example.org/faces-workload:1",
        "ports": [{"name": "http", "containerPort": 8000}],
        "env": [{"name": "FACES_SERVICE", "value": "smiley"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
    },
)  # fmt: skip
SPEAKER = Path(__file__).with_name("speaker.py")
TALK = t.deployment(
    "talk", 1,
    {
        "name": "talk",
        "image": "shell",
        "command": [sys.executable, str(SPEAKER)],
        "ports": [{"containerPort": port} for port in (8080, 7000, 3306)],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    },
)  # fmt: skip
TALK_PORTS = [
    {"name": "http", "port": 80, "targetPort": 8080},
    {"name": "raw", "port": 7000, "appProtocol": "tcp"},
    {"name": "first", "port": 3306},
    {"name": "guess", "port": 7001, "targetPort": 7000},
]
EXCHANGE = """
import socket, sys
host, port, said = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
with socket.create_connection((host, port), timeout=20) as line:
    if port == 3306:
        print(line.recv(100).decode().strip())
        line.sendall(said)
    else:
        line.sendall(said)
        got = line.recv(65536)
        line.shutdown(socket.SHUT_WR)
        print((got + b"".join(iter(lambda: line.recv(65536), b""))).decode())
"""
POST = """
import hashlib, http.client, json
body = b"0123456789abcdef" * 500_000
line = http.client.HTTPConnection("talk", 80, timeout=30)
line.request("POST", "/", body)
answer = line.getresponse()
same = answer.read().decode() == hashlib.sha256(body).hexdigest()
line.request("GET", "/large")
large = line.getresponse()
print(json.dumps([answer.status, same, len(large.read()), answer.getheader("x-caller")]))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    """Faces, and a pod outside the mesh. Nothing of it may be left."""
    state = tmp_path_factory.mktemp("sidecars") / "state"
    with LabProcess(state, "faces") as running:
        plain = [PLAIN, t.service("plain")]
        running.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, plain)))
        for name in ("faces-gui", "face", "smiley", "color"):
            rolled(running, name)
        talk = [TALK, t.service("talk", ports=TALK_PORTS)]
        for each in talk:
            each["metadata"]["namespace"] = "faces"
        running.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, talk)))
        rolled(running, "talk")
        rolled(running, "plain", "default")
        traces = Traces(running)
        assert len(traces.pids("envoy")) >= 5
        yield running
    for pid in traces.pids():
        wait_for_end(pid)
    assert traces.left() == []
    assert not state.exists()


def wait_for_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([handle], [], [], 10)
    os.close(handle)


def rolled(lab: LabProcess, name: str, namespace: str = "faces") -> None:
    lab.kubectl("-n", namespace, "rollout", "status", f"deploy/{name}", "--timeout=40s")


def pods(lab: LabProcess, name: str) -> list[dict[str, Any]]:
    found = lab.get("pods", "-n", "faces", "-l", f"service={name}")["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def fetch(lab: LabProcess, where: str, url: str, user: str = "somebody") -> dict[str, Any]:
    namespace, _, name = where.partition("/")
    told = lab.kubectl("-n", namespace, "exec", f"deploy/{name}", "-c", name, "--",
                       sys.executable, "-c", FETCH, url, user)  # fmt: skip
    found: dict[str, Any] = json.loads(told)
    return found


@contextmanager
def load(lab: LabProcess) -> Iterator[Callable[[], dict[str, int]]]:
    """face asks smiley, 100 times a second or so, past the control plane."""
    pod = pods(lab, "face")[0]["metadata"]["name"]
    command = [
        sys.executable, "-m", "isthmus", "lab", "exec", "-i", "--state-dir", str(lab.state),
        "-n", "faces", "-c", "face", pod, "--", sys.executable, "-c", LOAD,
    ]  # fmt: skip
    with beside(command) as end:
        yield lambda: json.loads(end())


def failures(counts: dict[str, int], lab_pods: str = "smiley-") -> dict[str, int]:
    return {
        name: count
        for name, count in counts.items()
        if name != "200" and not name.startswith(lab_pods)
    }


# ------------------------------------------------------------------------------- on the wire


def test_every_pod_of_faces_has_its_proxy_and_its_own_identity(lab: LabProcess) -> None:
    for name in ("faces-gui", "face", "smiley", "color"):
        statuses = pods(lab, name)[0]["status"]["containerStatuses"]
        assert {each["name"]: each["ready"] for each in statuses} == {
            name: True,
            "linkerd-proxy": True,
        }


def test_what_face_says_to_smiley_by_name_is_not_seen_and_smiley_knows_who_says_it(
    lab: LabProcess,
) -> None:
    with capture(lab) as end:
        got = fetch(lab, "faces/face", "http://smiley/center/", "sesame-in-the-mesh")
        seen = end()
    assert got["headers"]["x-faces-user"] == ["sesame-in-the-mesh"]
    assert got["headers"]["l5d-client-id"] == [
        "face.faces.serviceaccount.identity.linkerd.cluster.local"
    ]
    assert "URI=spiffe://cluster.local/ns/faces/sa/face" in str(
        got["headers"]["x-forwarded-client-cert"]
    )
    assert b"sesame-in-the-mesh" not in seen
    assert b"\x17\x03\x03" in seen  # application data of TLS


def test_a_server_outside_the_mesh_is_reached_in_the_open(lab: LabProcess) -> None:
    with capture(lab) as end:
        got = fetch(lab, "faces/face", "http://plain.default/center/", "sesame-in-the-open")
        seen = end()
    assert got["status"] == 200
    assert "x-forwarded-client-cert" not in got["headers"]
    assert b"sesame-in-the-open" in seen


def test_a_client_outside_the_mesh_is_let_in_and_has_no_name(lab: LabProcess) -> None:
    ip = pods(lab, "smiley")[0]["status"]["podIP"]
    got = fetch(lab, "default/plain", f"http://{ip}:8000/center/")
    assert got["status"] == 200
    assert {"l5d-client-id", "x-forwarded-client-cert"} & got["headers"].keys() == set()


def test_a_client_outside_the_mesh_reaches_a_service_by_its_name(lab: LabProcess) -> None:
    got = fetch(lab, "default/plain", "http://smiley.faces/center/")
    assert got["status"] == 200
    assert {"l5d-client-id", "x-forwarded-client-cert"} & got["headers"].keys() == set()


def test_the_page_is_reached_from_this_machine_and_every_cell_is_fine(lab: LabProcess) -> None:
    published = lab.status["clusters"][0]["published"]
    at = next(each["host"] for each in published if each["service"] == "faces/faces-gui")
    done = subprocess.run(
        [sys.executable, "-c", FETCH, f"http://{at}/state/", "me"],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert json.loads(done.stdout)["counts"] == {"fine": 16}


def test_metrics_of_a_pod_tell_who_was_there(lab: LabProcess) -> None:
    pod = pods(lab, "smiley")[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/faces/pods/{pod}:4191/proxy/metrics"
    told = lab.kubectl("get", "--raw", path)
    caller = "face.faces.serviceaccount.identity.linkerd.cluster.local"
    assert f'client_id="{caller}"' in told


# ------------------------------------------------------------------------------- all protocols


def run(lab: LabProcess, pod: str, script: str, *arguments: str) -> str:
    return lab.kubectl("-n", "faces", "exec", f"deploy/{pod}", "-c", pod, "--",
                       sys.executable, "-c", script, *arguments).strip()  # fmt: skip


@pytest.mark.parametrize("port", ["7000", "7001"])
def test_bytes_of_no_protocol_pass_unseen(lab: LabProcess, port: str) -> None:
    with capture(lab) as end:
        assert run(lab, "face", EXCHANGE, "talk", port, "raw-sesame") == "raw-sesame"
        assert b"raw-sesame" not in end()


def test_a_server_that_speaks_first_is_heard_and_not_seen(lab: LabProcess) -> None:
    with capture(lab) as end:
        assert run(lab, "face", EXCHANGE, "talk", "3306", "thanks-mysql") == "welcome-from-mysql"
        seen = end()
    assert b"welcome-from-mysql" not in seen
    assert b"thanks-mysql" not in seen


def test_large_bodies_pass_both_ways(lab: LabProcess) -> None:
    caller = "face.faces.serviceaccount.identity.linkerd.cluster.local"
    assert json.loads(run(lab, "face", POST)) == [200, True, 3_000_000, caller]


def test_a_workload_calls_itself_through_its_own_service(lab: LabProcess) -> None:
    caller = "default.faces.serviceaccount.identity.linkerd.cluster.local"
    assert json.loads(run(lab, "talk", POST)) == [200, True, 3_000_000, caller]


# ------------------------------------------------------------------------------- under load


def kept_out(lab: LabProcess) -> list[str]:
    """The pods of smiley that are to go, once there is one that is not."""
    lab.kubectl("-n", "faces", "wait", "deploy/smiley", "--timeout=30s",
                "--for=jsonpath={.status.replicas}=1")  # fmt: skip
    found = lab.get("pods", "-n", "faces", "-l", "service=smiley")["items"]
    return [each["metadata"]["name"] for each in found if "deletionTimestamp" in each["metadata"]]


def test_no_request_fails_while_a_workload_grows_and_shrinks(lab: LabProcess) -> None:
    with load(lab) as end:
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=3")
        rolled(lab, "smiley")
        lab.kubectl("-n", "faces", "scale", "deploy/smiley", "--replicas=1")
        for name in kept_out(lab):
            lab.kubectl("-n", "faces", "wait", "--for=delete", f"pod/{name}", "--timeout=30s")
        counts = end()
    assert failures(counts) == {}
    assert counts["200"] > 50
    assert len([name for name in counts if name.startswith("smiley-")]) == 3


def test_no_request_fails_while_all_of_a_workload_is_replaced(lab: LabProcess) -> None:
    before = {each["metadata"]["name"] for each in pods(lab, "smiley")}
    with load(lab) as end:
        lab.kubectl("-n", "faces", "rollout", "restart", "deploy/smiley")
        rolled(lab, "smiley")
        for name in before:
            lab.kubectl("-n", "faces", "wait", "--for=delete", f"pod/{name}", "--timeout=30s")
        counts = end()
    assert failures(counts) == {}
    assert {name for name in counts if name.startswith("smiley-")} > before


def test_no_request_fails_while_the_control_plane_is_killed_and_comes_back(
    lab: LabProcess,
) -> None:
    with load(lab) as end:
        os.kill(server(lab), signal.SIGKILL)
        again = proxies_again(lab)
        counts = end()
    assert failures(counts) == {}
    assert counts["200"] > 20
    for proxy in again:
        assert {kind["waiting"] for kind in proxy["types"]} == {0}
        assert {kind["ackedAt"] for kind in proxy["types"]} == {None}  # nothing was told again


def proxies_again(lab: LabProcess) -> list[dict[str, Any]]:
    """The proxies of a control plane that has just been started, once all are there."""
    asked = [sys.executable, "-m", "isthmus", "--kubeconfig", str(lab.state / "kubeconfig"),
             "proxy", "status", "-o", "json"]  # fmt: skip
    for _ in range(100):
        done = subprocess.run(asked, capture_output=True, timeout=PATIENCE, check=False)
        found: list[dict[str, Any]] = (
            json.loads(done.stdout)["proxies"] if done.returncode == 0 else []
        )
        sidecars = [each for each in found if not each["proxy"].startswith("node/")]
        if len(sidecars) == 5 and all(len(each["types"]) == 4 for each in sidecars):
            return found
    raise AssertionError("not all proxies came back")

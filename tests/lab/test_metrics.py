"""What people see of traffic: metrics of proxies, and the commands that read them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import topologies as t
from tests.lab.test_egress import CALLS, EDGE, FETCH, NETWORK, ROUTE
from tests.support.lab import LabProcess
from tests.support.until import until

SOON = 30.0
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

SHAKY = """
import http.server, itertools
turn = itertools.count()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        bad = self.path != "/ready" and next(turn) % 2 == 0
        self.send_response(503 if bad else 200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""
"""A server that fails every other request."""

POLICY = """
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: web, namespace: faces}
spec: {podSelector: {matchLabels: {app: web}}, port: http, proxyProtocol: HTTP/1}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: only-client, namespace: faces}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: web}
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: client}]
"""


def meshed(made: dict[str, Any]) -> dict[str, Any]:
    """In the namespace of the mesh."""
    made["metadata"]["namespace"] = "faces"
    return made


def account(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "faces"},
    }


def objects() -> list[dict[str, Any]]:
    shaky = t.container(
        image="shaky",
        command=[sys.executable, "-c", SHAKY],
        readinessProbe={"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1},
    )
    web = t.service("web")
    web["metadata"]["annotations"] = {"retry.linkerd.io/http": "5xx", "retry.linkerd.io/limit": "3"}
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "faces", "annotations": {"linkerd.io/inject": "enabled"}},
    }
    clients = ("client", "stranger")
    return [
        space,
        *map(account, (*clients, "web")),
        meshed(t.deployment("web", 1, shaky, serviceAccountName="web")),
        meshed(web),
        *(
            meshed(t.deployment(name, 1, t.container(), serviceAccountName=name))
            for name in clients
        ),
    ]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("metrics")
    image = "ghcr.io/buoyantio/faces-color:2.0.0-rc.2"
    topology = {
        "clusters": [t.cluster(1, "north", "flat", "apps")],
        "networks": [
            {"name": "flat", "cidr": "172.17.1.0/24"},
            {"name": "egress", "cidr": "198.51.100.0/24", "reachableFrom": ["north"]},
        ],
        "hosts": [
            {
                "name": "color",
                "network": "egress",
                "run": {"image": image, "env": {"FACES_SERVICE": "color"}},
            },
        ],
    }
    with LabProcess(folder / "state", t.write(folder, topology, apps=objects())) as running:
        running.kubectl(
            "-n", "faces", "wait", "deploy", "--all", "--for=condition=Available", "--timeout=90s"
        )
        yield running


def run(lab: LabProcess, script: str, argument: str, who: str = "client") -> str:
    """What a script in a client's pod prints."""
    return lab.kubectl("-n", "faces", "exec", f"deploy/{who}", "-c", "echo", "--",
                       sys.executable, "-c", script, argument).strip()  # fmt: skip


def isthmus(lab: LabProcess, *words: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", *words], capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "KUBECONFIG": str(lab.state / "kubeconfig")},
    )  # fmt: skip
    assert done.returncode == 0, f"isthmus {' '.join(words)}: {done.stderr}"
    return done.stdout


def apply(lab: LabProcess, *documents: str) -> None:
    lab.kubectl("apply", "-f", "-", stdin="\n---\n".join(documents))


def metrics(lab: LabProcess, resource: str = "deploy/client") -> str:
    return isthmus(lab, "diagnostics", "proxy-metrics", "-n", "faces", resource)


# ------------------------------------------------------------------- a script that splits

Series = tuple[str, dict[str, str], float]


def split(page: str) -> list[Series]:
    """A page as scripts take it apart: at braces, commas and equals signs, and no further."""
    found = []
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, rest = line.split("{")
            inner, value = rest.split("}")
            labels = dict(each.split("=") for each in inner.split(",") if each)
            found.append((name, {k: v.strip('"') for k, v in labels.items()}, float(value)))
    return found


def egress(lab: LabProcess) -> dict[tuple[str, str, str, str, str], int]:
    """Family, parent, port, route and status of what left, with the counts."""
    found: dict[tuple[str, str, str, str, str], int] = {}
    for name, labels, value in split(metrics(lab)):
        if "_route_request_statuses_total" in name and "egress" in labels["parent_name"]:
            assert labels["hostname"] == "color"
            status = labels.get("http_status", labels.get("grpc_status", ""))
            key = (name.split("_")[1], labels["parent_name"], labels["parent_port"],
                   labels["route_name"], status)  # fmt: skip
            found[key] = found.get(key, 0) + int(value)
    return found


def calls(lab: LabProcess, *expected: str) -> None:
    """Ask for colors until it comes as expected."""
    seen: list[str] = []

    def look() -> bool | None:
        seen[:] = json.loads(run(lab, CALLS, "color:8000"))
        return True if seen == list(expected) else None

    until(look, SOON, lambda: f"{expected} expected, {seen} seen")


FALLBACK = ("http", "egress-fallback", "", "egress-fallback", "200")
ALL = ("http", "all-egress", "8000", "http-egress-allow", "200")
NONE = ("http", "all-egress", "8000", "http-egress-deny", "403")
COLOR = ("grpc", "all-egress", "8000", "allow-color", "OK")
REFUSED = ("grpc", "all-egress", "8000", "grpc-egress-deny", "PERMISSION_DENIED")


def test_a_script_that_splits_reads_what_leaves(lab: LabProcess) -> None:
    calls(lab, "OK", "OK", "OK")
    assert set(egress(lab)) == {FALLBACK}
    apply(lab, NETWORK % "Allow")
    until(lambda: run(lab, CALLS, "color:8000") and (ALL in egress(lab) or None), SOON, str)
    before = egress(lab)
    calls(lab, "OK", "OK", "OK")
    after = egress(lab)
    assert (after[ALL], after[FALLBACK]) == (before[ALL] + 3, before[FALLBACK])
    apply(lab, NETWORK % "Deny")
    calls(lab, *["FAILED_PRECONDITION"] * 3)
    assert egress(lab)[NONE] >= 3
    apply(lab, ROUTE % ("allow-color", EDGE))
    calls(lab, "OK", "PERMISSION_DENIED", "PERMISSION_DENIED")
    found = egress(lab)
    assert set(found) == {FALLBACK, ALL, NONE, COLOR, REFUSED}
    assert (found[COLOR] >= 1, found[REFUSED] >= 2) == (True, True)


# ------------------------------------------------------------------------------- commands


def fetch(lab: LabProcess, status: str, who: str = "client", times: int = 1) -> None:
    """Ask for the page until it is answered so, and then some more."""
    seen: list[str] = []

    def look() -> bool | None:
        seen[:] = [run(lab, FETCH, "http://web/", who)]
        return True if seen == [status] else None

    until(look, SOON, lambda: f"{status} expected, {seen} seen")
    for _ in range(times - 1):
        assert run(lab, FETCH, "http://web/", who) == status


def viz(lab: LabProcess, what: str, resource: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(isthmus(lab, "viz", what, "-n", "faces", resource, "-o", "json"))


@pytest.fixture(scope="module")
def traffic(lab: LabProcess) -> LabProcess:
    """Some of each."""
    apply(lab, POLICY)
    fetch(lab, "403", "stranger")
    fetch(lab, "200", times=4)
    return lab


def test_retries_show_between_routes_and_backends(traffic: LabProcess) -> None:
    found: list[dict[str, Any]] = []

    def look() -> bool | None:
        """Envoy tells its histograms some seconds after its counters."""
        shown = viz(traffic, "stat-outbound", "deploy/client")
        found[:] = [each for each in shown if each["service"] == "web"]
        timed = len(found) == 2 and found[0]["latencyMsP99"] is not None
        return True if timed else None

    until(look, SOON, lambda: f"latencies expected, {found} seen")
    route, backend = found
    assert (route["name"], route["port"], route["route"]) == ("client", "80", "[default]")
    assert route["successRate"] == 1.0
    assert route["retryRate"] > 0.2
    assert (backend["backend"], backend["backendPort"]) == ("web", "80")
    assert 0.3 < backend["successRate"] < 0.8
    assert backend["rps"] > route["rps"]
    assert 0 < route["latencyMsP50"] <= route["latencyMsP99"]


def test_what_comes_is_seen_by_server(traffic: LabProcess) -> None:
    servers = {each["server"] for each in viz(traffic, "stat-inbound", "deploy/web")}
    assert servers >= {"web"}
    found = {(name, labels.get("authz_name", ""), labels["client_id"].partition(".")[0]): value
             for name, labels, value in split(metrics(traffic, "deploy/web"))
             if "_authz_" in name and labels.get("route_name") == "default"
             and "client_id" in labels}  # fmt: skip
    assert found["inbound_http_authz_allow_total", "only-client", "client"] >= 8
    assert found["inbound_http_authz_deny_total", "", "stranger"] >= 1


def test_edges(traffic: LabProcess) -> None:
    table = isthmus(traffic, "viz", "edges", "-n", "faces", "deploy/web")
    rows = {tuple(line.split()) for line in table.splitlines()[1:]}
    assert ("client", "web", "faces", "faces", "√") in rows
    assert ("stranger", "web", "faces", "faces", "√") in rows


def test_proxies_look_back_by_a_number_of_seconds(traffic: LabProcess) -> None:
    pod = traffic.kubectl("-n", "faces", "get", "pod", "-l", "app=web", "-o", "name").strip()
    page = f"/api/v1/namespaces/faces/pods/{pod.removeprefix('pod/')}:4191/proxy/metrics"
    assert traffic.kubectl("get", "--raw", f"{page}?ago=5").startswith("# AGE ")
    assert traffic.kubectl("get", "--raw", page).startswith("# TYPE ")
    for said in ("x", "-1", "1e9", "99999999"):
        assert traffic.try_kubectl("get", "--raw", f"{page}?ago={said}").returncode == 1


def test_who_may_call_and_what_proxies_are_told(traffic: LabProcess) -> None:
    table = isthmus(traffic, "authz", "-n", "faces", "deploy/web", "-o", "wide")
    words = table.splitlines()[1].split()
    assert words[:4] == ["*", "web", "only-client", "8080"]
    assert words[4].startswith("client.faces.serviceaccount.identity.")
    pod = traffic.kubectl("-n", "faces", "get", "pod", "-l", "app=web", "-o", "name").strip()
    told = json.loads(
        isthmus(traffic, "diagnostics", "policy", "-n", "faces", pod, "8080", "-o", "json")
    )
    assert told["labels"]["name"] == "web"
    told = json.loads(
        isthmus(traffic, "diagnostics", "policy", "-n", "faces", "svc/web", "80", "-o", "json")
    )
    assert told["metadata"]["Kind"]["Resource"]["name"] == "web"
    shown = isthmus(traffic, "identity", "-n", "faces", "-l", "app=web")
    assert "CN=web.faces.serviceaccount.identity." in shown


# ------------------------------------------------------------------------------- the page


def blocks() -> list[tuple[str, list[str]]]:
    """Commands of the page, and what it says that they print."""
    found = re.findall(r"```\n\$ isthmus (.*)\n((?:.*\n)*?)```", PAGE.read_text())
    return [(command, text.splitlines()) for command, text in found]


def alike(line: str) -> str:
    """A line without what differs from run to run."""
    line = re.sub(r"-[a-z0-9]{10}-[a-z0-9]{5}\b", "-POD", line)
    line = re.sub(r"\d+(\.\d+)?(ms|%)|NaN%|(?<= )-(?= )", "N", line)
    line = re.sub(r"(?<=[ }])\d+(\.\d+)?\b", "N", line)
    return re.sub(r"[ ─]+", " ", line).strip()


@pytest.mark.parametrize("number", range(6))
def test_the_page_shows_what_commands_print(traffic: LabProcess, number: int) -> None:
    command, lines = blocks()[number]
    told = isthmus(traffic, *command.split())
    printed = {alike(line) for line in told.splitlines()}
    missing = [line for line in lines if line != "..." and alike(line) not in printed]
    assert not missing, told


def test_all_of_the_pages_commands_are_tried() -> None:
    assert len(blocks()) == 6

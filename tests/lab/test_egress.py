"""What leaves a cluster, by the manifests of a workshop, applied with kubectl as written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess
from tests.support.until import until

SOON = 20.0

CALLS = """
import json, sys, grpc
from isthmus.proto.faces import color_pb2
told = []
for name, user in (("Edge", "somebody"), ("Center", "somebody"), ("Center", "Center")):
    with grpc.insecure_channel(sys.argv[1]) as channel:
        call = channel.unary_unary(
            f"/ColorService/{name}",
            request_serializer=color_pb2.ColorRequest.SerializeToString,
            response_deserializer=color_pb2.ColorResponse.FromString,
        )
        try:
            call(color_pb2.ColorRequest(), timeout=10, metadata=(("x-faces-user", user),))
            told.append("OK")
        except grpc.RpcError as fault:
            told.append(fault.code().name)
print(json.dumps(told))
"""
FETCH = """
import sys, urllib.error, urllib.request as u
try:
    print(u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=5).status)
except urllib.error.HTTPError as fault:
    print(fault.code)
except OSError as fault:
    print("closed")
"""

NETWORK = """
apiVersion: v1
kind: Namespace
metadata: {name: linkerd-egress}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: EgressNetwork
metadata: {name: all-egress, namespace: linkerd-egress}
spec: {trafficPolicy: %s}
"""
ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: %s, namespace: faces}
spec:
  parentRefs:
  - kind: EgressNetwork
    group: policy.linkerd.io
    name: all-egress
    namespace: linkerd-egress
    port: 8000
  rules:
  - matches: [%s]
"""
EVERY = "{method: {service: ColorService}}"
EDGE = "{method: {service: ColorService, method: Edge}}"
CENTER = (
    "{method: {service: ColorService, method: Center},"
    " headers: [{type: Exact, name: x-faces-user, value: Center}]}"
)
ALL = ["OK", "OK", "OK"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("egress")
    client = t.pod("client", t.container())
    client["metadata"] |= {
        "namespace": "faces",
        "annotations": {"linkerd.io/inject": "enabled"},
    }
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "faces"}}, client]
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
            {"name": "web", "network": "egress", "run": {"image": t.ECHO, "env": {"PORT": "80"}}},
        ],
    }
    with LabProcess(folder / "state", t.write(folder, topology, apps=objects)) as running:
        running.kubectl(
            "-n", "faces", "wait", "pod/client", "--for=condition=Ready", "--timeout=60s"
        )
        yield running


def run(lab: LabProcess, script: str, argument: str) -> str:
    told = lab.kubectl("-n", "faces", "exec", "client", "-c", "echo", "--",
                       sys.executable, "-c", script, argument)  # fmt: skip
    return told.strip()


def colors(lab: LabProcess) -> list[str]:
    """What comes of the edge, of the center, and of the center for one user."""
    found: list[str] = json.loads(run(lab, CALLS, "color:8000"))
    return found


def apply(lab: LabProcess, *documents: str) -> None:
    lab.kubectl("apply", "-f", "-", stdin="\n---\n".join(documents))


def comes(lab: LabProcess, expected: list[str]) -> None:
    """Wait until colors are as expected."""
    seen: list[list[str]] = []

    def look() -> bool | None:
        seen.append(colors(lab))
        return True if seen[-1] == expected else None

    until(look, SOON, lambda: f"{expected} expected, {seen[-1]} seen")


def page(lab: LabProcess, expected: str) -> None:
    """Wait until the page of the machine outside is answered so."""
    seen: list[str] = []

    def look() -> bool | None:
        seen.append(run(lab, FETCH, "http://web/"))
        return True if seen[-1] == expected else None

    until(look, SOON, lambda: f"{expected} expected, {seen[-1]} seen")


def test_the_workshops_egress_step_by_step(lab: LabProcess) -> None:
    comes(lab, ALL)
    page(lab, "200")
    apply(lab, NETWORK % "Allow")
    comes(lab, ALL)
    apply(lab, NETWORK % "Deny")
    comes(lab, ["FAILED_PRECONDITION"] * 3)
    page(lab, "403")
    apply(lab, ROUTE % ("allow-color", EVERY))
    comes(lab, ALL)
    page(lab, "403")
    apply(lab, ROUTE % ("allow-color", EDGE))
    comes(lab, ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED"])
    apply(lab, ROUTE % ("allow-color-2", CENTER))
    comes(lab, ["OK", "PERMISSION_DENIED", "OK"])
    lab.kubectl("-n", "faces", "delete", "grpcroute", "--all")
    comes(lab, ["FAILED_PRECONDITION"] * 3)
    lab.kubectl("-n", "linkerd-egress", "delete", "egressnetwork", "all-egress")
    comes(lab, ALL)
    page(lab, "200")

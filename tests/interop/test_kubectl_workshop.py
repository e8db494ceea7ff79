"""Every kubectl command of the workshop, typed as its readers type it, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kubectl import MANIFESTS, Kubectl
from tests.support.server import ServerProcess


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl on a fresh cluster in which the Faces workloads are applied."""
    with ServerProcess(tmp_path / "data", "--cluster", "k3d-face") as server:
        kubectl = Kubectl(server.kubeconfig, tmp_path)
        kubectl("create", "ns", "faces")
        kubectl("apply", "-f", str(MANIFESTS / "faces.yaml"))
        yield kubectl


def run_pods(kubectl: Kubectl, *selector: str) -> None:
    """Do for the pods what a machine would: they run and are ready."""
    pods = kubectl.read("pods", "-n", "faces", *selector)["items"]
    for number, pod in enumerate(pods):
        status = json.dumps({"status": running(pod, f"10.42.0.{number + 10}")})
        name = pod["metadata"]["name"]
        patch = ("patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)
        kubectl.say("-n", "faces", *patch)  # it may be on its way out


def running(pod: dict[str, Any], address: str) -> dict[str, object]:
    """The status of a pod whose containers run."""
    containers = [
        {"name": each["name"], "image": each["image"], "imageID": "", "ready": True,
         "restartCount": 0, "started": True, "state": {"running": {}}}
        for each in pod["spec"]["containers"]
    ]  # fmt: skip
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": containers,
    }


def roll_out(kubectl: Kubectl, deployment: str) -> str:
    """Run pods until the rollout is done; what `rollout status` says at last."""
    while True:
        run_pods(kubectl, "-l", f"service={deployment}")
        status = ("rollout", "status", f"deployment/{deployment}", "--timeout=1s")
        said = kubectl.say("-n", "faces", *status)
        if said.code == 0:
            return said.out


def test_the_workshop(kubectl: Kubectl) -> None:
    _first_look(kubectl)
    _federation(kubectl)
    _identity(kubectl)
    _egress(kubectl)


def _first_look(kubectl: Kubectl) -> None:
    shown = kubectl("--context", "k3d-face", "get", "pods,svc", "-n", "faces")
    assert "service/smiley" in shown
    assert "pod/smiley-" in shown
    assert 'deployment "smiley" successfully rolled out' in roll_out(kubectl, "smiley")
    assert "1/1" in kubectl("get", "pods", "-n", "faces", "-l", "service=smiley")


def _federation(kubectl: Kubectl) -> None:
    member = "mirror.linkerd.io/federated=member"
    assert kubectl("-n", "faces", "label", "svc/smiley", member) == "service/smiley labeled\n"
    assert kubectl("-n", "faces", "label", "svc/smiley", member) == "service/smiley not labeled\n"
    row = kubectl("-n", "faces", "get", "svc", "smiley").splitlines()
    assert row[0].split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert row[1].split()[:2] == ["smiley", "ClusterIP"]
    kubectl("-n", "faces", "set", "env", "deployment/smiley", "SMILEY=HeartEyes")
    roll_out(kubectl, "smiley")
    (pod,) = kubectl.read("pods", "-n", "faces", "-l", "service=smiley")["items"]
    env = {item["name"]: item["value"] for item in pod["spec"]["containers"][0]["env"]}
    assert env == {"FACES_SERVICE": "smiley", "SMILEY": "HeartEyes"}
    kubectl("-n", "faces", "scale", "deployment/smiley", "--replicas=0")
    kubectl("-n", "faces", "wait", "--for=delete", "pod", "-l", "service=smiley", "--timeout=30s")
    kubectl("-n", "faces", "scale", "deployment/smiley", "--replicas=2")
    roll_out(kubectl, "smiley")
    assert len(kubectl.read("pods", "-n", "faces", "-l", "service=smiley")["items"]) == 2
    for words in (
        ("annotate", "-n", "faces", "service", "smiley", "retry.linkerd.io/http=5xx",
         "retry.linkerd.io/limit=3"),
        ("set", "env", "-n", "faces", "deployment/smiley", "ERROR_FRACTION=30"),
        ("set", "env", "-n", "faces", "deployment/smiley", "ERROR_FRACTION-"),
    ):  # fmt: skip
        kubectl(*words)
    annotations = kubectl.read("svc", "smiley", "-n", "faces")["metadata"]["annotations"]
    assert annotations["retry.linkerd.io/http"] == "5xx"
    assert annotations["retry.linkerd.io/limit"] == "3"


def _identity(kubectl: Kubectl) -> None:
    for name in ("face-account", "smiley-auth"):
        kubectl("apply", "-f", str(MANIFESTS / f"{name}.yaml"))
    assert "smiley-http" in kubectl("get", "servers.policy.linkerd.io", "-n", "faces")
    deleted = kubectl("delete", "-f", str(MANIFESTS / "smiley-auth.yaml"))
    assert len(deleted.splitlines()) == 3
    again = kubectl("apply", "-f", str(MANIFESTS / "smiley-auth.yaml"))
    assert again.count(" created") == 3
    same = kubectl("apply", "-f", str(MANIFESTS / "smiley-auth.yaml"))
    assert same.count(" unchanged") == 3
    kubectl("-n", "faces", "set", "serviceaccount", "deployment/face", "face")
    roll_out(kubectl, "face")
    (pod,) = kubectl.read("pods", "-n", "faces", "-l", "service=face")["items"]
    assert pod["spec"]["serviceAccountName"] == "face"


def _egress(kubectl: Kubectl) -> None:
    network = ("egressnetworks.policy.linkerd.io", "all-egress", "-n", "linkerd-egress")
    kubectl("apply", "-f", str(MANIFESTS / "all-egress-allow.yaml"))
    assert kubectl.read(*network)["spec"]["trafficPolicy"] == "Allow"
    assert "configured" in kubectl("apply", "-f", str(MANIFESTS / "all-egress-deny.yaml"))
    assert kubectl.read(*network)["spec"]["trafficPolicy"] == "Deny"
    kubectl("apply", "-f", str(MANIFESTS / "color-all.yaml"))
    kubectl("apply", "-f", str(MANIFESTS / "color-edge.yaml"))
    route = kubectl.read("grpcroutes", "allow-color", "-n", "faces")
    assert route["spec"]["rules"][0]["matches"][0]["method"]["method"] == "Edge"
    kubectl("apply", "-f", str(MANIFESTS / "color-center-for-one.yaml"))
    assert len(kubectl.read("grpcroutes", "-n", "faces")["items"]) == 2


def test_what_the_setup_script_creates(kubectl: Kubectl) -> None:
    """Namespaces, ConfigMaps and Secrets by their own commands, which speak protobuf."""
    kubectl("create", "ns", "linkerd-multicluster")
    within = kubectl.within("linkerd-multicluster")
    within("create", "configmap", "roots", "--from-literal=ca-bundle.crt=PEM")
    within("create", "secret", "generic", "plain", "--from-literal=key=value")
    secret = within.read("secret", "plain")
    assert (secret["type"], secret["data"]) == ("Opaque", {"key": "dmFsdWU="})
    assert within.read("configmap", "roots")["data"] == {"ca-bundle.crt": "PEM"}
    taken = within.fails("create", "configmap", "roots")
    assert 'configmaps "roots" already exists' in taken
    kubectl("delete", "ns", "linkerd-multicluster", "--timeout=30s")
    assert "not found" in kubectl.fails("get", "ns", "linkerd-multicluster")


def test_a_tls_secret(kubectl: Kubectl, tmp_path: Path) -> None:
    from isthmus.aio import SystemClock  # noqa: PLC0415  # only this test makes certificates
    from isthmus.ca import make  # noqa: PLC0415

    authority = make("issuer", now=SystemClock().utc())
    (tmp_path / "tls.crt").write_bytes(authority.bundle)
    (tmp_path / "tls.key").write_bytes(authority.key_pem)
    pair = (f"--cert={tmp_path}/tls.crt", f"--key={tmp_path}/tls.key")
    kubectl("-n", "linkerd", "create", "secret", "tls", "linkerd-identity-issuer", *pair)
    secret = kubectl.read("secret", "linkerd-identity-issuer", "-n", "linkerd")
    assert secret["type"] == "kubernetes.io/tls"
    assert sorted(secret["data"]) == ["tls.crt", "tls.key"]

"""What goes with what: deletes of owners by the real kubectl, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from tests.interop.kubectl import Kubectl, line_of
from tests.support.server import ServerProcess

NUMBERS = count()
HOLD = "example.org/hold"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: example.org/web}]}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests here."""
    with ServerProcess(tmp_path_factory.mktemp("cascade") / "data") as server:
        yield server


@pytest.fixture
def kubectl(server: ServerProcess) -> Kubectl:
    """kubectl in a namespace of its own."""
    home = server.home.parent
    namespace = f"test-{next(NUMBERS)}"
    cluster = Kubectl(server.kubeconfig, home)
    cluster("create", "ns", namespace)
    return cluster.within(namespace)


def create(
    kubectl: Kubectl, name: str, *owners: str, hold: bool = False, blocks: bool = True
) -> None:
    """A ConfigMap that others own."""
    references = [_reference(kubectl, owner, blocks=blocks) for owner in owners]
    metadata: dict[str, Any] = {"name": name, "ownerReferences": references}
    if hold:
        metadata["finalizers"] = [HOLD]
    metadata["labels"] = {"test": "cascade"}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    kubectl("create", "-f", "-", stdin=json.dumps(document))


def _reference(kubectl: Kubectl, owner: str, *, blocks: bool) -> dict[str, object]:
    metadata = kubectl.read("cm", owner)["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner,
        "uid": metadata["uid"],
        "blockOwnerDeletion": blocks,
    }


def release(kubectl: Kubectl, name: str) -> None:
    kubectl("patch", "cm", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def gone(kubectl: Kubectl, *names: str) -> None:
    """Wait until they are gone."""
    with suppress(AssertionError):  # gone before kubectl asked: not found
        kubectl("wait", "--for=delete", *(f"cm/{name}" for name in names), "--timeout=20s")
    for name in names:
        assert kubectl("get", "cm", name, "--ignore-not-found") == ""


def test_background_is_the_default(kubectl: Kubectl) -> None:
    create(kubectl, "owner")
    create(kubectl, "dependent", "owner", hold=True)
    create(kubectl, "its", "dependent")
    said = kubectl("delete", "cm", "owner")
    assert said.startswith('configmap "owner" deleted')
    assert kubectl("get", "cm", "owner", "--ignore-not-found") == ""
    kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "cm/dependent", "--timeout=20s")
    assert kubectl("get", "cm", "its", "-o", "name") == "configmap/its\n"
    release(kubectl, "dependent")
    gone(kubectl, "dependent", "its")


def test_foreground_waits_for_those_that_block(kubectl: Kubectl) -> None:
    create(kubectl, "owner")
    create(kubectl, "blocking", "owner", hold=True)
    create(kubectl, "other", "owner", hold=True, blocks=False)
    with kubectl.running("delete", "cm", "owner", "--cascade=foreground") as deleting:
        for name in ("owner", "blocking", "other"):
            kubectl(
                "wait", "--for=jsonpath={.metadata.deletionTimestamp}", f"cm/{name}",
                "--timeout=20s",
            )  # fmt: skip
        assert kubectl.read("cm", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert deleting.poll() is None
        release(kubectl, "blocking")
        assert 'configmap "owner" deleted' in line_of(deleting, lambda line: "deleted" in line)
        assert deleting.wait(timeout=60) == 0
    assert kubectl("get", "cm", "owner", "--ignore-not-found") == ""
    assert kubectl("get", "cm", "other", "-o", "name") == "configmap/other\n"
    release(kubectl, "other")
    gone(kubectl, "other")


def test_orphans_live_on(kubectl: Kubectl) -> None:
    create(kubectl, "owner")
    create(kubectl, "second")
    create(kubectl, "dependent", "owner", "second")
    kubectl("delete", "cm", "owner", "--cascade=orphan")
    assert kubectl("get", "cm", "owner", "--ignore-not-found") == ""
    [left] = kubectl.read("cm", "dependent")["metadata"]["ownerReferences"]
    assert left["name"] == "second"


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_a_deployment_and_what_it_made(kubectl: Kubectl, cascade: str) -> None:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deploy/web", "--timeout=30s")
    kubectl("delete", "deploy", "web", f"--cascade={cascade}", "--timeout=30s")
    assert kubectl("get", "deploy", "-o", "name") == ""
    if cascade == "orphan":
        [left] = kubectl.read("rs")["items"]
        assert "ownerReferences" not in left["metadata"]
        assert len(kubectl.read("pods")["items"]) == 2
        kubectl("create", "-f", "-", stdin=DEPLOYMENT)
        kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deploy/web", "--timeout=30s")
        [adopted] = kubectl.read("rs")["items"]
        assert adopted["metadata"]["uid"] == left["metadata"]["uid"]
        return
    if cascade == "background":  # foreground waited for both
        for what in ("rs", "pods"):
            kubectl("wait", "--for=delete", what, "-l", "app=web", "--timeout=30s")
    assert kubectl("get", "rs,pods", "-o", "name") == ""


def test_a_collection_by_selector(kubectl: Kubectl, server: ServerProcess) -> None:
    for name in ("a", "b"):
        create(kubectl, name)
    kubectl("create", "cm", "free")
    namespace = kubectl.read("cm", "a")["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    code, tried = server.request(
        "DELETE", f"{path}?labelSelector=test%3Dcascade&dryRun=All", {"propagationPolicy": "Orphan"}
    )
    assert (code, tried["kind"]) == (200, "Status")
    assert len(kubectl("get", "cm", "-l", "test", "-o", "name").split()) == 2
    code, _ = server.request("DELETE", f"{path}?labelSelector=test%3Dcascade")
    assert code == 200
    gone(kubectl, "a", "b")
    assert kubectl("get", "cm", "free", "-o", "name") == "configmap/free\n"
    kubectl("label", "cm", "free", "x=y")
    assert 'configmap "free" deleted' in kubectl("delete", "cm", "-l", "x=y")


def test_preconditions(kubectl: Kubectl, server: ServerProcess) -> None:
    create(kubectl, "a")
    metadata = kubectl.read("cm", "a")["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps/a"
    for wrong, said in (
        ({"uid": "other"}, "UID in precondition: other"),
        ({"resourceVersion": "1"}, "ResourceVersion in precondition: 1"),
    ):
        code, status = server.request("DELETE", path, {"preconditions": wrong})
        assert (code, status["reason"]) == (409, "Conflict")
        assert said in status["message"]
    right = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    code, status = server.request("DELETE", path, {"preconditions": right})
    assert (code, status["status"]) == (200, "Success")
    assert status["details"]["uid"] == metadata["uid"]


def test_a_delete_that_says_nothing_keeps_what_the_object_says(
    kubectl: Kubectl, server: ServerProcess
) -> None:
    """kubectl always says a policy; other clients leave it to the finalizers that are there."""
    create(kubectl, "owner")
    create(kubectl, "dependent", "owner")
    kubectl("patch", "cm", "owner", "-p", '{"metadata":{"finalizers":["orphan"]}}')
    namespace = kubectl.read("cm", "owner")["metadata"]["namespace"]
    code, _ = server.request("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/owner")
    assert code == 200
    gone(kubectl, "owner")
    assert "ownerReferences" not in kubectl.read("cm", "dependent")["metadata"]


def test_waiting_for_finalizers_or_not(kubectl: Kubectl) -> None:
    create(kubectl, "held", hold=True)
    kubectl("delete", "cm", "held", "--wait=false")
    said = kubectl.fails("delete", "cm", "held", "--timeout=1s")
    assert "timed out waiting for the condition" in said
    assert kubectl.read("cm", "held")["metadata"]["deletionTimestamp"]
    refused = kubectl.fails(
        "patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":["x/new"]}}'
    )
    assert "no new finalizers can be added if the object is being deleted" in refused
    with kubectl.running("delete", "cm", "held") as deleting:
        release(kubectl, "held")
        assert deleting.wait(timeout=60) in (0, 1)  # 1: it was gone before kubectl asked
    gone(kubectl, "held")


def test_a_namespace_and_all_in_it(kubectl: Kubectl) -> None:
    create(kubectl, "owner")
    create(kubectl, "dependent", "owner")
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    namespace = kubectl.read("cm", "owner")["metadata"]["namespace"]
    kubectl("delete", "ns", namespace, "--timeout=50s")
    assert kubectl("get", "ns", namespace, "--ignore-not-found") == ""
    assert kubectl("get", "cm,deploy,rs,pods", "-o", "name") == ""

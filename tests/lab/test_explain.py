"""`isthmus explain` in two linked clusters, and what the pods there see happen."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import linked
from tests.lab import topologies as t
from tests.lab.test_flat_clusters import MANY, MEMBER
from tests.support.lab import LabProcess
from tests.support.server import PATIENCE
from tests.support.until import until

API = "policy.linkerd.io"
SERVER = {
    "apiVersion": f"{API}/v1beta3",
    "kind": "Server",
    "metadata": {"name": "smiley", "namespace": "faces"},
    "spec": {"port": "http", "podSelector": {"matchLabels": {"app": "smiley"}}},
}
POLICY = {
    "apiVersion": f"{API}/v1alpha1",
    "kind": "AuthorizationPolicy",
    "metadata": {"name": "for-face", "namespace": "faces"},
    "spec": {
        "targetRef": {"group": API, "kind": "Server", "name": "smiley"},
        "requiredAuthenticationRefs": [{"kind": "ServiceAccount", "name": "face"}],
    },
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    folder = tmp_path_factory.mktemp("explain")
    member = [linked.NAMESPACE, *linked.workload("smiley"), linked.service("smiley", MEMBER)]
    topology = {
        "clusters": [
            t.cluster(1, "hub", "flat", "smiley", "face"),
            t.cluster(2, "a", "flat", "smiley"),
        ],
        "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}],
    }
    path = t.write(folder, topology, smiley=member, face=linked.workload("face"))
    with LabProcess(folder / "state", path) as running:
        for where in ("hub face", "hub smiley", "a smiley"):
            linked.rolled(running, *where.split())
        linked.link(running, "hub", "a", gateway=False)
        yield running


def told(lab: LabProcess, words: list[str]) -> dict[str, Any]:
    """What a command says as JSON."""
    command = [sys.executable, "-m", "isthmus", *words, "-o", "json"]
    command += ["--kubeconfig", str(lab.state / "kubeconfig")]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ends(lab: LabProcess) -> dict[str, dict[str, Any]] | None:
    """Where requests may end, by cluster; None until both clusters are known."""
    words = ["explain", "--context=hub", "-n", "faces", "deploy/face", "smiley-federated"]
    try:
        found = told(lab, [*words, "GET", "/center/"])
    except AssertionError:
        return None  # there is no such name yet
    by_cluster = {each["cluster"]: each for each in found.get("ends", ())}
    return by_cluster if by_cluster.keys() == {"hub", "a"} else None


def answers(lab: LabProcess) -> set[str]:
    """Who answers many requests: clusters, or statuses of whoever refuses."""
    where = {name: cluster for cluster in ("hub", "a") for name in linked.names(lab, cluster)}
    return {where.get(name, name) for name in linked.told(lab, MANY, "40")}


def test_each_cluster_tells_what_its_own_objects_decide(lab: LabProcess) -> None:
    found = until(lambda: ends(lab), PATIENCE, lambda: "the other cluster is not explained")
    assert found["hub"]["verdict"]["outcome"] == "delivered"
    assert found["a"]["verdict"]["outcome"] == "decided elsewhere"
    _, *there = shlex.split(found["a"]["ask"])
    assert told(lab, there)["verdict"]["by"] == "default all-unauthenticated"
    until(lambda: answers(lab) == {"hub", "a"} or None, PATIENCE, lambda: "not both answer")

    lab.kubectl("apply", "-f", "-", context="a", stdin=json.dumps(SERVER))
    until(lambda: answers(lab) == {"hub", "403"} or None, PATIENCE, lambda: "a refuses nobody")
    assert told(lab, there)["verdict"] == {
        "outcome": "refused",
        "text": "no authorization lets this client in",
        "by": "Server faces/smiley",
        "status": 403,
    }
    lab.kubectl("apply", "-f", "-", context="a", stdin=json.dumps(POLICY))
    until(lambda: answers(lab) == {"hub", "a"} or None, PATIENCE, lambda: "a refuses still")
    assert told(lab, there)["verdict"]["by"] == "AuthorizationPolicy faces/for-face"

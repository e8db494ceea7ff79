"""Namespace, Node, Event, Endpoints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.model.core import ENDPOINTS, EVENT, NAMESPACE, NODE, Endpoints, Node
from isthmus.model.intake import view
from tests.unit.model.objects import made, paths, row, told, written


def test_a_namespace_is_born_active_and_labelled_with_its_name() -> None:
    got = written(NAMESPACE, made(NAMESPACE, name="faces", status={"phase": "Terminating"}))
    assert got["metadata"]["labels"] == {"kubernetes.io/metadata.name": "faces"}
    assert got["spec"] == {"finalizers": ["kubernetes"]}
    assert got["status"] == {"phase": "Active"}
    assert row(NAMESPACE, got) == {"Status": "Active", "Age": "5m"}
    assert told(NAMESPACE, got) == []


def test_a_namespace_that_ends_is_not_born_again() -> None:
    old = written(NAMESPACE, made(NAMESPACE))
    ending = {**old, "spec": {"finalizers": []}, "status": {"phase": "Terminating"}}
    got = written(NAMESPACE, ending, old)
    assert got["spec"] == {"finalizers": []}
    assert got["status"] == {"phase": "Terminating"}


def test_faults_of_namespaces() -> None:
    document = made(NAMESPACE, name="a.b", spec={"finalizers": ["a b"]})
    assert paths(NAMESPACE, document) == ["metadata.name", "spec.finalizers"]


def node(**status: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a status
    return made(NODE, status=status)


def test_columns_of_nodes() -> None:
    document = node(
        conditions=[
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}
        ],
        addresses=[{"type": "InternalIP", "address": "10.0.0.1"}],
        nodeInfo={"kubeletVersion": "v1.37.1", "osImage": "Debian"},
    )
    document["metadata"]["labels"] = {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}
    assert row(NODE, document, wide=True) == {
        "Status": "Ready",
        "Roles": "a,b",
        "Age": "5m",
        "Version": "v1.37.1",
        "Internal-IP": "10.0.0.1",
        "External-IP": "<none>",
        "OS-Image": "Debian",
        "Kernel-Version": "<unknown>",
        "Container-Runtime": "<unknown>",
    }
    seen = view(NODE, msgspec.json.encode(document))
    assert isinstance(seen, Node)
    assert seen.status.ready
    later = {**document["status"]["conditions"][0], "lastHeartbeatTime": "2026-01-02T09:00:00Z"}
    document["status"]["conditions"] = [later]
    assert view(NODE, msgspec.json.encode(document)) == seen, "a heartbeat is no fact"


@pytest.mark.parametrize(
    ("conditions", "word"),
    [([], "Unknown"), ([{"type": "Ready", "status": "False"}], "NotReady")],
)
def test_nodes_that_are_not_ready(conditions: list[Any], word: str) -> None:
    document = node(conditions=conditions)
    assert row(NODE, document)["Status"] == word
    document["spec"] = {"unschedulable": True}
    assert row(NODE, document)["Status"] == f"{word},SchedulingDisabled"
    assert row(NODE, document)["Roles"] == "<none>"


def test_faults_of_nodes() -> None:
    twice = [{"type": "InternalIP", "address": "10.0.0.1"}] * 2
    document = node(addresses=twice) | {"spec": {"podCIDRs": ["10.0.0.0/24", "x"]}}
    assert paths(NODE, document) == ["spec.podCIDRs[1]", "status.addresses[1]"]


def test_an_event_is_shown_by_when_it_was_seen() -> None:
    document = made(
        EVENT,
        involvedObject={"kind": "Pod", "name": "p", "namespace": "ns", "fieldPath": "spec"},
        reason="Started",
        type="Normal",
        message=" up \n",
        firstTimestamp="2026-01-02T03:04:05Z",
        lastTimestamp="2026-01-02T03:08:05Z",
        count=3,
        source={"component": "kubelet", "host": "n1"},
    )
    assert told(EVENT, document) == []
    assert row(EVENT, document, wide=True) == {
        "Last Seen": "60s",
        "Type": "Normal",
        "Reason": "Started",
        "Object": "pod/p",
        "Subobject": "spec",
        "Source": "kubelet, n1",
        "Message": "up",
        "First Seen": "5m",
        "Count": 3,
        "Name": "a",
    }


def test_an_event_of_the_new_form() -> None:
    document = made(EVENT, involvedObject={"kind": "Node"}, eventTime="2026-01-02T03:04:05.000001Z")
    shown = row(EVENT, document, wide=True)
    assert (shown["Last Seen"], shown["Object"], shown["Count"]) == ("4m59s", "node", 1)
    document["series"] = {"count": 4, "lastObservedTime": "2026-01-02T03:09:04.000000Z"}
    document["reportingComponent"] = "me"
    shown = row(EVENT, document, wide=True)
    assert (shown["Last Seen"], shown["Count"], shown["Source"]) == ("1s", 4, "me")


def test_an_event_stays_in_its_namespace() -> None:
    document = made(EVENT, involvedObject={"namespace": "other"})
    assert paths(EVENT, document) == ["involvedObject.namespace"]


def subset(*addresses: str, ports: tuple[int, ...] = (80,)) -> dict[str, Any]:
    return {
        "addresses": [{"ip": each} for each in addresses],
        "ports": [{"name": f"p{port}", "port": port} for port in ports],
    }


def test_endpoints_are_listed_shortly() -> None:
    document = made(ENDPOINTS, subsets=[subset("10.0.0.1", "fd00::1", "10.0.0.3", "10.0.0.4")])
    assert (
        row(ENDPOINTS, document)["Endpoints"] == "10.0.0.1:80,[fd00::1]:80,10.0.0.3:80 + 1 more..."
    )
    assert row(ENDPOINTS, made(ENDPOINTS))["Endpoints"] == "<none>"
    bare = made(ENDPOINTS, subsets=[subset("10.0.0.1", ports=())])
    assert row(ENDPOINTS, bare)["Endpoints"] == "10.0.0.1"
    got = written(ENDPOINTS, document)
    assert got["subsets"][0]["ports"][0]["protocol"] == "TCP"
    assert told(ENDPOINTS, document) == []
    seen = view(ENDPOINTS, msgspec.json.encode(got))
    assert isinstance(seen, Endpoints)
    assert seen.subsets[0].ports[0].port == 80


def test_faults_of_endpoints() -> None:
    bad = {
        "addresses": [{"ip": "x", "hostname": "A"}],
        "ports": [{"port": 0}, {"name": "B", "port": 1, "protocol": "x"}, {"name": "B", "port": 2}],
    }
    assert paths(ENDPOINTS, made(ENDPOINTS, subsets=[{}, bad])) == [
        "subsets[0]",
        "subsets[1].addresses[0].ip",
        "subsets[1].addresses[0].hostname",
        "subsets[1].ports[0].name",
        "subsets[1].ports[0].port",
        "subsets[1].ports[1].name",
        "subsets[1].ports[1].protocol",
        "subsets[1].ports[2].name",
        "subsets[1].ports[2].name",
    ]

"""Deployment, ReplicaSet, StatefulSet, ControllerRevision."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from isthmus.model.apps import (
    CONTROLLER_REVISION,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    Deployment,
)
from isthmus.model.intake import view
from isthmus.model.kind import Kind
from tests.unit.model.objects import made, paths, row, told, written

WORKLOADS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET)


def workload(kind: Kind = DEPLOYMENT, **spec: object) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "x:1"}, {"name": "d", "image": "y"}]},
    }
    selector = {"matchLabels": {"app": "a"}}
    return made(kind, spec={"selector": selector, "template": template, **spec})


def test_defaults_of_a_deployment() -> None:
    got = written(DEPLOYMENT, workload())
    spec = {name: value for name, value in got["spec"].items() if name != "template"}
    assert spec == {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "a"}},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert got["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert "serviceAccountName" not in got["spec"]["template"]["spec"]
    assert got["status"] == {}


def test_zero_is_no_default() -> None:
    got = written(DEPLOYMENT, workload(replicas=0, revisionHistoryLimit=0))["spec"]
    assert (got["replicas"], got["revisionHistoryLimit"]) == (0, 0)
    recreate = written(DEPLOYMENT, workload(strategy={"type": "Recreate"}))["spec"]
    assert recreate["strategy"] == {"type": "Recreate"}


def test_defaults_of_a_stateful_set() -> None:
    got = written(STATEFUL_SET, workload(STATEFUL_SET))["spec"]
    assert got["podManagementPolicy"] == "OrderedReady"
    assert got["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert got["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }


@pytest.mark.parametrize("kind", WORKLOADS, ids=lambda kind: kind.name)
def test_a_good_workload_has_no_faults(kind: Kind) -> None:
    document = workload(kind)
    assert told(kind, document) == []
    assert told(kind, document, written(kind, document)) == []


@pytest.mark.parametrize("kind", WORKLOADS, ids=lambda kind: kind.name)
def test_selectors_match_their_template_and_stay(kind: Kind) -> None:
    (cause,) = told(kind, workload(kind, selector={"matchLabels": {"app": "b"}}))
    assert cause.path == "spec.template.metadata.labels"
    assert cause.message.endswith("`selector` does not match template `labels`")
    assert paths(kind, workload(kind, selector=None)) == ["spec.selector"]
    (cause,) = told(kind, workload(kind, selector={}))
    assert "empty selector is invalid for" in cause.message
    narrower = {
        "matchLabels": {"app": "a"},
        "matchExpressions": [{"key": "app", "operator": "Exists"}],
    }
    new = workload(kind, selector=narrower)
    assert len(told(kind, new, written(kind, workload(kind)))) == 1


def test_a_changed_selector_is_said_to_be_immutable() -> None:
    old = written(DEPLOYMENT, workload())
    new = deepcopy(old)
    new["spec"]["selector"] = {"matchLabels": {"app": "b"}}
    new["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    (cause,) = told(DEPLOYMENT, new, old)
    assert cause.message == 'Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'


def test_templates_are_checked_as_pods_are() -> None:
    document = workload(replicas=-1)
    template = document["spec"]["template"]
    template["metadata"] |= {"annotations": {"a b": ""}}
    template["spec"] = {"containers": [{"name": "c"}], "restartPolicy": "Never"}
    assert paths(DEPLOYMENT, document) == [
        "spec.replicas",
        "spec.template.metadata.annotations",
        "spec.template.spec.containers[0].image",
        "spec.template.spec.restartPolicy",
    ]


@pytest.mark.parametrize(
    ("strategy", "found"),
    [
        ({"type": "x"}, ["type"]),
        ({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, ["rollingUpdate"]),
        ({"rollingUpdate": {"maxSurge": -1}}, ["rollingUpdate.maxSurge"]),
        ({"rollingUpdate": {"maxSurge": "x%"}}, ["rollingUpdate.maxSurge"]),
        ({"rollingUpdate": {"maxUnavailable": "101%"}}, ["rollingUpdate.maxUnavailable"]),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            ["rollingUpdate.maxUnavailable"],
        ),
        ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, []),
    ],
)
def test_faults_of_strategies(strategy: dict[str, Any], found: list[str]) -> None:
    expected = [f"spec.strategy.{path}" for path in found]
    assert paths(DEPLOYMENT, workload(strategy=strategy)) == expected


def test_a_deadline_is_longer_than_getting_ready() -> None:
    document = workload(minReadySeconds=600)
    assert paths(DEPLOYMENT, document) == ["spec.progressDeadlineSeconds"]


def test_faults_of_stateful_sets() -> None:
    document = workload(
        STATEFUL_SET,
        podManagementPolicy="x",
        updateStrategy={"type": "y", "rollingUpdate": {"partition": -1}},
        serviceName="A",
    )
    assert paths(STATEFUL_SET, document) == [
        "spec.podManagementPolicy",
        "spec.updateStrategy.type",
        "spec.updateStrategy.rollingUpdate.partition",
        "spec.serviceName",
    ]
    old = written(STATEFUL_SET, workload(STATEFUL_SET))
    fine = workload(STATEFUL_SET, replicas=5, minReadySeconds=3)
    assert told(STATEFUL_SET, fine, old) == []
    (cause,) = told(STATEFUL_SET, workload(STATEFUL_SET, serviceName="other"), old)
    assert cause.path == "spec"
    assert "updates to statefulset spec for fields other than 'replicas'" in cause.message


def test_columns_of_deployments() -> None:
    document = workload(replicas=3)
    document["status"] = {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}
    assert row(DEPLOYMENT, document, wide=True) == {
        "Ready": "2/3",
        "Up-to-date": 1,
        "Available": 2,
        "Age": "5m",
        "Containers": "c,d",
        "Images": "x:1,y",
        "Selector": "app=a",
    }
    assert row(DEPLOYMENT, made(DEPLOYMENT), wide=True)["Selector"] == "<none>"


def test_columns_of_the_others() -> None:
    replicas = workload(REPLICA_SET, replicas=2) | {"status": {"replicas": 2, "readyReplicas": 1}}
    assert row(REPLICA_SET, replicas) == {"Desired": 2, "Current": 2, "Ready": 1, "Age": "5m"}
    assert row(STATEFUL_SET, workload(STATEFUL_SET, replicas=2)) == {"Ready": "0/2", "Age": "5m"}


def test_a_revision_never_changes() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True}
    old = made(CONTROLLER_REVISION, data={"spec": {}}, revision=2)
    new = made(CONTROLLER_REVISION, data={"spec": {"a": 1}}, revision=2)
    assert paths(CONTROLLER_REVISION, new, old) == ["data"]
    assert paths(CONTROLLER_REVISION, made(CONTROLLER_REVISION, data=[1])) == ["data"]
    assert row(CONTROLLER_REVISION, old) == {"Controller": "<none>", "Revision": 2, "Age": "5m"}
    old["metadata"]["ownerReferences"] = [{}, owner]
    assert row(CONTROLLER_REVISION, old)["Controller"] == "statefulset.apps/s"
    owner["apiVersion"] = "v1"
    assert row(CONTROLLER_REVISION, old)["Controller"] == "statefulset/s"


def test_the_view_keeps_the_template_whole() -> None:
    document = written(DEPLOYMENT, workload())
    document["metadata"]["generation"] = 4
    seen = view(DEPLOYMENT, msgspec.json.encode(document))
    assert isinstance(seen, Deployment)
    assert seen.metadata.generation == 4
    assert seen.spec.template == document["spec"]["template"]
    assert seen.spec.strategy.rolling_update is not None
    assert seen.spec.strategy.rolling_update.max_surge == "25%"

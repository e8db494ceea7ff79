from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from isthmus.model.core import POD, Pod
from isthmus.model.intake import view
from tests.unit.model.objects import made, paths, told, written


def pod(container: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    return made(
        POD, spec={"containers": [{"name": "c", "image": "x:1", **(container or {})}], **spec}
    )


def test_defaults_of_a_pod() -> None:
    document = written(POD, pod())
    spec = document["spec"]
    assert spec == {
        "containers": [
            {
                "name": "c",
                "image": "x:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
    }
    assert document["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("x:1", "IfNotPresent"),
        ("r:5000/x", "Always"),
        ("x@sha256:00", "IfNotPresent"),
    ],
)
def test_pull_policies(image: str, policy: str) -> None:
    container = written(POD, pod({"image": image}))["spec"]["containers"][0]
    assert container["imagePullPolicy"] == policy


def test_defaults_inside_a_container() -> None:
    container = {
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 5},
        "livenessProbe": {"grpc": {"port": 81}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "resources": {"limits": {"cpu": "1"}},
    }
    got = written(POD, pod(container, hostNetwork=True))["spec"]["containers"][0]
    assert got["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert got["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert got["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert got["livenessProbe"]["grpc"] == {"port": 81, "service": ""}
    assert got["lifecycle"]["preStop"]["httpGet"]["scheme"] == "HTTP"
    assert got["resources"]["requests"] == {"cpu": "1"}


def test_defaults_of_volumes() -> None:
    projected = {
        "sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]
    }
    down = {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}
    volumes = [
        {"name": "a"},
        {"name": "b", "configMap": {"name": "x"}},
        {"name": "c", "hostPath": {"path": "/x"}},
        {"name": "d", "projected": projected},
        {"name": "e", "downwardAPI": down},
    ]
    got = written(POD, pod(volumes=volumes))["spec"]["volumes"]
    assert got[0]["emptyDir"] == {}
    assert got[1]["configMap"]["defaultMode"] == 420
    assert got[2]["hostPath"]["type"] == ""
    assert got[3]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    field = got[3]["projected"]["sources"][1]["downwardAPI"]["items"][0]["fieldRef"]
    assert field["apiVersion"] == "v1"
    assert got[4]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"


def test_the_old_name_of_the_account_is_a_mirror() -> None:
    spec = written(POD, pod(serviceAccount="face"))["spec"]
    assert spec["serviceAccountName"] == "face"
    spec = written(POD, pod(serviceAccount="old", serviceAccountName="new"))["spec"]
    assert spec["serviceAccount"] == "new"


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], quality: str) -> None:
    assert written(POD, pod({"resources": resources}))["status"]["qosClass"] == quality


def test_addresses_are_said_twice() -> None:
    old = written(POD, pod())
    new = deepcopy(old)
    new["status"] |= {"podIP": "10.0.0.1", "hostIPs": [{"ip": "10.1.0.1"}]}
    status = written(POD, new, old)["status"]
    assert status["podIPs"] == [{"ip": "10.0.0.1"}]
    assert status["hostIP"] == "10.1.0.1"


def test_a_good_pod_has_no_faults() -> None:
    container = {
        "ports": [{"name": "http", "containerPort": 80}],
        "env": [{"name": "A", "value": "b"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "readinessProbe": {"tcpSocket": {"port": "http"}},
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    }
    sidecar = {"name": "proxy", "image": "p", "restartPolicy": "Always"}
    document = pod(
        container, volumes=[{"name": "v"}], initContainers=[sidecar], nodeSelector={"a": "b"}
    )
    assert told(POD, document) == []


@pytest.mark.parametrize(
    ("container", "found"),
    [
        ({"name": ""}, ["name"]),
        ({"name": "A"}, ["name"]),
        ({"image": ""}, ["image"]),
        ({"image": " x"}, ["image"]),
        ({"imagePullPolicy": "x"}, ["imagePullPolicy"]),
        ({"ports": [{}]}, ["ports[0].containerPort"]),
        ({"ports": [{"containerPort": 70000, "hostPort": -1}]},
         ["ports[0].containerPort", "ports[0].hostPort"]),
        ({"ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]},
         ["ports[1].name"]),
        ({"ports": [{"name": "1", "containerPort": 1, "protocol": "x"}]},
         ["ports[0].name", "ports[0].protocol"]),
        ({"env": [{"value": "x"}, {"name": "a=b"}]}, ["env[0].name", "env[1].name"]),
        ({"env": [{"name": "a", "value": "x", "valueFrom": {}}]},
         ["env[0].valueFrom", "env[0].valueFrom"]),
        ({"env": [{"name": "a", "valueFrom": {"fieldRef": {}, "secretKeyRef": {}}}]},
         ["env[0].valueFrom"]),
        ({"volumeMounts": [{"name": "none"}]},
         ["volumeMounts[0].name", "volumeMounts[0].mountPath"]),
        ({"volumeMounts": [{"mountPath": "/a"}, {"mountPath": "/a"}]},
         ["volumeMounts[0].name", "volumeMounts[1].name", "volumeMounts[1].mountPath"]),
        ({"readinessProbe": {}}, ["readinessProbe"]),
        ({"readinessProbe": {"httpGet": {}, "exec": {"command": ["x"]}}},
         ["readinessProbe.httpGet", "readinessProbe.httpGet.port"]),
        ({"livenessProbe": {"tcpSocket": {"port": 0}, "periodSeconds": -1}},
         ["livenessProbe.tcpSocket.port", "livenessProbe.periodSeconds"]),
        ({"resources": {"requests": {"cpu": "2", "memory": "-1"}, "limits": {"cpu": "1"}}},
         ["resources.requests", "resources.requests[memory]"]),
    ],
)  # fmt: skip
def test_faults_of_containers(container: dict[str, Any], found: list[str]) -> None:
    prefix = "spec.containers[0]."
    got = sorted(path.removeprefix(prefix) for path in paths(POD, pod(container)))
    assert got == sorted(found)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"containers": []}, ["spec.containers"]),
        ({"restartPolicy": "Perhaps"}, ["spec.restartPolicy"]),
        ({"dnsPolicy": "x"}, ["spec.dnsPolicy"]),
        ({"hostname": "a.b"}, ["spec.hostname"]),
        ({"serviceAccountName": "A"}, ["spec.serviceAccountName"]),
        ({"nodeSelector": {"a b": ""}}, ["spec.nodeSelector"]),
        ({"terminationGracePeriodSeconds": -1}, ["spec.terminationGracePeriodSeconds"]),
        ({"volumes": [{}]}, ["spec.volumes[0].name"]),
        ({"volumes": [{"name": "A"}]}, ["spec.volumes[0].name"]),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, ["spec.volumes[1].name"]),
        ({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
         ["spec.volumes[0].hostPath"]),
        ({"initContainers": [{"name": "c", "image": "x"}]}, ["spec.initContainers[0].name"]),
        ({"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Never"}]},
         ["spec.initContainers[0].restartPolicy"]),
        ({"containers": [{"name": f"c{i}", "image": "x"} for i in range(257)]},
         ["spec.containers"]),
    ],
)  # fmt: skip
def test_faults_of_specs(spec: dict[str, Any], found: list[str]) -> None:
    assert paths(POD, pod(None, **spec)) == found


def test_little_of_a_pod_may_change() -> None:
    old = written(POD, pod())
    new = deepcopy(old)
    new["spec"]["containers"][0]["image"] = "x:2"
    new["spec"]["activeDeadlineSeconds"] = 5
    assert told(POD, new, old) == []
    new["spec"]["containers"][0]["image"] = ""
    assert paths(POD, new, old) == ["spec.containers[0].image"]
    other = deepcopy(old)
    other["spec"]["containers"][0]["args"] = ["x"]
    (cause,) = told(POD, other, old)
    assert (cause.path, cause.reason) == ("spec", "FieldValueForbidden")
    assert "pod updates may not change fields other than" in cause.message


def test_a_pod_is_put_on_a_node_once() -> None:
    old = written(POD, pod())
    bound = deepcopy(old)
    bound["spec"]["nodeName"] = "n1"
    assert told(POD, bound, old) == []
    moved = deepcopy(bound)
    moved["spec"]["nodeName"] = "n2"
    assert paths(POD, moved, bound) == ["spec"]
    negative = deepcopy(old)
    negative["spec"]["terminationGracePeriodSeconds"] = -1
    assert (
        told(POD, old | {"spec": {**old["spec"], "terminationGracePeriodSeconds": 1}}, negative)
        == []
    )


def test_the_view_has_the_facts() -> None:
    container = {
        "ports": [{"name": "http", "containerPort": 80}],
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"httpGet": {"port": "http"}},
    }
    document = written(POD, pod(container, nodeName="n"))
    document["status"] = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
    }
    seen = view(POD, msgspec.json.encode(document))
    assert isinstance(seen, Pod)
    assert seen.status.ready
    assert seen.status.ips == ("10.0.0.1",)
    first = seen.spec.containers[0]
    assert first.readiness_probe is not None
    assert first.readiness_probe.http_get is not None
    assert first.readiness_probe.http_get.port == "http"
    assert first.env[0].value_from is not None
    document["status"]["podIPs"] = [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]
    again = view(POD, msgspec.json.encode(document))
    assert isinstance(again, Pod)
    assert again.status.ips == ("10.0.0.1", "fd00::1")
    assert Pod().status.ips == ()

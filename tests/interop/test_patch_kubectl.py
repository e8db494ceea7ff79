"""Strategic merge patch against the real thing: `kubectl patch --local` merges without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.errors import BadRequest
from isthmus.model.registry import BUILT_IN
from isthmus.model.schema import Schema
from isthmus.serve.kube.patch import strategic_merge_patch

Object = dict[str, Any]

KUBECTL = Path(sys.executable).with_name("kubectl")

Kubectl = Callable[[Object, Object], Object | str]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Patch an object with kubectl: the result, or what it says on stderr."""
    home = tmp_path_factory.mktemp("kubectl")

    def patch(document: Object, body: Object) -> Object | str:
        (home / "object.json").write_text(json.dumps(document))
        command = [str(KUBECTL), "patch", "--local", "-f", "object.json", "-o", "json"]
        ran = subprocess.run(
            [*command, "--type", "strategic", "-p", json.dumps(body)],
            check=False,
            capture_output=True,
            cwd=home,
            env={"HOME": str(home)},
            timeout=60,
        )
        return ran.stderr.decode() if ran.returncode else dict(msgspec.json.decode(ran.stdout))

    return patch


def schema_of(document: Object) -> Schema:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = BUILT_IN.by_kind(group, document["kind"])
    assert kind is not None
    served = kind.version(version)
    assert served is not None
    return served.schema


DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "face",
        "labels": {"a": "1", "b": "2"},
        "finalizers": ["x.io/1", "x.io/2"],
    },
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "face"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {
            "metadata": {"labels": {"app": "face"}},
            "spec": {
                "serviceAccountName": "face",
                "containers": [
                    {
                        "name": "main",
                        "image": "one",
                        "args": ["-v", "x"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "http"}],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    },
                    {"name": "side", "image": "two"},
                ],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "volumes": [{"name": "data", "emptyDir": {}}, {"name": "cfg", "configMap": {}}],
            },
        },
    },
}
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "face"},
    "spec": {
        "selector": {"app": "face"},
        "ports": [{"name": "dns-tcp", "port": 53, "protocol": "TCP"}, {"name": "web", "port": 80}],
    },
}
ACCOUNT: Object = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "face", "ownerReferences": [{"uid": "1", "name": "o"}]},
    "secrets": [{"name": "one"}],
    "imagePullSecrets": [{"name": "pull"}],
}
CONFIG: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cfg"},
    "data": {"a": "1", "b": "2"},
}


def spec(**fields: Any) -> Object:  # noqa: ANN401 - JSON values
    return {"spec": fields}


def pod(**fields: Any) -> Object:  # noqa: ANN401 - JSON values
    return spec(template={"spec": fields})


def main(**fields: Any) -> Object:  # noqa: ANN401 - JSON values
    return pod(containers=[{"name": "main", **fields}])


CASES: dict[str, tuple[Object, Object]] = {
    "nothing": (DEPLOYMENT, {}),
    "scalar": (DEPLOYMENT, spec(replicas=5)),
    "null removes a scalar": (DEPLOYMENT, spec(replicas=None)),
    "null removes an object": (DEPLOYMENT, spec(strategy=None)),
    "null of what is not there": (DEPLOYMENT, spec(paused=None)),
    "labels merge": (DEPLOYMENT, {"metadata": {"labels": {"b": None, "c": "3"}}}),
    "a new map without nulls": (DEPLOYMENT, {"metadata": {"annotations": {"x": None, "y": ""}}}),
    "set image": (DEPLOYMENT, main(image="three")),
    "kubectl set env": (
        DEPLOYMENT,
        pod(**{
            "$setElementOrder/containers": [{"name": "main"}],
            "containers": [{"name": "main", "env": [{"name": "K", "value": "V"}]}],
        }),
    ),
    "kubectl set env K-": (
        DEPLOYMENT,
        pod(**{
            "$setElementOrder/containers": [{"name": "main"}],
            "containers": [{
                "name": "main",
                "$setElementOrder/env": [{"name": "B"}],
                "env": [{"$patch": "delete", "name": "A"}],
            }],
        }),
    ),
    "rollout restart": (
        DEPLOYMENT,
        spec(template={"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}),
    ),
    "env of both ends": (
        DEPLOYMENT,
        main(env=[{"name": "B", "value": "9"}, {"name": "A", "value": "8"}, {"name": "C"}]),
    ),
    "env to another source": (
        DEPLOYMENT,
        main(env=[{"name": "A", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
    ),
    "a new container comes first": (DEPLOYMENT, pod(containers=[{"name": "new", "image": "n"}])),
    "a new container where it is told": (
        DEPLOYMENT,
        pod(**{
            "$setElementOrder/containers": [{"name": "main"}, {"name": "new"}, {"name": "side"}],
            "containers": [{"name": "new", "image": "n"}],
        }),
    ),
    "an order that knows only some": (
        DEPLOYMENT,
        pod(**{"$setElementOrder/containers": [{"name": "side"}]}),
    ),
    "containers swapped": (
        DEPLOYMENT,
        pod(**{"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}),
    ),
    "a container deleted": (DEPLOYMENT, pod(containers=[{"name": "side", "$patch": "delete"}])),
    "no container deleted": (DEPLOYMENT, pod(containers=[{"name": "no", "$patch": "delete"}])),
    "containers replaced": (
        DEPLOYMENT,
        pod(containers=[{"$patch": "replace"}, {"name": "new", "image": "n"}]),
    ),
    "env emptied": (DEPLOYMENT, main(env=[{"$patch": "replace"}])),
    "env removed": (DEPLOYMENT, main(env=None)),
    "args replace": (DEPLOYMENT, main(args=["-q"])),
    "tolerations replace": (DEPLOYMENT, pod(tolerations=[{"key": "q"}])),
    "container ports by number": (
        DEPLOYMENT,
        main(ports=[{"containerPort": 81, "name": "web"}, {"containerPort": 82}]),
    ),
    "mounts by path": (
        DEPLOYMENT,
        main(volumeMounts=[{"mountPath": "/data", "name": "data", "readOnly": True}]),
    ),
    "volumes keep only what is retained": (
        DEPLOYMENT,
        pod(volumes=[{"name": "data", "$retainKeys": ["name", "secret"], "secret": {}}]),
    ),
    "strategy keeps only what is retained": (
        DEPLOYMENT,
        spec(strategy={"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}),
    ),
    "strategy replaced": (DEPLOYMENT, spec(strategy={"$patch": "replace", "type": "Recreate"})),
    "strategy emptied": (DEPLOYMENT, spec(strategy={"$patch": "delete"})),
    "an absent object deleted": (CONFIG, {"binaryData": {"$patch": "delete"}}),
    "finalizers merge": (DEPLOYMENT, {"metadata": {"finalizers": ["x.io/3", "x.io/2"]}}),
    "finalizers leave": (
        DEPLOYMENT,
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/1", "x.io/9"]}},
    ),
    "finalizers change and are ordered": (
        DEPLOYMENT,
        {
            "metadata": {
                "$setElementOrder/finalizers": ["x.io/3", "x.io/2"],
                "$deleteFromPrimitiveList/finalizers": ["x.io/1"],
                "finalizers": ["x.io/3"],
            }
        },
    ),
    "a new list with directives": (
        DEPLOYMENT,
        pod(**{
            "$setElementOrder/initContainers": [{"name": "b"}, {"name": "a"}],
            "initContainers": [
                {"name": "b", "env": [{"name": "X", "$patch": "delete"}, {"name": "Y"}]},
                {"name": "a", "image": "i"},
            ],
        }),
    ),
    "an unknown field": (DEPLOYMENT, spec(nope={"a": [1, 2]})),
    "service ports by number": (
        SERVICE,
        spec(ports=[{"port": 80, "targetPort": 8080}, {"port": 443, "name": "tls"}]),
    ),
    "service ports as apply sends them": (
        SERVICE,
        spec(**{
            "$setElementOrder/ports": [{"port": 80}, {"port": 443}],
            "ports": [{"port": 443, "name": "tls"}, {"$patch": "delete", "port": 53}],
        }),
    ),
    "selector replaced": (SERVICE, spec(selector={"$patch": "replace", "app": "smiley"})),
    "secrets of an account": (ACCOUNT, {"secrets": [{"name": "two"}]}),
    "owners by uid": (
        ACCOUNT,
        {"metadata": {"ownerReferences": [{"uid": "1", "controller": True}, {"uid": "2"}]}},
    ),
    "data merges": (CONFIG, {"data": {"a": None, "c": "3"}}),
    "data replaced": (CONFIG, {"data": {"$patch": "replace", "c": "3"}}),
    "immutable": (CONFIG, {"immutable": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_we_merge_as_kubectl_does(case: str, kubectl: Kubectl) -> None:
    document, patch = CASES[case]
    assert strategic_merge_patch(schema_of(document), document, patch) == kubectl(document, patch)


REFUSED: dict[str, tuple[Object, Object]] = {
    "an item without its key": (DEPLOYMENT, pod(containers=[{"image": "x"}])),
    "a deletion without its key": (DEPLOYMENT, pod(containers=[{"$patch": "delete"}])),
    "items that are no objects": (DEPLOYMENT, pod(containers=["main"])),
    "an unknown directive": (DEPLOYMENT, spec(strategy={"$patch": "frob"})),
    "an unknown directive in an item": (
        DEPLOYMENT,
        pod(containers=[{"name": "main", "$patch": "frob"}]),
    ),
    "an order that contradicts the list": (
        DEPLOYMENT,
        pod(**{
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "a"}, {"name": "b"}],
        }),
    ),
    "an order that is no list": (DEPLOYMENT, pod(**{"$setElementOrder/containers": "main"})),
    "retained keys without what is set": (
        DEPLOYMENT,
        spec(strategy={"$retainKeys": ["rollingUpdate"], "type": "Recreate"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_we_refuse_what_kubectl_refuses(case: str, kubectl: Kubectl) -> None:
    document, patch = REFUSED[case]
    assert isinstance(kubectl(document, patch), str)
    with pytest.raises(BadRequest):
        strategic_merge_patch(schema_of(document), document, patch)


def test_where_we_are_kinder_than_kubectl(kubectl: Kubectl) -> None:
    """Onto nothing, kubectl drops an object with `$patch: replace`; we take it."""
    patch = {"binaryData": {"$patch": "replace", "x": "eA=="}}
    ours = strategic_merge_patch(schema_of(CONFIG), CONFIG, patch)
    assert ours["binaryData"] == {"x": "eA=="}
    theirs = kubectl(CONFIG, patch)
    assert isinstance(theirs, dict)
    assert "binaryData" not in theirs

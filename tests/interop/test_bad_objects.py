"""Objects that no rule of ours would let in, found in the store at the start.

Older versions, other writers and repaired disks leave such. One of them never stops the others
(linkerd/linkerd2#14741, linkerd/linkerd2#14195, istio/istio#60110, linkerd/linkerd2#13378).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.model.key import Key
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.store import Put
from isthmus.store.codec import encode
from isthmus.store.sqlite import SQLite
from tests.interop.kubectl import Kubectl, line_of
from tests.support.server import ServerProcess

STORED = sorted((kind for kind in BUILT_IN if kind.persisted), key=lambda kind: kind.resource)

SHAPES: dict[str, dict[str, Any]] = {
    "empty": {},
    "lists": {"spec": [1], "status": [2], "data": [3], "rules": {"a": 4}, "subsets": {"b": 5}},
    "texts": {"spec": "x", "status": "y", "ports": "z", "endpoints": "w", "roleRef": "v"},
    "words": {
        "spec": {
            "type": "CORS2",
            "selector": {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]},
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]},
            "template": None,
            "replicas": -1,
            "rules": [{"backendRefs": None, "filters": [{"type": "CORS2"}]}, None, 7],
            "parentRefs": [{"kind": "Nothing"}, 8],
            "ports": [{"port": 0, "targetPort": []}],
        },
        "status": {"conditions": [None, {"type": 9}], "phase": "Perhaps"},
    },
}


def nonsense(kind: Kind, shape: str) -> tuple[Key, bytes]:
    """An object of the kind with sound names and nothing else."""
    namespace = "shop" if kind.namespaced else ""
    name = f"bad-{shape}"
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": f"{kind.resource}-{shape}",
        "creationTimestamp": "2026-01-02T15:04:05Z",
        "managedFields": [{"manager": "nobody"}, {"operation": "Update", "fieldsV1": []}],
    }
    document = {
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "metadata": metadata,
        **SHAPES[shape],
    }
    return Key(kind.resource, namespace, name), encode(document)


async def spoil(data: Path) -> None:
    """Put every shape of every kind into a new store."""
    store = await SQLite.open(data / "isthmus.db")
    for kind in STORED:
        await store.txn((), [Put(*nonsense(kind, shape)) for shape in SHAPES])
    await store.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    asyncio.run(spoil(folder))
    return folder


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "good", "labels": {"app": "good"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
READY = {
    "status": {
        "phase": "Running",
        "podIP": "10.42.0.9",
        "podIPs": [{"ip": "10.42.0.9"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
}


def test_bad_objects_in_the_store_stop_nobody(data: Path, tmp_path: Path) -> None:
    with ServerProcess(data) as server:
        kubectl = Kubectl(server.kubeconfig, tmp_path)
        _good_ones_work(kubectl)
        _bad_ones_are_shown(kubectl)
        _bad_ones_can_be_mended_and_deleted(kubectl)
        assert server.admin("/ready")[0] == 200
        assert "Traceback" not in server.log


def _good_ones_work(kubectl: Kubectl) -> None:
    kubectl("create", "ns", "good")
    within = kubectl.within("good")
    within("create", "service", "clusterip", "good", "--tcp=80:8080")
    within("create", "-f", "-", stdin=json.dumps(POD))
    with within.running("get", "endpoints", "good", "-w", "--no-headers") as watching:
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps(READY))
        within("patch", "pod", "good", *patch)
        assert line_of(watching, lambda line: "10.42.0.9:8080" in line)
    within("create", "deployment", "web", "--image=x")
    within("wait", "--for=create", "pod", "-l", "app=web", "--timeout=30s")


def _bad_ones_are_shown(kubectl: Kubectl) -> None:
    for kind in STORED:
        assert kubectl("get", kind.resource, "-A").count("\n") > len(SHAPES), kind.resource
        names = {each["metadata"]["name"] for each in kubectl.read(kind.resource, "-A")["items"]}
        assert {f"bad-{shape}" for shape in SHAPES} <= names, kind.resource


def _bad_ones_can_be_mended_and_deleted(kubectl: Kubectl) -> None:
    kubectl("create", "ns", "shop")
    shop = kubectl.within("shop")
    shop("label", "configmap", "bad-empty", "seen=yes")
    for kind in STORED:
        shop("delete", kind.resource, *(f"bad-{shape}" for shape in SHAPES), "--wait=false")
    kubectl("delete", "ns", "shop", "--timeout=60s")

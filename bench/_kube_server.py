"""An API server in a process of its own, so that its memory and CPU are seen alone.

`python -m bench._kube_server plain|tls memory|sqlite PODS` prints its port and the file of its CA
(with TLS); it ends when its input does.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from isthmus.aio import SystemClock
from isthmus.ca import make
from isthmus.mesh.rights import EVERYTHING
from isthmus.model import intake
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.model.rbac import PolicyRule
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.api import Dispatcher
from isthmus.serve.kube.auth import Attributes, Decision, NoTokens, User
from isthmus.serve.kube.limits import Limits
from isthmus.serve.kube.server import KubeApi
from isthmus.store.codec import encode
from isthmus.store.contract import Put, Store
from isthmus.store.memory import Memory
from isthmus.store.objects import Objects
from isthmus.store.sqlite import SQLite

NAMESPACE = "bench"
MANY = 1_000_000


class Everybody:
    """Anybody may everything: it is not authorization that is measured."""

    def decide(self, user: User, asked: Attributes) -> Decision:
        """Yes."""
        return Decision(allowed=True)

    def rights(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        """Everything."""
        return EVERYTHING


class Silent:
    """A log for nobody."""

    def info(self, event: str, /, **fields: object) -> None:
        """Nothing."""

    def warning(self, event: str, /, **fields: object) -> None:
        """Nothing."""


def pod(number: int) -> Document:
    """A Pod as a Deployment makes it and an agent reports it."""
    name = f"web-6d5f9c7b8-{number:05}"
    address = f"10.42.{number // 250 % 250}.{number % 250 + 1}"
    container = {
        "name": "web",
        "image": "example.org/web:1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d5f9c7b8",
             "uid": "0b5c8f0e-7a1a-4d3c-9f55-0a1b2c3d4e5f", "controller": True}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"1b5c8f0e-7a1a-4d3c-9f55-{number:012}",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "pod-template-hash": "6d5f9c7b8", "tier": str(number % 10)},
            "annotations": {"config.linkerd.io/opaque-ports": "3306"},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "nodeName": f"node-{number % 50}",
            "serviceAccountName": "web",
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "volumes": [{"name": "token", "projected": {"defaultMode": 420}}],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "192.168.0.7",
            "startTime": "2026-01-02T03:04:05Z",
            "conditions": conditions,
        },
    }


async def fill(store: Store, pods: int) -> None:
    """Put the Pods into the store, some hundred at a time, with their defaults."""
    kind = BUILT_IN.by_kind("", "Pod")
    assert kind is not None
    version = kind.versions[0]
    for start in range(0, pods, 500):
        numbers = range(start, min(start + 500, pods))
        documents = [intake.prepare(kind, version, pod(number)).document for number in numbers]
        puts = [Put(Key("pods", NAMESPACE, d["metadata"]["name"]), encode(d)) for d in documents]
        await store.txn([], puts)


async def serve(how: str, where: str, pods: int) -> None:
    """Serve until the input ends."""
    clock = SystemClock()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        store: Store = Memory(clock=clock)
        if where == "sqlite":
            store = await SQLite.open(path, clock=clock)
        await fill(store, pods)
        limits = Limits(
            requests=MANY, watches=MANY, connections=MANY, connections_each=MANY, strangers=MANY
        )
        dispatcher = Dispatcher(
            store=store,
            objects=Objects(store, clock=clock, random=Random(1)),
            kinds=BUILT_IN,
            clock=clock,
            authorizer=Everybody(),
            tokens=NoTokens(),
            limits=limits,
        )
        api = KubeApi(dispatcher, clock=clock, log=Silent(), limits=limits)
        listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        await api.start(listening, _tls(Path(folder)) if how == "tls" else None)
        gc.collect()
        gc.freeze()
        print(listening.getsockname()[1], Path(folder) / "ca.pem", flush=True)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(api.run())
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
            running.cancel()
        await store.close()


def _tls(folder: Path) -> ssl.SSLContext:
    authority = make("bench", now=SystemClock().utc())
    leaf = authority.issue_server(["127.0.0.1"], now=SystemClock().utc())
    (folder / "ca.pem").write_bytes(authority.bundle)
    (folder / "server.pem").write_bytes(leaf.certificate + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(cadata=authority.bundle.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))

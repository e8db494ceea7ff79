"""The nodes of one cluster, as its API server sees them: they bind pods, run them, tell of them.

One watch of pods serves all nodes of the cluster. Which node gets a pod: one whose labels fit its
nodeSelector, with the fewest pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Mapping
from typing import Any

from isthmus import __version__
from isthmus.aio.supervise import describe, foreseen
from isthmus.errors import AlreadyExists, IsthmusError, NotFound
from isthmus.lab.addressing import KUBELET, ClusterAt, NodeAt
from isthmus.lab.pods.api import STRATEGIC, Api, Document, Follower
from isthmus.lab.pods.context import Tools
from isthmus.lab.pods.pod import Home, Pod
from isthmus.model.document import items, text, texts
from isthmus.model.times import format_time

MOST_PODS = 110
"""Pods of one node, as the kubelet counts."""

AFTER_A_BUG = 5.0
"""Seconds before a pod is started again after something nobody foresaw."""

FINAL = ("Succeeded", "Failed")


class ApiReporter:
    """Writes statuses to the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def report(self, document: Document, status: Document) -> None:
        patch = {"metadata": {"uid": text(document, "metadata.uid")}, "status": status}
        await self._api.patch(f"{path_of(document)}/status", patch, STRATEGIC)

    async def remove(self, document: Document) -> None:
        options = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": text(document, "metadata.uid")},
        }
        await self._api.delete(path_of(document), options)


def path_of(pod: Document) -> str:
    """Where a pod is in the API."""
    namespace, name = text(pod, "metadata.namespace"), text(pod, "metadata.name")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


class Nodes:
    """All nodes of a cluster. `run` until cancelled."""

    def __init__(self, at: ClusterAt, api: Api, homes: Mapping[str, Home], tools: Tools) -> None:
        """`homes`: one for each node, by name."""
        self._at = at
        self._api = api
        self._homes = homes
        self._tools = tools
        self._pods: dict[str, Pod] = {}
        self._loads = dict.fromkeys(homes, 0)
        self._unbound: dict[str, Document] = {}
        self._wake = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._follower = Follower(
            api, "/api/v1/pods", tools.clock, self._upsert, self._gone, self._register
        )

    @property
    def pods(self) -> list[Pod]:
        """Every pod that a node of the cluster runs."""
        return list(self._pods.values())

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod by its name."""
        found = [each for each in self._pods.values() if each.name == name]
        return next((each for each in found if each.namespace == namespace), None)

    async def synced(self) -> None:
        """When the nodes are registered and all pods were seen once."""
        await self._follower.synced.wait()

    async def run(self) -> None:
        """Keep up with the API."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._follower.run())
            group.create_task(self._scheduling())

    # -------------------------------------------------------------------------------------- pods

    def _upsert(self, pod: Document) -> None:
        uid = text(pod, "metadata.uid")
        node = text(pod, "spec.nodeName")
        if not node:
            self._unbound[uid] = pod
            self._wake.set()
            return
        self._unbound.pop(uid, None)
        held = self._pods.get(uid)
        if held is not None:
            held.update(pod)
        elif node in self._homes:
            over = text(pod, "status.phase") in FINAL
            if not over or text(pod, "metadata.deletionTimestamp"):
                self._begin(pod, node)

    def _begin(self, document: Document, node: str) -> None:
        pod = Pod(document, self._homes[node], self._tools)
        self._pods[pod.uid] = pod
        self._loads[node] += 1
        assert self._group is not None  # noqa: S101  # the follower runs in it
        self._group.create_task(self._keep(pod, node))

    async def _keep(self, pod: Pod, node: str) -> None:
        """Run it; a bug of ours costs this pod a new start, and the others nothing."""
        try:
            while True:
                try:
                    await pod.run()
                except Exception as error:  # the place that failures of a pod end at
                    name = f"{pod.namespace}/{pod.name}"
                    shown = None if foreseen(error) else error
                    self._tools.log.warning(
                        "pod failed", pod=name, error=describe(error), exc_info=shown
                    )
                    await self._tools.clock.sleep(AFTER_A_BUG)
                    pod = self._pods[pod.uid] = Pod(pod.document, self._homes[node], self._tools)
                else:
                    return
        finally:
            self._pods.pop(pod.uid, None)
            self._loads[node] -= 1

    def _gone(self, document: Document) -> None:
        uid = text(document, "metadata.uid")
        self._unbound.pop(uid, None)
        held = self._pods.get(uid)
        if held is not None:
            held.vanish()

    # -------------------------------------------------------------------------------- scheduling

    async def _scheduling(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for uid, pod in tuple(self._unbound.items()):
                try:
                    await self._bind(pod)
                except IsthmusError as fault:
                    told = str(fault)
                    self._tools.log.warning("pod not bound", pod=path_of(pod), why=told)
                    if not isinstance(fault, NotFound):
                        self._again()
                else:
                    self._unbound.pop(uid, None)

    def _again(self) -> None:
        self._tools.clock.call_later(1.0, self._wake.set)

    async def _bind(self, pod: Document) -> None:
        if items(pod, "spec.schedulingGates") or text(pod, "metadata.deletionTimestamp"):
            return
        node = self._choose(pod)
        if node is not None:
            patch = {"metadata": {"uid": text(pod, "metadata.uid")}, "spec": {"nodeName": node}}
            await self._api.patch(path_of(pod), patch)
            return
        told = f"0/{len(self._homes)} nodes are available: none fits the pod's nodeSelector."
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": told,
            "lastTransitionTime": format_time(self._tools.clock.utc()),
        }
        status = {"conditions": [condition]}
        await self._api.patch(f"{path_of(pod)}/status", {"status": status}, STRATEGIC)

    def _choose(self, pod: Document) -> str | None:
        wanted = texts(pod, "spec.nodeSelector").items()
        fit = [
            node.name
            for node in self._at.nodes
            if wanted <= labels_of(node).items() and self._loads[node.name] < MOST_PODS
        ]
        return min(fit, key=lambda name: self._loads[name], default=None)

    # ------------------------------------------------------------------------------ registration

    async def _register(self) -> None:
        """Make sure the API knows the nodes; again whenever its store may be another."""
        for node in self._at.nodes:
            document = node_document(node, self._at)
            with contextlib.suppress(AlreadyExists):
                await self._api.create("/api/v1/nodes", document)
            status = {"status": node_status(node, format_time(self._tools.clock.utc()))}
            await self._api.patch(f"/api/v1/nodes/{node.name}/status", status, STRATEGIC)


def labels_of(node: NodeAt) -> dict[str, str]:
    """The labels of a node: the usual ones and its own."""
    return {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _architecture(),
        **node.labels,
    }


def node_document(node: NodeAt, at: ClusterAt) -> Document:
    """The Node as it registers itself."""
    spec: dict[str, Any] = {}
    if len(at.nodes) == 1:
        spec = {"podCIDR": str(at.cluster.pod_cidr), "podCIDRs": [str(at.cluster.pod_cidr)]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels_of(node)},
        "spec": spec,
    }


def node_status(node: NodeAt, now: str) -> Document:
    """Its status: where it is, what it can, that it is ready."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    room = {"cpu": str(os.cpu_count() or 1), "memory": f"{memory}Ki", "pods": str(MOST_PODS)}
    return {
        "addresses": [
            {"type": "InternalIP", "address": str(node.ip)},
            {"type": "Hostname", "address": node.name},
        ],
        "capacity": room,
        "allocatable": room,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET}},
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kernelVersion": platform.release(),
            "osImage": "isthmus lab",
            "containerRuntimeVersion": f"process://{__version__}",
            "kubeletVersion": f"v{__version__}+isthmus",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": _architecture(),
        },
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "the lab runs its pods",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
        ],
    }


def _architecture() -> str:
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)

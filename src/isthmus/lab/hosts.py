"""Machines outside every cluster: a namespace each, and what runs there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from isthmus.errors import AlreadyExists, NotFound, Unavailable
from isthmus.lab.addressing import HostAt
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.context import Tools
from isthmus.lab.pods.naming import Naming
from isthmus.lab.pods.pod import Home, Pod
from isthmus.lab.pods.probes import Prober
from isthmus.lab.pods.sidecar import Bare
from isthmus.lab.pods.sources import Nothing
from isthmus.lab.topology import Run

if TYPE_CHECKING:
    from isthmus.lab.cluster import Means


class _Silent:
    """A host's processes report to nobody."""

    async def report(self, document: Document, status: Document) -> None:
        return

    async def remove(self, document: Document) -> None:
        return


class _Plugged:
    """A host's namespace is there already, and stays."""

    def __init__(self, namespace: Namespace, ip: IPv4Address) -> None:
        self._namespace = namespace
        self._ip = ip

    async def plug(self) -> tuple[Namespace, IPv4Address]:
        return self._namespace, self._ip

    async def unplug(self, namespace: Namespace, ip: IPv4Address) -> None:
        return


class Hosts:
    """All hosts of a lab. `run` until cancelled."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._pods: dict[str, Pod] = {}
        self._runs: dict[str, Run] = {}
        self._group: asyncio.TaskGroup | None = None

    def pod(self, name: str) -> Pod | None:
        """What runs on a host, as if it were a pod."""
        return self._pods.get(name)

    async def run(self) -> None:
        """Run what hosts run from the beginning, and what they are told to later."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for at in self._means.plan.hosts:
                if at.host.run is not None:
                    self._start(at, at.host.run)
            await asyncio.get_running_loop().create_future()  # until cancelled

    def start(self, name: str, run: Run) -> None:
        """Have a host run something.

        Raises:
            NotFound: there is no such host.
            AlreadyExists: it runs something already.
        """
        at = next((each for each in self._means.plan.hosts if each.host.name == name), None)
        if at is None:
            known = ", ".join(each.host.name for each in self._means.plan.hosts) or "none"
            raise NotFound(f"there is no host {name!r}; there are: {known}")
        if name in self._pods:
            raise AlreadyExists(f"the host {name!r} runs something already")
        self._start(at, run)

    def stop(self, name: str) -> None:
        """End what a host runs. NotFound if it runs nothing."""
        pod = self._pods.get(name)
        if pod is None:
            raise NotFound(f"no host {name!r} runs anything")
        pod.vanish()

    def _start(self, at: HostAt, run: Run) -> None:
        if self._group is None:
            raise Unavailable("the lab is not up yet")
        pod = self._pods[at.host.name] = self._pod(at, run)
        self._runs[at.host.name] = run
        self._group.create_task(self._until_gone(at.host.name, pod))

    async def _until_gone(self, name: str, pod: Pod) -> None:
        try:
            await pod.run()
        finally:
            del self._pods[name], self._runs[name]

    def _pod(self, at: HostAt, run: Run) -> Pod:
        means = self._means
        namespace = means.fabric.hosts[at.host.name]
        near = {h.host.name: str(h.ip) for h in means.plan.hosts if h.network == at.network}
        tools = Tools(
            clock=means.clock,
            random=means.random,
            log=means.log,
            images=means.images,
            prober=Prober(namespace, means.clock),
            sources=Nothing(),
            switches_users=False,
        )
        home = Home(
            cluster="",
            node=at.host.name,
            host_ip=str(at.ip),
            api_host="",
            cluster_domain="cluster.local",
            namespace=namespace,
            plug=_Plugged(namespace, at.ip),
            reporter=_Silent(),
            sidecars=Bare("a machine outside the clusters has no proxy"),
            naming=Naming(server="", domain="cluster.local", hosts=near),
            logs=means.folder / "hosts",
        )
        container = {
            "name": at.host.name,
            "image": run.image,
            "command": list(run.command),
            "args": list(run.args),
            "env": [{"name": name, "value": value} for name, value in run.env.items()],
        }
        document = {
            "metadata": {"name": at.host.name, "namespace": "", "uid": f"host-{at.host.name}"},
            "spec": {"containers": [container], "restartPolicy": "Always"},
        }
        return Pod(document, home, tools)

    def status(self) -> list[Mapping[str, object]]:
        """For `lab status`."""
        found: list[Mapping[str, object]] = []
        for at in self._means.plan.hosts:
            pod = self._pods.get(at.host.name)
            records = () if pod is None else pod.facts().records
            found.append(
                {
                    "name": at.host.name,
                    "network": at.network.name,
                    "ip": str(at.ip),
                    "image": self._runs[at.host.name].image if pod is not None else "",
                    "ready": bool(records) and all(each.ready for each in records),
                    "restarts": sum(each.restarts for each in records),
                }
            )
        return found

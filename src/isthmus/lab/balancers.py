"""LoadBalancer Services of one cluster: an address of its network, and a port on this machine.

What arrives at either is carried, byte by byte, to a ready endpoint of the Service, in turn. UDP
ports are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

import msgspec

from isthmus.aio import Clock, Log, deadline
from isthmus.errors import DeadlineExceeded, IsthmusError, Unavailable
from isthmus.lab.network.broker import Outside
from isthmus.lab.network.fabric import Router
from isthmus.lab.network.relay import Relay, connect
from isthmus.lab.pods.api import MERGE, Api, Document, Follower
from isthmus.lab.pods.plug import NetworkThread
from isthmus.model.document import get, items, number, strings, text

SERVICE = "kubernetes.io/service-name"
TRIES = 3
"""Endpoints that one connection is offered to."""
MOMENT = 10.0
"""Seconds that a lab's start waits for its Services' ports."""
AGAIN = 1.0
"""Seconds before something that failed is tried again."""

Key = tuple[str, str]
"""Namespace and name."""


class Published(msgspec.Struct, frozen=True):
    """One port of a LoadBalancer Service, for `lab status`."""

    service: str
    address: str
    port: int
    host: str
    """Where it is on this machine: `127.55.1.1:8080`."""


class Endpoints:
    """Ready endpoints of Services, by the name of the Service's port."""

    def __init__(self) -> None:
        self._slices: dict[str, Document] = {}
        self._of: dict[Key, set[str]] = {}
        self._turn = 0

    def upsert(self, piece: Document) -> None:
        """A slice is there or has changed."""
        uid = text(piece, "metadata.uid")
        self._slices[uid] = piece
        self._of.setdefault(_service_of(piece), set()).add(uid)

    def gone(self, piece: Document) -> None:
        """A slice is gone."""
        uid = text(piece, "metadata.uid")
        self._slices.pop(uid, None)
        self._of.get(_service_of(piece), set()).discard(uid)

    def ready(self, service: Key, port: str) -> list[tuple[str, int]]:
        """Addresses that take connections for a port, another one first each time."""
        found = []
        for uid in sorted(self._of.get(service, ())):
            piece = self._slices[uid]
            numbers = [number(p, "port") for p in items(piece, "ports") if text(p, "name") == port]
            for each in items(piece, "endpoints"):
                if numbers and get(each, "conditions.ready") is not False:
                    found += [(ip, numbers[0]) for ip in strings(each, "addresses")[:1]]
        self._turn += 1
        first = self._turn % len(found) if found else 0
        return found[first:] + found[:first]


def _service_of(piece: Document) -> Key:
    labels = get(piece, "metadata.labels")
    name = labels.get(SERVICE) if isinstance(labels, dict) else ""
    return text(piece, "metadata.namespace"), str(name or "")


class Balancers:
    """Keeps addresses, statuses and relays as the Services want them. `run` until cancelled."""

    def __init__(
        self,
        router: Router,
        api: Api,
        outside: Outside,
        thread: NetworkThread,
        clock: Clock,
        log: Log,
    ) -> None:
        self._router = router
        self._api = api
        self._outside = outside
        self._thread = thread
        self._clock = clock
        self._log = log
        self._free = router.at.balancer_ips()
        self._returned: list[IPv4Address] = []
        self._wanted: dict[Key, Document] = {}
        self._held: dict[Key, _Held] = {}
        self._wake = asyncio.Event()
        self._endpoints = Endpoints()

    @property
    def published(self) -> list[Published]:
        """What can be reached from this machine."""
        return [each for _, held in sorted(self._held.items()) for each in held.ports.values()]

    async def settled(self) -> None:
        """When every LoadBalancer Service that is there now has had its turn; a moment at most."""
        services, _ = await self._api.list("/api/v1/services")
        wanted = {_key(each) for each in services if text(each, "spec.type") == "LoadBalancer"}
        with contextlib.suppress(DeadlineExceeded):
            async with deadline(self._clock, MOMENT, "publishing Services"):
                while not all(each in self._held and self._held[each].ports for each in wanted):
                    await self._clock.sleep(0.05)

    async def run(self) -> None:
        """Keep up with the API."""
        slices = "/apis/discovery.k8s.io/v1/endpointslices"
        endpoints = self._endpoints
        async with asyncio.TaskGroup() as group:
            for path, upsert, gone in (
                ("/api/v1/services", self._upsert, self._gone),
                (slices, endpoints.upsert, endpoints.gone),
            ):
                group.create_task(Follower(self._api, path, self._clock, upsert, gone).run())
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._settle(group)

    def _upsert(self, service: Document) -> None:
        key = _key(service)
        leaving = bool(text(service, "metadata.deletionTimestamp"))
        if text(service, "spec.type") == "LoadBalancer" and not leaving:
            self._wanted[key] = service
        else:
            self._wanted.pop(key, None)
        if key in self._wanted or key in self._held:
            self._wake.set()

    def _gone(self, service: Document) -> None:
        self._wanted.pop(_key(service), None)
        self._wake.set()

    async def _settle(self, group: asyncio.TaskGroup) -> None:
        for key in tuple(self._held.keys() - self._wanted.keys()):
            await self._withdraw(key)
        for key, service in tuple(self._wanted.items()):
            try:
                await self._publish(key, service, group)
            except (IsthmusError, OSError) as fault:
                self._log.warning("load balancer", service="/".join(key), why=str(fault))
                self._clock.call_later(AGAIN, self._wake.set)

    async def _publish(self, key: Key, service: Document, group: asyncio.TaskGroup) -> None:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = _Held(await self._address())
        wanted = {number(p, "port"): p for p in items(service, "spec.ports") if _is_tcp(p)}
        for port in tuple(held.relays.keys() - wanted.keys()):
            held.drop(port)
        for port, spec in wanted.items():
            if held.names.get(port) != text(spec, "name"):
                held.drop(port)
                await self._open(key, held, port, text(spec, "name"), group)
        await self._tell(key, service, held.ip)

    async def _address(self) -> IPv4Address:
        ip = self._returned.pop() if self._returned else next(self._free, None)
        if ip is None:
            raise Unavailable(f"the network {self._router.at.network.cidr} has no free address")
        await self._thread.do(lambda: self._router.own(ip))
        return ip

    async def _open(
        self, key: Key, held: _Held, port: int, name: str, group: asyncio.TaskGroup
    ) -> None:
        loopback = self._router.at.loopback
        dial = self._dial(key, name)
        inside = self._router.namespace.listen(str(held.ip), port)
        outside = await self._outside.listen(loopback, port, other=True)
        host = f"{loopback}:{outside.getsockname()[1]}"
        held.names[port] = name
        held.ports[port] = Published("/".join(key), str(held.ip), port, host)
        held.relays[port] = [
            group.create_task(Relay(listening, dial, self._clock).run())
            for listening in (inside, outside)
        ]

    def _dial(self, key: Key, port: str) -> Callable[[], Awaitable[Any]]:
        async def dial() -> object:
            fault: OSError = ConnectionRefusedError("no endpoint is ready")
            for host, number_ in self._endpoints.ready(key, port)[:TRIES]:
                try:
                    return await connect(self._router.namespace, host, number_)
                except OSError as error:
                    fault = error
            raise fault

        return dial

    async def _tell(self, key: Key, service: Document, ip: IPv4Address) -> None:
        told = [text(each, "ip") for each in items(service, "status.loadBalancer.ingress")]
        if told != [str(ip)]:
            path = f"/api/v1/namespaces/{key[0]}/services/{key[1]}/status"
            ingress = [{"ip": str(ip), "ipMode": "VIP"}]
            await self._api.patch(path, {"status": {"loadBalancer": {"ingress": ingress}}}, MERGE)

    async def _withdraw(self, key: Key) -> None:
        held = self._held.pop(key)
        for port in tuple(held.relays):
            held.drop(port)
        await self._thread.do(lambda: self._router.disown(held.ip))
        self._returned.append(held.ip)


class _Held:
    """What one Service has."""

    def __init__(self, ip: IPv4Address) -> None:
        self.ip = ip
        self.names: dict[int, str] = {}
        self.ports: dict[int, Published] = {}
        self.relays: dict[int, list[asyncio.Task[None]]] = {}

    def drop(self, port: int) -> None:
        """Close a port's listeners."""
        for task in self.relays.pop(port, ()):
            task.cancel()
        self.ports.pop(port, None)
        self.names.pop(port, None)


def _key(service: Document) -> Key:
    return text(service, "metadata.namespace"), text(service, "metadata.name")


def _is_tcp(port: Mapping[str, Any]) -> bool:
    return port.get("protocol") in (None, "TCP")

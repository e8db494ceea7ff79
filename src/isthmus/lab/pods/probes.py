"""Probes: how a node asks its containers whether they live, are ready, have started.

Rules: "Liveness, Readiness and Startup Probes" of Kubernetes: HTTP answers from 200 to 399 are
good; a probe begins after its delay and is repeated each period; it takes so many in a row to
change the verdict.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import msgspec

from isthmus.aio import Clock, deadline
from isthmus.errors import IsthmusError
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.network.relay import connect
from isthmus.lab.pods.grpc_health import HealthCheck
from isthmus.model.document import items, mapping, number, strings, text

Execute = Callable[[list[str]], Awaitable[int]]
"""Runs a command inside the container; returns its exit code."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of a container, as its spec says. Times are in seconds."""

    action: Mapping[str, Any]
    delay: float
    period: float
    timeout: float
    successes: int
    failures: int
    grace: int | None

    @classmethod
    def of(cls, container: Mapping[str, Any], name: str) -> Probe | None:
        """The `livenessProbe`, `readinessProbe` or `startupProbe`; None if there is none."""
        spec = mapping(dict(container), name)
        if not spec:
            return None
        return cls(
            action=spec,
            delay=number(spec, "initialDelaySeconds"),
            period=max(1, number(spec, "periodSeconds", 10)),
            timeout=max(1, number(spec, "timeoutSeconds", 1)),
            successes=max(1, number(spec, "successThreshold", 1)),
            failures=max(1, number(spec, "failureThreshold", 3)),
            grace=spec.get("terminationGracePeriodSeconds"),
        )


AS_PROXY = "127.0.0.6"
"""Where a proxy's connections to the application come from: they are led nowhere else."""


class Prober:
    """Asks from a node: its sockets are in the node's namespace.

    But where a proxy stands before a container, bare connections are made as the proxy makes them:
    a proxy accepts all, whether the application listens or not. It passes HTTP probes on.
    """

    def __init__(self, node: Namespace, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        connector = aiohttp.TCPConnector(
            ssl=False, socket_factory=node.factory, force_close=True, happy_eyeballs_delay=None
        )
        self._session = aiohttp.ClientSession(connector=connector)

    async def close(self) -> None:
        """Close what is open."""
        await self._session.close()

    async def ask(
        self,
        probe: Probe,
        container: Mapping[str, Any],
        ip: str,
        execute: Execute,
        behind: Namespace | None = None,
    ) -> str:
        """What is wrong, or nothing. `behind`: the namespace of a pod with a proxy."""
        try:
            async with deadline(self._clock, probe.timeout, "the probe"):
                return await self._ask(probe, dict(container), ip, execute, behind)
        except (OSError, aiohttp.ClientError) as fault:
            return str(fault) or type(fault).__name__
        except IsthmusError as fault:  # not in time; or the container just ended
            return fault.message

    async def _ask(
        self,
        probe: Probe,
        container: dict[str, Any],
        ip: str,
        execute: Execute,
        behind: Namespace | None,
    ) -> str:
        action = dict(probe.action)
        if "httpGet" in action:
            return await self._http(mapping(action, "httpGet"), container, ip)
        if "tcpSocket" in action:
            port = port_of(mapping(action, "tcpSocket").get("port"), container)
            host = text(action, "tcpSocket.host")
            made = await self._connect(host or ip, port, None if host else behind)
            made.close()
            return ""
        if "grpc" in action:
            port = port_of(mapping(action, "grpc").get("port"), container)
            return await self._grpc(ip, port, text(action, "grpc.service"), behind)
        code = await execute(strings(action, "exec.command"))
        return "" if code == 0 else f"the command ended with exit code {code}"

    async def _http(self, action: dict[str, Any], container: dict[str, Any], ip: str) -> str:
        port = port_of(action.get("port"), container)
        scheme = (text(action, "scheme") or "HTTP").lower()
        host, path = text(action, "host") or ip, text(action, "path") or "/"
        headers = {text(each, "name"): text(each, "value") for each in items(action, "httpHeaders")}
        headers.setdefault("User-Agent", "kube-probe/isthmus")
        url = f"{scheme}://{host}:{port}/{path.removeprefix('/')}"
        async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
            code = answer.status
        return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"

    async def _connect(self, host: str, port: int, behind: Namespace | None) -> socket.socket:
        if behind is None:
            return await connect(self._node, host, port)
        return await connect(behind, host, port, AS_PROXY)

    async def _grpc(self, ip: str, port: int, service: str, behind: Namespace | None) -> str:
        loop = asyncio.get_running_loop()
        check = HealthCheck(f"{ip}:{port}", service)
        made = await self._connect(ip, port, behind)
        with made:
            while check.healthy is None:
                await loop.sock_sendall(made, check.send())
                check.receive(await loop.sock_recv(made, 16 * 1024))
        return "" if check.healthy else "the service is not SERVING"


def port_of(port: object, container: Mapping[str, Any]) -> int:
    """A port by its number, or by its name in the container; OSError if there is none."""
    if isinstance(port, int):
        return port
    if isinstance(port, str) and port.isascii() and port.isdigit():
        return int(port)
    for each in items(dict(container), "ports"):
        if port and each.get("name") == port:
            return number(each, "containerPort")
    raise OSError(f"the container has no port {port!r}")


class Verdict:
    """The running judgement of one probe: it takes several answers in a row to change it."""

    def __init__(self, probe: Probe, *, good: bool) -> None:
        self._probe = probe
        self._row = 0
        self._well = good
        self.good = good

    def note(self, *, well: bool) -> bool:
        """Take one answer in; whether it made the verdict good, or bad (again)."""
        self._row = self._row + 1 if well == self._well else 1
        self._well = well
        if self._row < (self._probe.successes if well else self._probe.failures):
            return False
        fell = self.good != well or not well
        self.good = well
        if not well:
            self._row = 0
        return fell

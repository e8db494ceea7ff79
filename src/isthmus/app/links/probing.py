"""Whether another cluster's data plane answers: the gateway as its Link says, endpoints by TCP.

From where this server stands. A silence is believed only of a place that was answered before: a
server outside of the mesh's network would otherwise call every cluster dead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Final

from isthmus.aio import Clock, deadline, together
from isthmus.app.links.health import DataPlane
from isthmus.errors import DeadlineExceeded
from isthmus.mesh.linked import Probe
from isthmus.mesh.reaching import At

if TYPE_CHECKING:
    from isthmus.app.links.watcher import Watcher

PATIENCE: Final = 1.5
"""Seconds for one connection."""
PAUSE: Final = 0.5
"""Seconds between two rounds while the API is silent, and between looks whether it is."""
USUAL: Final = 30.0
"""Seconds between two rounds while all is well: they show that this place can be answered."""
EAGER: Final = 2.0
"""The first of these pauses, doubled until somebody answers: who has just come may be lost soon."""
ROUNDS: Final = 2
"""Rounds without an answer after which a data plane is silent."""
HEAD: Final = 256
"""Bytes of an answer that are read: its first line says all."""


class Probing:
    """Asks for one watcher, and tells its health."""

    def __init__(self, watcher: Watcher, clock: Clock) -> None:
        self._watcher = watcher
        self._health = watcher.health
        self._clock = clock
        self._failed = 0

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gateway())
            group.create_task(self._data_plane())

    # ------------------------------------------------------------------------------- the gateway

    async def _gateway(self) -> None:
        """linkerd2's rules: one good answer is life, so many bad ones in a row are death."""
        failures = 0
        with self._watcher.wanted.watch() as watch:
            while True:
                probe = (await watch.next()).probe
                failures = 0
                self._gateway_is(None)
                while probe is not None and self._watcher.wanted.value.probe == probe:
                    began = self._clock.now()
                    good = await self._any_alive(probe)
                    self._health.gateway_latency = self._clock.now() - began if good else None
                    failures = 0 if good else failures + 1
                    if good or failures >= probe.failures:
                        self._gateway_is(good)
                    await self._clock.sleep(probe.period)

    def _gateway_is(self, alive: bool | None) -> None:  # noqa: FBT001  # a state, not a flag
        if self._health.gateway_alive is not alive:
            self._health.gateway_alive = alive
            self._watcher.publish()

    async def _any_alive(self, probe: Probe) -> bool:
        asked = [self._alive(host, probe) for host in probe.hosts]
        return await self._any(asked)

    async def _alive(self, host: str, probe: Probe) -> bool:
        try:
            async with deadline(self._clock, probe.timeout, f"probing {host}"):
                return await ask(host, probe.port, probe.path)
        except (OSError, DeadlineExceeded, ValueError):
            return False

    # ---------------------------------------------------------------------------- the data plane

    async def _data_plane(self) -> None:
        due, pause = self._clock.now(), EAGER
        while True:
            now = self._clock.now()
            doubted = self._health.doubted(now)
            if doubted or (self._health.synced and now >= due):
                asked = await self._round()
                pause = min(2 * pause, USUAL) if asked else EAGER
                pause = USUAL if self._health.answered else pause
                due = now + pause
            await self._clock.sleep(PAUSE)

    async def _round(self) -> bool:
        """Ask once; False where there is nobody to ask."""
        found = await self._watcher.targets()
        if not found:
            return False
        if await self._any([self._open(at) for at in found]):
            self._health.answered, self._failed = True, 0
            self._is(DataPlane.ANSWERS)
            return True
        self._failed += 1
        if self._health.answered and self._failed >= ROUNDS:
            self._is(DataPlane.SILENT)
        return True

    def _is(self, state: DataPlane) -> None:
        if self._health.data_plane is not state:
            self._health.data_plane = state
            self._watcher.publish()

    async def _open(self, at: At) -> bool:
        try:
            async with deadline(self._clock, PATIENCE, f"connecting to {at.host}"):
                _, writer = await asyncio.open_connection(at.host, at.port)
        except (OSError, DeadlineExceeded, ValueError):
            return False
        writer.close()
        return True

    async def _any(self, asked: Sequence[Coroutine[None, None, bool]]) -> bool:
        """Whether one of them is true."""
        return any(await together(*asked))


async def ask(host: str, port: int, path: str) -> bool:
    """Whether a GET is answered with 200. OSError where nobody listens."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        name = f"[{host}]" if ":" in host else host
        head = f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode("ascii"))
        said = await reader.read(HEAD)
        return said.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 "))
    finally:
        with contextlib.suppress(OSError):
            writer.close()

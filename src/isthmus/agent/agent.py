"""The agent of a host: one connection to the identity service, many workloads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Final, Protocol

import msgspec

from isthmus.agent import tunnel
from isthmus.agent.binary import Binary
from isthmus.agent.client import IdentityClient
from isthmus.agent.contract import Bootstrap, Drained, Means, Place, Seat, Wires
from isthmus.agent.credential import Certifying
from isthmus.agent.files import in_memory
from isthmus.agent.process import PROXY_UID, Hand
from isthmus.agent.tunnel import Peer, Secure, Tunnel
from isthmus.agent.workload import Tools, Workload
from isthmus.aio import Latest
from isthmus.aio.supervise import describe, foreseen
from isthmus.ca import Realm, private_directory

IDENTITY: Final = "identity.sock"


async def nobody_to_tell(_: Seat) -> None:
    """Where nobody can say whether peers know: none waits."""


class Telling(Protocol):
    """Says of workloads outside the cluster that they leave or are there."""

    async def tell(self, path: str, *, leaving: bool) -> bool:
        """See `IdentityClient.tell`."""
        ...


class Agent(msgspec.Struct, kw_only=True):
    """Make it, enter `run`, then ask for workloads.

    `folder` is the agent's own, in memory. `secure` says how the identity listener is spoken to;
    None where it is on this machine's loopback.
    """

    realm: Realm
    wires: Wires
    binary: Binary
    bootstrap: Bootstrap
    means: Means
    folder: Path
    drained: Drained = nobody_to_tell
    secure: Secure | None = None
    switches_users: bool = True
    """Whether processes can run as other users: as root, and not rootless."""
    _tools: Tools | None = None
    _client: IdentityClient | None = None
    _up: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serve until cancelled. Workloads must have been stopped by then; else they are cut."""
        private_directory(self.folder)
        clock, _, log = self.means
        if not in_memory(self.folder):
            log.warning("keys are kept on a disk", folder=str(self.folder))
        listening = tunnel.listen_unix(self.folder / IDENTITY)
        handle = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        hand = Hand()
        client = IdentityClient(f"unix:/proc/self/fd/{handle}/{IDENTITY}", self.means)
        pipe = Tunnel(
            listening, self.wires.identity, clock=clock, log=log, secure=self.secure,
            admit=_is_us,
        )  # fmt: skip
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pipe.run())
                group.create_task(client.run())
                self._tools = self._make_tools(hand, client, group)
                self._client = client
                self._up.set()
        finally:
            self._tools = self._client = None
            await client.close()
            hand.close()
            os.close(handle)

    def _make_tools(self, hand: Hand, client: IdentityClient, group: asyncio.TaskGroup) -> Tools:
        def begin(work: Awaitable[None], name: str) -> asyncio.Task[None]:
            """A task in our group whose errors are its starter's, who waits for it."""
            ended = asyncio.Event()

            async def run() -> None:
                try:
                    await work
                finally:
                    ended.set()

            task = asyncio.get_running_loop().create_task(run(), name=name)
            group.create_task(_watched(task, ended, self.means))
            return task

        return Tools(
            realm=self.realm,
            wires=self.wires,
            binary=self.binary,
            bootstrap=self.bootstrap,
            drained=self.drained,
            service=client,
            anchors=client.anchors,
            hand=hand,
            means=self.means,
            uid=PROXY_UID if self.switches_users else None,
            begin=begin,
        )

    async def ready(self) -> None:
        """When workloads can be asked for."""
        await self._up.wait()

    @property
    def identity(self) -> tuple[Certifying, Latest[bytes]]:
        """The identity service, and the anchors that it tells, once the agent runs."""
        if self._tools is None:
            raise RuntimeError("an agent that does not run asks nobody")
        return self._tools.service, self._tools.anchors

    @property
    def telling(self) -> Telling:
        """Who says that ExternalWorkloads leave, once the agent runs."""
        if self._client is None:
            raise RuntimeError("an agent that does not run tells nobody")
        return self._client

    def beside(self, place: Place) -> Workload:
        """What stands beside a workload; nothing happens before its `start`."""
        if self._tools is None:
            raise RuntimeError("an agent that does not run has no workloads")
        return Workload(place, self._tools)


async def _watched(task: asyncio.Task[None], ended: asyncio.Event, means: Means) -> None:
    """Hold a task: it ends with the agent at the latest, and what it failed for is not lost."""
    try:
        await ended.wait()
    finally:
        if not ended.is_set():
            task.cancel()
        await asyncio.wait((task,))
    fault = None if task.cancelled() else task.exception()
    if fault is not None and not foreseen(fault):
        means.log.warning("a workload failed", error=describe(fault), exc_info=fault)


def _is_us(peer: Peer) -> bool:
    return peer.pid == os.getpid()

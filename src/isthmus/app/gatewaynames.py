"""The names of gateways as addresses: asked for again and again, since they lead elsewhere one day.

A name without an answer keeps the addresses that it had: a name server that is away must not take
gateways away (linkerd2 #4588, #5362).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from isthmus.aio import Clock, deadline
from isthmus.app.means import Means
from isthmus.board import Board
from isthmus.engine import Change, Delete, Put
from isthmus.errors import DeadlineExceeded
from isthmus.mesh.exports import GATEWAY_NAMES, gateway_hosts
from isthmus.mesh.names import canonical_ip

PERIOD: Final = 30.0
"""Seconds between two rounds."""
AGAIN: Final = 5.0
"""Seconds to the next round while a name has no answer yet."""
PATIENCE: Final = 10.0
"""Seconds for one answer."""
AT_ONCE: Final = 4
"""Names that are asked for at the same time: each may hold a thread for long."""
MOST: Final = 64
"""Addresses of one name."""

Resolve = Callable[[str], Awaitable[tuple[str, ...]]]
"""A name's addresses; OSError where it has none."""


async def system_addresses(host: str) -> tuple[str, ...]:
    """What this machine's resolver says.

    Raises:
        OSError: the name has no address, or nobody can be asked.
    """
    ask = asyncio.get_running_loop().getaddrinfo
    found = await ask(host, None, type=socket.SOCK_STREAM)
    ips = {ip for *_, at in found if (ip := canonical_ip(str(at[0]))) is not None}
    return tuple(sorted(ips)[:MOST])


class GatewayNames:
    """Keeps `GATEWAY_NAMES` true for the Links of one cluster."""

    def __init__(
        self, cluster: str, board: Board, means: Means, resolve: Resolve = system_addresses
    ) -> None:
        self._cluster = cluster
        self._board = board
        self._clock: Clock = means.clock
        self._log = means.log
        self._resolve = resolve
        self._told: dict[str, tuple[str, ...]] = {}
        self._failing: set[str] = set()
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Ask until cancelled: when Links name other hosts, and again after a while."""
        await self._board.at(0)
        async with self._board.subscribe() as watched:
            watched.add(gateway_hosts, self._cluster)
            hosts: tuple[str, ...] = ()
            while True:
                pause = AGAIN if self._failing else PERIOD
                try:
                    async with deadline(self._clock, pause, "waiting for other Links"):
                        changes = await watched.next()
                    hosts = changes.get((gateway_hosts, self._cluster), hosts)
                except DeadlineExceeded:
                    pass  # the same names, once more
                await self._round(hosts)

    async def _round(self, hosts: tuple[str, ...]) -> None:
        """Ask for all names, and tell what is new, each as soon as it is known."""
        gone = self._told.keys() - set(hosts)
        self._failing.intersection_update(hosts)
        self._tell([Delete(GATEWAY_NAMES, host) for host in sorted(gone)])
        for host in gone:
            del self._told[host]
        async with asyncio.TaskGroup() as group:
            for host in hosts:
                group.create_task(self._ask(host))

    async def _ask(self, host: str) -> None:
        try:
            async with self._turn, deadline(self._clock, PATIENCE, f"asking for {host}"):
                found = await self._resolve(host)
        except (OSError, UnicodeError, DeadlineExceeded) as fault:
            found = ()
            if host not in self._failing:
                self._log.warning("a gateway's name has no address", host=host, why=str(fault))
        (self._failing.discard if found else self._failing.add)(host)
        now = found or self._told.get(host, ())
        if self._told.get(host) != now:
            self._told[host] = now
            self._tell([Put(GATEWAY_NAMES, host, now)])

    def _tell(self, changes: list[Change]) -> None:
        if changes:
            self._board.commit(changes)

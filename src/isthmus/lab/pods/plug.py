"""Addresses and links for pods: the router's work, on the network's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address
from typing import TypeVar

from isthmus.errors import Unavailable
from isthmus.lab.network.fabric import Router
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.process import kill_all

T = TypeVar("T")


class NetworkThread:
    """The one thread that speaks netlink: pyroute2 runs event loops of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="network")

    async def do(self, work: Callable[[], T]) -> T:
        """Run `work` there; it goes on when the waiter is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """The same, for those who must know what came of it even when they are cancelled."""
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Finish what was begun."""
        self._pool.shutdown(wait=True)


class PodPlug:
    """Where the pods of one cluster get their network. Addresses are dealt out in turn."""

    def __init__(self, router: Router, thread: NetworkThread) -> None:
        self._router = router
        self._thread = thread
        self._taken: set[IPv4Address] = set()
        self._next = router.at.pod_ips()

    async def plug(self) -> tuple[Namespace, IPv4Address]:
        """See `pod.Plug`. Unavailable when all addresses are taken."""
        ip = self._allot()

        def work() -> Namespace:
            namespace = Namespace.make(str(ip))
            try:
                self._router.plug(namespace, ip)
            except BaseException:
                namespace.close()
                raise
            return namespace

        begun = self._thread.begin(work)
        try:
            return await asyncio.shield(begun), ip
        except asyncio.CancelledError:
            begun.add_done_callback(lambda _: self._undo(begun, ip))
            raise
        except BaseException:
            self._taken.discard(ip)
            raise

    def _undo(self, begun: asyncio.Future[Namespace], ip: IPv4Address) -> None:
        """Nobody waited for it."""
        if not begun.cancelled() and begun.exception() is None:
            namespace = begun.result()
            self._thread.begin(lambda: self._pull(namespace, ip))
        self._taken.discard(ip)

    def _allot(self) -> IPv4Address:
        network = self._router.at.cluster.pod_cidr
        for _ in range(network.num_addresses):
            ip = next(self._next, None)
            if ip is None:
                self._next = self._router.at.pod_ips()
            elif ip not in self._taken:
                self._taken.add(ip)
                return ip
        raise Unavailable(f"all addresses of {network} are taken")

    async def unplug(self, namespace: Namespace, ip: IPv4Address) -> None:
        """See `pod.Plug`."""
        try:
            await self._thread.do(lambda: self._pull(namespace, ip))
        finally:
            self._taken.discard(ip)

    def _pull(self, namespace: Namespace, ip: IPv4Address) -> None:
        kill_all(namespace)
        self._router.unplug(ip)
        namespace.close()

"""A network namespace, held by an open file: it ends when nobody holds it and nothing runs in it.

Nothing is ever given a name in the file system, so there is nothing that a crash could leave.
"""

from __future__ import annotations

import os
import socket as sockets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isthmus.lab.network import system

BACKLOG = 256


class Namespace:
    """One network namespace. `name` is for people."""

    def __init__(self, name: str, handle: int) -> None:
        self.name = name
        self.handle = handle
        self.inode = os.fstat(handle).st_ino

    @classmethod
    def current(cls, name: str) -> Namespace:
        """The calling thread's."""
        return cls(name, system.net_namespace())

    @classmethod
    def make(cls, name: str) -> Namespace:
        """A new one; the calling thread stays where it is."""
        home = system.net_namespace()
        try:
            system.unshare(system.CLONE_NEWNET)
            try:
                return cls(name, system.net_namespace())
            finally:
                system.setns(home, system.CLONE_NEWNET)
        finally:
            os.close(home)

    def close(self) -> None:
        """Let go of it; harmless twice."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is inside during the block, which must not await."""
        home = system.net_namespace()
        try:
            system.setns(self.handle, system.CLONE_NEWNET)
            try:
                yield
            finally:
                system.setns(home, system.CLONE_NEWNET)
        finally:
            os.close(home)

    def socket(
        self,
        family: int = sockets.AF_INET,
        kind: int = sockets.SOCK_STREAM,
        protocol: int = 0,
    ) -> sockets.socket:
        """A socket that lives inside, whoever uses it; non-blocking."""
        with self.entered():
            made = sockets.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    def listen(self, host: str, port: int) -> sockets.socket:
        """A TCP socket that listens inside."""
        made = self.socket()
        try:
            made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            made.bind((host, port))
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
        return made

    def datagrams(self, host: str, port: int) -> sockets.socket:
        """A UDP socket bound inside."""
        made = self.socket(kind=sockets.SOCK_DGRAM)
        try:
            made.bind((host, port))
        except OSError:
            made.close()
            raise
        return made

    def factory(self, info: tuple[Any, ...]) -> sockets.socket:
        """Makes aiohttp's sockets (`TCPConnector(socket_factory=...)`)."""
        family, kind, protocol = info[:3]
        return self.socket(family, kind, protocol)

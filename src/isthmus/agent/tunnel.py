"""Local listeners whose connections go on to a control plane, mostly through TLS.

A workload's Envoy finds its control plane at a unix socket. Who connects is told by the kernel:
only the process that the agent started gets through, and then the far side sees the certificate of
that workload and of nobody else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from isthmus.agent.contract import Dial
from isthmus.aio import Clock, Log, deadline
from isthmus.aio.pipe import Streams, carry, close
from isthmus.aio.supervise import describe, foreseen

PATIENCE: Final = 10.0
"""Seconds for connecting and shaking hands."""
FAREWELL: Final = 1.0
MOST: Final = 64
"""Connections of one tunnel: an Envoy has one stream, and one more while it comes back."""
BACKLOG: Final = 16
MARGIN: Final = 30.0
"""Seconds before the end of its certificate at which a connection is closed, to come anew."""
LONGEST: Final = 86_400.0


class Peer(NamedTuple):
    """Who connected to a unix socket, as the kernel says."""

    pid: int
    uid: int


class Shown(NamedTuple):
    """How a connection goes on: the context, the server's name, and for how many seconds."""

    context: ssl.SSLContext
    name: str
    lasts: float


Secure = Callable[[], Shown]
Admit = Callable[[Peer], bool]


class Tunnel:
    """One listener, which it owns."""

    def __init__(
        self,
        listening: socket.socket,
        dial: Dial,
        *,
        clock: Clock,
        log: Log,
        secure: Secure | None = None,
        admit: Admit | None = None,
    ) -> None:
        """Without `secure`: plain text. `admit` is asked about peers of unix sockets."""
        self._listening = listening
        self._dial = dial
        self._secure = secure
        self._admit = admit
        self._clock = clock
        self._log = log
        self._free = asyncio.Semaphore(MOST)
        self.refused = 0
        """Connections of processes that had no business here."""

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        with self._listening:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._free.acquire()
                    try:
                        accepted, _ = await loop.sock_accept(self._listening)
                    except OSError as fault:
                        self._free.release()
                        self._log.warning("accept failed", error=describe(fault))
                        await self._clock.sleep(0.1)
                        continue
                    group.create_task(self._serve(accepted))

    async def _serve(self, accepted: socket.socket) -> None:
        try:
            with accepted:
                if self._welcome(accepted):
                    await self._pass(accepted)
        except Exception as fault:  # noqa: BLE001  # one connection's fault stays its own
            trace = None if foreseen(fault) else fault
            self._log.info("a pipe broke", error=describe(fault), exc_info=trace)
        finally:
            self._free.release()

    def _welcome(self, accepted: socket.socket) -> bool:
        if self._admit is None:
            return True
        peer = peer_of(accepted)
        if self._admit(peer):
            return True
        self.refused += 1
        self._log.warning("a foreign process asked for a proxy's pipe", pid=peer.pid, uid=peer.uid)
        return False

    async def _pass(self, accepted: socket.socket) -> None:
        shown = self._secure() if self._secure is not None else None
        async with deadline(self._clock, PATIENCE, "reaching the control plane"):
            outer = await self._connect(shown)
        try:
            inner = await _streams(accepted.dup())
        except BaseException:
            close(outer)
            raise
        lasts = LONGEST if shown is None else max(1.0, min(LONGEST, shown.lasts - MARGIN))
        ring = self._clock.call_later(lasts, inner.writer.close)
        try:
            await carry(inner, outer)
        finally:
            ring.cancel()

    async def _connect(self, shown: Shown | None) -> Streams:
        made = await self._dial()
        if shown is None:
            return await _streams(made)
        return await _streams(
            made, ssl=shown.context, server_hostname=shown.name, ssl_shutdown_timeout=FAREWELL
        )


async def _streams(made: socket.socket, **secure: Any) -> Streams:  # noqa: ANN401  # asyncio's own
    """The halves of a connection; a socket that comes to nothing is closed."""
    try:
        return Streams(*await asyncio.open_connection(sock=made, **secure))
    except BaseException:
        made.close()
        raise


def peer_of(accepted: socket.socket) -> Peer:
    """SO_PEERCRED: who called connect, even if the socket was handed on since."""
    raw = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return Peer(pid, uid)


def listen_unix(path: Path, uid: int | None = None) -> socket.socket:
    """A unix socket at `path`, for its owner alone. A stale one is replaced.

    Bound through its folder's handle, so that no path is too long for the kernel.
    """
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
        if uid is not None:
            os.chown(path, uid, uid)
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    finally:
        os.close(folder)
    return made

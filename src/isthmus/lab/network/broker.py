"""What the lab and its starter say to each other: news, and listeners on the machine itself.

From inside its namespaces a lab cannot listen where the machine's other programs are. The starter
can, and hands the listening socket over: one message per datagram of a Unix socket, JSON, with the
socket beside it. Nothing but the two processes holds an end.
"""

from __future__ import annotations

import array
import asyncio
import errno
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from isthmus.errors import Unavailable

LARGEST = 64 * 1024
"""Bytes of one message."""
BACKLOG = 256
ANY_OTHER = (errno.EADDRINUSE, errno.EACCES)
"""Reasons to take another port, where another will do."""

Message = Mapping[str, Any]


def pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: Message, *handles: int) -> None:
    """Send one message, with open files if need be."""
    raw = msgspec.json.encode(message)[:LARGEST]
    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))] if handles else []
    channel.sendmsg([raw], extra)


def receive(channel: socket.socket) -> tuple[Message, list[int]] | None:
    """The next message and its open files; None when the other end is gone."""
    handles = array.array("i")
    room = socket.CMSG_SPACE(4 * handles.itemsize)
    raw, extra, _, _ = channel.recvmsg(LARGEST, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    if not raw:
        return None
    message = msgspec.json.decode(raw)
    return (message if isinstance(message, dict) else {}), list(handles)


# ------------------------------------------------------------------------------- the starter's side


def answer(channel: socket.socket, message: Message) -> None:
    """Do what `{"listen": id, "host", "port", "datagrams", "other"}` asks for."""
    asked = message["listen"]
    try:
        made = _listen(message)
    except OSError as fault:
        send(channel, {"listened": asked, "error": fault.strerror, "errno": fault.errno})
        return
    with made:
        send(channel, {"listened": asked, "port": made.getsockname()[1]}, made.fileno())


def _listen(message: Message) -> socket.socket:
    host, port = str(message["host"]), int(message["port"])
    kind = socket.SOCK_DGRAM if message.get("datagrams") else socket.SOCK_STREAM
    made = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
        except OSError as fault:
            if not message.get("other") or fault.errno not in ANY_OTHER:
                raise
            made.bind((host, 0))
        if kind == socket.SOCK_STREAM:
            made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


# ----------------------------------------------------------------------------------- the lab's side


class Outside:
    """The lab's end. `stopped` is called when the starter says so, or is gone."""

    def __init__(self, channel: socket.socket, stopped: Callable[[], None]) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._stopped = stopped
        self._waiting: dict[int, asyncio.Future[socket.socket]] = {}
        self._asked = 0

    def start(self) -> None:
        """Read from now on, on the running loop."""
        asyncio.get_running_loop().add_reader(self._channel, self._readable)

    def close(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._channel)

    def tell(self, **message: object) -> None:
        """Say something to whoever started the lab."""
        try:
            send(self._channel, message)
        except OSError:  # nobody is there; the reader will find out
            return

    async def listen(
        self, host: str, port: int, *, datagrams: bool = False, other: bool = False
    ) -> socket.socket:
        """A listening socket on the machine; `other`: any port will do if this one cannot be had.

        Raises:
            Unavailable: it cannot be had; says why.
        """
        self._asked += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._asked] = future
        self.tell(listen=self._asked, host=host, port=port, datagrams=datagrams, other=other)
        try:
            made: socket.socket = await future
        except OSError as fault:
            raise Unavailable(
                f"the address {host}:{port} cannot be had: {fault.strerror}; another lab may"
                " have it, and --loopback chooses others, such as --loopback 127.56.0.0/16"
            ) from fault
        made.setblocking(False)
        return made

    def _readable(self) -> None:
        try:
            got = receive(self._channel)
        except BlockingIOError:
            return
        except OSError:
            got = None
        if got is None:
            self.close()
            self._stopped()
            return
        message, handles = got
        if "listened" in message:
            self._listened(message, handles)
        elif message.get("stop"):
            self._stopped()

    def _listened(self, message: Message, handles: list[int]) -> None:
        future = self._waiting.pop(int(message["listened"]), None)
        if future is None or future.done():
            for handle in handles:
                os.close(handle)
        elif handles:
            future.set_result(socket.socket(fileno=handles[0]))
        else:
            number = int(message.get("errno") or errno.EIO)
            future.set_exception(OSError(number, str(message.get("error"))))

"""One exec: a process inside a container, and the WebSocket of whoever wanted it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
from collections.abc import Sequence

from aiohttp import WSMsgType, web

from isthmus.errors import UserFault
from isthmus.lab import pipes
from isthmus.lab.kubelet import channels
from isthmus.lab.pipes import Pipe, Terminal
from isthmus.lab.pods.container import Container
from isthmus.lab.pods.process import Process

TERMINAL = 'exec "$@" <>"$0" >&0 2>&0'
"""For a shell: opening a terminal makes it the one that the session's signals come from."""


async def execute_in_terminal(
    socket: web.WebSocketResponse, container: Container, command: Sequence[str]
) -> None:
    """The same with one terminal for all streams."""
    with contextlib.ExitStack() as held:
        terminal = Terminal(held)
        handle = terminal.theirs.fileno()
        words = ["/bin/sh", "-c", TERMINAL, terminal.name, *command]
        try:
            process = await container.execute(words, handle, handle, handle)
        except (OSError, UserFault) as fault:
            await socket.send_bytes(channels.failed(str(fault)))
            return
        terminal.theirs.close()
        await _Session(socket, process, terminal).run(terminal, terminal, None)


async def execute(
    socket: web.WebSocketResponse,
    container: Container,
    command: Sequence[str],
    *,
    stdin: bool,
    stdout: bool,
    stderr: bool,
) -> None:
    """Run `command`; carry its streams; tell its end. Who leaves has it killed."""
    with contextlib.ExitStack() as held:
        into = Pipe(held, outward=False) if stdin else None
        out = Pipe(held, outward=True) if stdout else None
        err = Pipe(held, outward=True) if stderr else None
        try:
            process = await container.execute(command, *map(_handle, (into, out, err)))
        except OSError as fault:
            told = f'exec: "{command[0]}": {fault.strerror or fault}'
            await socket.send_bytes(channels.failed(told))
            return
        except UserFault as fault:
            await socket.send_bytes(channels.failed(fault.message))
            return
        for pipe in (into, out, err):
            if pipe is not None:
                pipe.theirs.close()
        await _Session(socket, process).run(into, out, err)


def _handle(pipe: Pipe | None) -> int | None:
    return None if pipe is None else pipe.theirs.fileno()


End = Pipe | Terminal


class _Session:
    def __init__(
        self, socket: web.WebSocketResponse, process: Process, terminal: Terminal | None = None
    ) -> None:
        self._socket = socket
        self._process = process
        self._terminal = terminal

    async def run(self, into: End | None, out: End | None, err: End | None) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen(into))
                telling = [
                    group.create_task(self._tell(channel, pipe.ours))
                    for channel, pipe in ((channels.STDOUT, out), (channels.STDERR, err))
                    if pipe is not None
                ]
                code = await self._process.wait()
                if telling:
                    await asyncio.wait(telling)
                listening.cancel()
                await self._socket.send_bytes(channels.ended(code if code >= 0 else 128 - code))
        except* (ConnectionError, RuntimeError):  # whoever asked has left
            pass
        finally:
            self._process.kill(signal.SIGKILL)

    async def _tell(self, channel: int, source: io.FileIO) -> None:
        head = bytes((channel,))
        while data := await pipes.read(source):
            await self._socket.send_bytes(head + data)

    async def _listen(self, into: End | None) -> None:
        """Take in frames until the peer leaves; then the process is killed."""
        async for message in self._socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == channels.RESIZE and self._terminal is not None:
                self._terminal.resize(*channels.read_size(data))
            if into is None or (self._terminal is not None and channel == channels.CLOSE):
                continue
            if channel == channels.CLOSE and data[:1] == bytes((channels.STDIN,)):
                into.ours.close()
            elif channel == channels.STDIN and not into.ours.closed:
                await pipes.write(into.ours, data)
        self._process.kill(signal.SIGKILL)

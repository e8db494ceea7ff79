"""A client of the lab's Unix socket, for the command line."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import msgspec

from isthmus.errors import Unavailable, UserFault
from isthmus.lab.kubelet import channels
from isthmus.lab.short import short
from isthmus.lab.state import State

if TYPE_CHECKING:
    from isthmus.lab.topology import Run

APART = "~"
CHUNK = 32 * 1024
CONNECT = 30.0
"""Seconds. The socket is there or not at once; but this process may have to wait for its turn."""


class Local:
    """The lab that runs in a folder."""

    def __init__(self, state: State) -> None:
        state.require_running()
        self._state = state

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        with short(self._state.socket) as path:
            connector = aiohttp.UnixConnector(path)
            timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT)
            try:
                async with aiohttp.ClientSession(
                    "http://lab", connector=connector, timeout=timeout
                ) as session:
                    yield session
            except (aiohttp.ClientConnectionError, TimeoutError) as fault:
                told = str(fault) or type(fault).__name__
                raise Unavailable(f"the lab does not answer: {told}") from fault

    # ----------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        """Everything that runs."""
        return asyncio.run(self._status())

    async def _status(self) -> dict[str, Any]:
        async with self._session() as session, session.get("/status") as answer:
            found: dict[str, Any] = await answer.json()
            return found

    # ------------------------------------------------------------------------------------ hosts

    def start(self, host: str, run: Run) -> None:
        """Have a host run something. UserFault when it cannot; says why."""
        asyncio.run(self._order("POST", host, msgspec.json.encode(run)))

    def stop(self, host: str) -> None:
        """End what a host runs. UserFault if it runs nothing."""
        asyncio.run(self._order("DELETE", host, b""))

    async def _order(self, method: str, host: str, body: bytes) -> None:
        async with (
            self._session() as session,
            session.request(method, f"/run/{quote(host, safe='')}", data=body) as answer,
        ):
            if answer.status != 200:
                raise UserFault(await answer.text())

    def scope(self, target: str, cluster: str | None, namespace: str | None) -> str:
        """Where the pod or host `target` is, as the socket wants it.

        Raises:
            UserFault: there is none, or several.
        """
        found = self.status()
        hosts = {host["name"] for host in found["hosts"]}
        if cluster is None and namespace is None and target in hosts:
            return APART
        places = {
            f"{each['name']}{APART}{pod['namespace']}"
            for each in found["clusters"]
            for pod in each["pods"]
            if pod["name"] == target
            and cluster in (None, each["name"])
            and namespace in (None, pod["namespace"])
        }
        if len(places) == 1:
            return places.pop()
        if places:
            shown = ", ".join(sorted(place.replace(APART, "/") for place in places))
            raise UserFault(
                f"several pods are called {target!r}: {shown}; choose with --context, -n"
            )
        raise UserFault(
            f"the lab has no pod and no host {target!r}; `isthmus lab status` lists them"
        )

    # ------------------------------------------------------------------------------------- logs

    def logs(self, scope: str, name: str, container: str, query: Mapping[str, str]) -> int:
        """Print output; the exit code."""
        return asyncio.run(self._logs(_path("containerLogs", scope, name, container), query))

    async def _logs(self, path: str, query: Mapping[str, str]) -> int:
        async with self._session() as session, session.get(path, params=query) as answer:
            if answer.status != 200:
                raise UserFault(await answer.text())
            async for chunk in answer.content.iter_any():
                _print(sys.stdout.buffer, chunk)
        return 0

    # ------------------------------------------------------------------------------------- exec

    def execute(
        self, scope: str, name: str, container: str, command: Sequence[str], *, stdin: bool
    ) -> int:
        """Run a command; its exit code."""
        path = _path("exec", scope, name, container)
        return asyncio.run(self._execute(path, command, stdin=stdin))

    async def _execute(self, path: str, command: Sequence[str], *, stdin: bool) -> int:
        query = [("command", word) for word in command] + [("output", "1"), ("error", "1")]
        if stdin:
            query.append(("input", "1"))
        async with self._session() as session:
            try:
                socket = await session.ws_connect(path, params=query, protocols=channels.PROTOCOLS)
            except aiohttp.WSServerHandshakeError as fault:
                raise UserFault(f"exec is refused with status {fault.status}") from fault
            async with socket, asyncio.TaskGroup() as group:
                feeding = group.create_task(_feed(socket)) if stdin else None
                end = await _carry(socket)
                if feeding is not None:
                    feeding.cancel()
        if end.code is None:
            raise UserFault(end.message)
        return end.code


async def _carry(socket: aiohttp.ClientWebSocketResponse) -> channels.End:
    """Print what comes; the end."""
    outputs = {channels.STDOUT: sys.stdout.buffer, channels.STDERR: sys.stderr.buffer}
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == channels.END:
            return channels.read_end(data)
        if channel in outputs:
            _print(outputs[channel], data)
    return channels.End(None, "the lab broke off")


async def _feed(socket: aiohttp.ClientWebSocketResponse) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.run_in_executor(None, os.read, 0, CHUNK):
        await socket.send_bytes(bytes((channels.STDIN,)) + data)
    await socket.send_bytes(bytes((channels.CLOSE, channels.STDIN)))


def _print(target: Any, data: bytes) -> None:  # noqa: ANN401  # a binary file
    target.write(data)
    target.flush()


def _path(what: str, scope: str, name: str, container: str) -> str:
    # "-" stands for no name: a path has no empty segments. Names never begin with it.
    return f"/{what}/{quote(scope, safe='~')}/{quote(name)}/{'-' + quote(container)}"

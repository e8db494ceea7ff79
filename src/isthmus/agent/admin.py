"""An Envoy's admin socket: few questions, short patience."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import aiohttp

from isthmus.errors import Unavailable

PATIENCE: Final = aiohttp.ClientTimeout(total=5.0)
LARGEST: Final = 32 * 2**20
"""Bytes of an answer: statistics of a large mesh."""


class Admin:
    """The admin socket in `folder`. Reached through the folder's handle: no path is too long."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        path = f"/proc/self/fd/{self._folder}/{name}"
        self._session = aiohttp.ClientSession(connector=aiohttp.UnixConnector(path))

    async def close(self) -> None:
        """Let go of it."""
        await self._session.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    async def ready(self) -> bool:
        """Whether it has all its configuration and takes traffic."""
        try:
            status, _ = await self._ask("GET", "/ready")
        except Unavailable:
            return False
        return status == 200

    async def get(self, path: str) -> bytes:
        """The body of an answer; Unavailable if there is none."""
        status, body = await self._ask("GET", path)
        if status != 200:
            raise Unavailable(f"the proxy answers {path} with status {status}")
        return body

    async def post(self, path: str) -> None:
        """Make it do something; Unavailable if it does not."""
        status, _ = await self._ask("POST", path)
        if status != 200:
            raise Unavailable(f"the proxy answers {path} with status {status}")

    async def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        try:
            async with self._session.request(
                method, f"http://proxy{path}", timeout=PATIENCE
            ) as answer:
                body = await answer.content.read(LARGEST)
                return answer.status, body
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            raise Unavailable(f"the proxy does not answer: {fault}") from fault

"""Whether the mesh has heard that a pod leaves: asked of its control plane until it has."""

from __future__ import annotations

from typing import Final

import aiohttp
import msgspec

from isthmus.agent import Seat
from isthmus.agent.contract import Drained
from isthmus.aio import Clock
from isthmus.lab.network.namespace import Namespace

PAUSE: Final = 0.1
LONGEST: Final = 5
"""Seconds that a pod stays for clients in other clusters, whatever it is told."""
PATIENCE: Final = aiohttp.ClientTimeout(total=2.0)


class Answer(msgspec.Struct):
    """What the page says of a pod."""

    known: bool
    behind: list[str]
    linger: int = 0
    """Seconds until those in other clusters have heard it too."""


class Leaving:
    """Asks the admin listener at `host:port`, as reached from `inside`. Use it as a context."""

    def __init__(self, inside: Namespace, at: str, clock: Clock) -> None:
        self._url = f"http://{at}/leaving"
        self._clock = clock
        connector = aiohttp.TCPConnector(socket_factory=inside.factory, happy_eyeballs_delay=None)
        self._session = aiohttp.ClientSession(connector=connector, timeout=PATIENCE)

    async def __aenter__(self) -> Drained:
        return self.told

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def told(self, seat: Seat) -> None:
        """Return when every proxy that may send to the pod has accepted that it leaves.

        A control plane that is away is asked again: who waits has a deadline.
        """
        while (said := await self._ask(seat)) is None or not said.known or said.behind:
            await self._clock.sleep(PAUSE)
        await self._clock.sleep(min(said.linger, LONGEST))

    async def _ask(self, seat: Seat) -> Answer | None:
        asked = {"pod": f"{seat.namespace}/{seat.name}"}
        try:
            async with self._session.get(self._url, params=asked) as answer:
                return msgspec.json.decode(await answer.read(), type=Answer)
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError):
            return None

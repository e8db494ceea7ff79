"""Name resolution of pods, which must not end with the control plane that answers.

Questions go on to the name server. One that stays without an answer is answered as it was the last
time (RFC 8767, "serve stale"), and asked again until somebody answers if it never was.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from isthmus.aio import Clock
from isthmus.lab.network.namespace import Namespace

PAUSE: Final = 0.3
"""Seconds after which a question is asked again. A client's own patience is 5 s."""
TRIES: Final = 16
PENDING: Final = 4096
"""Questions that wait for an answer; more are left unanswered, as UDP may."""
REMEMBERED: Final = 4096
"""Answers that are kept; the oldest is forgotten first."""
LARGEST: Final = 4096
HEADER: Final = 12
SERVED: Final = (0, 3)
"""Codes of answers that are worth remembering: NOERROR and NXDOMAIN (RFC 1035)."""


class _Asked:
    """A question on its way."""

    __slots__ = ("client", "packet", "tries")

    def __init__(self, client: tuple[str, int], packet: bytes) -> None:
        self.client = client
        self.packet = packet
        self.tries = 1


class NameRelay:
    """From a UDP listener to the name server at `target`. `run` until cancelled."""

    def __init__(
        self, listening: socket.socket, inside: Namespace, target: tuple[str, int], clock: Clock
    ) -> None:
        self._listening = listening
        self._inside = inside
        self._target = target
        self._clock = clock
        self._asked: dict[int, _Asked] = {}
        self._answers: dict[bytes, bytes] = {}
        self._number = 0

    async def run(self) -> None:
        """Carry; it closes the listener."""
        loop = asyncio.get_running_loop()
        with self._listening, self._inside.socket(kind=socket.SOCK_DGRAM) as server:
            server.connect(self._target)
            self._server = server
            loop.add_reader(server, self._answer)
            try:
                while True:
                    with contextlib.suppress(OSError):  # what ICMP said of an earlier answer
                        packet, client = await loop.sock_recvfrom(self._listening, LARGEST)
                        self._ask(packet, client)
            finally:
                loop.remove_reader(server)
                self._asked.clear()

    def _ask(self, packet: bytes, client: tuple[str, int]) -> None:
        if len(packet) <= HEADER or len(self._asked) >= PENDING:
            return
        while self._number in self._asked:
            self._number = (self._number + 1) % 65536
        number, self._number = self._number, (self._number + 1) % 65536
        asked = self._asked[number] = _Asked(client, packet)
        self._send(number, asked)

    def _send(self, number: int, asked: _Asked) -> None:
        with contextlib.suppress(OSError):  # nobody listens there now
            self._server.send(number.to_bytes(2, "big") + asked.packet[2:])
        self._clock.call_later(PAUSE, lambda: self._late(number, asked))

    def _late(self, number: int, asked: _Asked) -> None:
        if self._asked.get(number) is not asked:
            return
        before = self._answers.get(asked.packet[2:])
        if before is not None:
            self._tell(number, before)
        elif asked.tries < TRIES:
            asked.tries += 1
            self._send(number, asked)
        else:
            del self._asked[number]

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            packet = self._server.recv(65536)
            number = int.from_bytes(packet[:2], "big")
            asked = self._asked.get(number)
            if asked is None or len(packet) <= HEADER:
                return
            if packet[3] & 0x0F in SERVED:
                self._remember(asked.packet[2:], packet[2:])
            self._tell(number, packet[2:])

    def _remember(self, question: bytes, answer: bytes) -> None:
        self._answers.pop(question, None)
        if len(self._answers) >= REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = answer

    def _tell(self, number: int, answer: bytes) -> None:
        asked = self._asked.pop(number)
        with contextlib.suppress(OSError):  # the client has left
            self._listening.sendto(asked.packet[:2] + answer, asked.client)

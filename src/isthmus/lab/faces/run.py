"""What every service has: settings from the environment, a port, a clean end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, Protocol

from isthmus.lab.faces.http import Handler, Headers, HttpServer, Request
from isthmus.lab.faces.pace import Pace, RealPace
from isthmus.lab.faces.trouble import Plan, plan

PORT: Final = 8000
GRACE: Final = 3.0
"""Seconds that requests get that are being answered when the process is told to end."""
USER: Final = "X-Faces-User"
POD: Final = "X-Faces-Pod"
CLUSTER: Final = "X-Faces-Cluster"


class Settings(NamedTuple):
    """How a service is set up. `pod` and `cluster` are who it says it is."""

    env: Mapping[str, str]
    host: str
    port: int
    pod: str
    cluster: str
    user_header: str
    plan: Plan
    random: Random
    pace: Pace
    debug: bool

    def identity(self) -> Headers:
        """The headers that say who answers."""
        return ((POD, self.pod), *(((CLUSTER, self.cluster),) if self.cluster else ()))

    def echoes(self, request: Request) -> Headers:
        """The headers of every answer."""
        return (
            (self.user_header, request.header(self.user_header, "unknown")),
            ("User-Agent", request.header("user-agent", "unknown")),
            *self.identity(),
        )


def settings(env: Mapping[str, str], argv: Sequence[str] = ()) -> Settings:
    """From the environment; `-port N` beats PORT. FACES_SEED makes chance repeatable."""
    seed = env.get("FACES_SEED", "")
    return Settings(
        env=env,
        host=env.get("LISTEN_HOST", "0.0.0.0"),  # noqa: S104  # a container's port is for all
        port=_port(argv, env.get("PORT", "")),
        pod=env.get("HOST_IP") or env.get("HOSTNAME") or "unknown",
        cluster=env.get("FACES_CLUSTER", ""),
        user_header=env.get("USER_HEADER_NAME") or USER,
        plan=plan(env),
        random=Random(seed) if seed else Random(),
        pace=RealPace(),
        debug=truth(env, "DEBUG_ENABLED", default=False),
    )


def _port(argv: Sequence[str], said: str) -> int:
    for at, word in enumerate(argv):
        if word.lstrip("-") == "port" and at + 1 < len(argv):
            said = argv[at + 1]
        elif word.lstrip("-").startswith("port="):
            said = word.partition("=")[2]
    return int(said) if said.isascii() and said.isdecimal() and int(said) < 65536 else PORT


def truth(env: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A switch: `true`, `1`, `yes`, `on`; anything else is off."""
    said = env.get(name, "")
    return said.lower() in ("true", "1", "yes", "on") if said else default


def number(env: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    """A count from 0 to `most`."""
    said = env.get(name, "")
    found = int(said) if said.isascii() and said.isdecimal() and len(said) < 7 else default
    return min(found, most)


class Server(Protocol):
    """What `run` needs of a server."""

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port."""

    async def stop(self, grace: float) -> None:
        """Take no more, and end what is open within `grace` seconds."""


def run(name: str, argv: Sequence[str], make: Callable[[Settings], Server]) -> int:
    """Serve until SIGTERM or SIGINT; then 0. 1 where the port cannot be had."""
    found = settings(os.environ, argv)
    try:
        asyncio.run(serve(name, found, make))
    except OSError as fault:
        sys.stderr.write(f"faces: {name} cannot listen on port {found.port}: {fault.strerror}\n")
        return 1
    return 0


def over_http(handler: Callable[[Settings], Handler]) -> Callable[[Settings], Server]:
    """A server of HTTP around a handler."""
    return lambda found: HttpServer(handler(found))


async def serve(name: str, found: Settings, make: Callable[[Settings], Server]) -> None:
    """Listen, say so, wait for the signal, end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    server = make(found)
    port = await server.start(found.host, found.port)
    say(f"faces: {name} listens on port {port}")
    await ended.wait()
    await server.stop(GRACE)


def say(line: str) -> None:
    """A line of the log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

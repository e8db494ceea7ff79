"""What the agent is given, and what it tells. It imports no other surface."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

import msgspec

from isthmus.aio import Clock, Log


class Means(NamedTuple):
    """Time, chance and a log."""

    clock: Clock
    random: Random
    log: Log


Dial = Callable[[], Awaitable[socket.socket]]
"""Connects: a non-blocking TCP socket; OSError when nobody accepts."""

Token = Callable[[], Awaitable[bytes]]
"""What to show for a certificate: a fresh ServiceAccount token, or the name of a workload."""


class Namespace(Protocol):
    """A network namespace."""

    def entered(self) -> AbstractContextManager[None]:
        """The calling thread is inside during the block, which must not await."""
        ...

    def listen(self, host: str, port: int) -> socket.socket:
        """A TCP socket that listens inside."""
        ...


class Here:
    """The namespace that the agent itself is in: workloads that share their host's network."""

    def entered(self) -> AbstractContextManager[None]:
        """Nothing is to be done."""
        return nullcontext()

    def listen(self, host: str, port: int) -> socket.socket:
        """A TCP socket that listens here."""
        made = socket.create_server((host, port), backlog=256)
        made.setblocking(False)
        return made


class Wires(msgspec.Struct, frozen=True, kw_only=True):
    """How one control plane is reached. Without `name` and TLS only where nobody is between."""

    identity: Dial
    xds: Dial
    destination: Dial | None = None
    policy: Dial | None = None
    secure: bool = True
    """Whether the xds listener speaks TLS. The lab's may, a test's need not."""


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """Which workload an Envoy belongs to: what its bootstrap is made of."""

    cluster: str
    namespace: str
    name: str
    """Of the pod or ExternalWorkload."""
    account: str
    zone: str = ""
    labels: Mapping[str, str] = {}
    """Of the pod's metrics."""


Bootstrap = Callable[[Seat], bytes]
"""Envoy's bootstrap, JSON or YAML. Paths in it start at the Envoy's working directory, which holds
`ads.sock`, `admin.sock` and `identity/`."""

Drained = Callable[[Seat], Awaitable[None]]
"""Returns when every proxy has been told that the workload leaves, as far as is known."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workload lives."""

    seat: Seat
    ip: str
    namespace: Namespace
    folder: Path
    """In memory, of this workload alone."""
    log: Path
    """Where its Envoy writes."""
    token: Token
    identity: str = ""
    """What its certificate proves; "" for that of the seat's ServiceAccount."""
    redirect: bool = True
    serves: tuple[str, ...] = ()
    """Networks that others reach through it: of a node's proxy, those of Services."""
    spares: tuple[str, ...] = ()
    """Addresses inside of those that they reach without it."""
    skip_inbound: tuple[tuple[int, int], ...] = ()
    """Ranges of ports, both ends included, that do not pass the proxy."""
    skip_outbound: tuple[tuple[int, int], ...] = ()
    skip_subnets: tuple[str, ...] = ()
    grpc: str = ""
    """Where its own gRPC clients see the folder that leads them to the control plane; "": none."""
    linkerd: bool = False
    """Offer the control plane's services on loopback, as linkerd2-proxy asks them."""
    changed: Callable[[], None] = lambda: None
    """Called when `Workload.standing` has changed."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload's proxy is. Times are seconds since 1970; 0 where there was none."""

    running: bool = False
    ready: bool = False
    since: float = 0.0
    restarts: int = 0
    last_code: int | None = None
    """Of the process before: minus the signal's number if a signal ended it."""
    last_end: float = 0.0
    why: str = ""
    """What it waits for."""

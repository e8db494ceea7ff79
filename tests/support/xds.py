"""A board whose xDS resources tests put there by hand, and a client that speaks plain xDS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import grpc
from envoy.service.discovery.v3 import discovery_pb2

from isthmus.aio import SystemClock
from isthmus.board import Subscription
from isthmus.calls import Refusal
from isthmus.engine import Change, Database, Delete, Put, Table, View, query
from isthmus.serve.xds import Cell, Node, Peer, Proxy
from isthmus.serve.xds.machine.frames import framed
from isthmus.serve.xds.machine.values import Framed
from isthmus.serve.xds.wire import DELTA, SERVICE, SOTW

Name = tuple[str, str]
"""A type URL and a name."""


class Names(NamedTuple):
    """A view."""

    pairs: tuple[tuple[str, tuple[str, ...] | None], ...]
    scope: tuple[str, ...] = ("*/*",)

    @property
    def types(self) -> Mapping[str, tuple[str, ...] | None]:
        return dict(self.pairs)


THINGS: Table[Name, Framed] = Table("xds_test_things")
SIGHTS: Table[str, Names] = Table("xds_test_sights")


@query
def thing(db: View, type_url: str, name: str) -> Framed | None:
    """A resource; a query that fails for the version `bug`."""
    found = THINGS.get(db, (type_url, name))
    if found is not None and found.version == "bug":
        raise LookupError("a fault of ours")
    return found


@query
def sight(db: View, asker: str) -> Names | None:
    return SIGHTS.get(db, asker)


class StaticDialect:
    """What a board in a test says."""

    name = "static"

    def view_query(self, asker: str, /) -> Cell:
        return (sight, asker)

    def resource_query(self, asker: str, type_url: str, name: str, /) -> Cell | None:
        return (thing, type_url, name)


STATIC = StaticDialect()


class Mesh:
    """The board. Everybody sees what `everybody` sees: all things, name by name."""

    def __init__(self) -> None:
        self.database = Database()
        self.names: dict[str, set[str]] = {}
        self.open: set[str] = set()

    def subscribe(self) -> Subscription:
        return Subscription(self.database, SystemClock())

    def change(self, put: tuple[tuple[str, Framed], ...] = (), gone: tuple[Name, ...] = ()) -> Self:
        """One revision."""
        changes: list[Change] = [Put(THINGS, (url, one.name), one) for url, one in put]
        changes += [Delete(THINGS, name) for name in gone]
        for url, one in put:
            self.names.setdefault(url, set()).add(one.name)
        for url, name in gone:
            self.names[url].discard(name)
        pairs = tuple(
            (url, None if url in self.open else tuple(sorted(names)))
            for url, names in sorted(self.names.items())
        )
        self.database.commit([*changes, Put(SIGHTS, "everybody", Names(pairs))])
        return self

    def put(self, type_url: str, name: str, version: str = "1") -> Self:
        """A resource whose content is its name and version."""
        message = f"{name}={version}".encode()
        return self.change(((type_url, framed(name, version, type_url, message, origin="o")),))


def admit(_peer: Peer, node: Node) -> Proxy | Refusal:
    """Everybody who has an id; `asker/` in front of it says as whom."""
    if node.id.startswith("evil"):
        return Refusal("PERMISSION_DENIED", "evil is not let in")
    asker, _, name = node.id.rpartition("/")
    return Proxy(name, STATIC, asker or "everybody")


class Caller:
    """One stream of a client in a test."""

    def __init__(
        self, channel: grpc.aio.Channel, *, node: str = "proxy", sotw: bool = False
    ) -> None:
        self.request: Any
        self.response: Any
        name, self.request, self.response = (
            (SOTW, discovery_pb2.DiscoveryRequest, discovery_pb2.DiscoveryResponse)
            if sotw
            else (DELTA, discovery_pb2.DeltaDiscoveryRequest, discovery_pb2.DeltaDiscoveryResponse)
        )
        self.call: Any = channel.stream_stream(f"/{SERVICE}/{name}")(timeout=60)
        self._node = node

    async def ask(self, type_url: str, **fields: Any) -> None:  # noqa: ANN401
        message = self.request(type_url=type_url, **fields)
        if self._node:
            message.node.id, self._node = self._node, ""
            message.node.user_agent_name = "test"
        await self.call.write(message.SerializeToString())

    async def read(self) -> Any:  # noqa: ANN401
        data = await self.call.read()
        assert data is not grpc.aio.EOF, "the server ended the stream"
        return self.response.FromString(data)

    async def ack(self, response: Any, error: str = "") -> None:  # noqa: ANN401
        detail = {"error_detail": {"code": 3, "message": error}} if error else {}
        await self.ask(response.type_url, response_nonce=response.nonce, **detail)


def told(response: Any) -> dict[str, str]:  # noqa: ANN401
    """Names and versions of a delta response."""
    return {one.name: one.version for one in response.resources}

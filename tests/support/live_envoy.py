"""A real Envoy that follows a mesh in memory over xDS, as the sidecar of `shop/me`.

What is changed of what it is told is what `tests.support.outbound_envoy` changes: the way in, and
where clusters lead to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.listener.v3 import listener_pb2
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from isthmus.aio import SystemClock, deadline
from isthmus.board import Subscription
from isthmus.dialects.envoy import Asker, Bootstrap, EnvoyDialect, bootstrap
from isthmus.dialects.envoy.view import asker as asker_of
from isthmus.dialects.envoy.view import sidecar_view
from isthmus.engine import Put, Table, View, query
from isthmus.proto.xds import CLUSTER, LISTENER, ROUTES, Resource, resource
from isthmus.serve.xds import Cell, Node, Peer, Proxy, XdsServer
from tests.support.anchors import Anchor
from tests.support.compact import Compact
from tests.support.envoy_process import CLOCK, PAUSE
from tests.support.envoys import plain, pod
from tests.support.log import ListLog
from tests.support.meshworld import TRUST, World
from tests.support.outbound_envoy import (
    IDENTITY,
    PROXY,
    SOON,
    Apps,
    Way,
    at_application,
    running,
)

PORTS: Table[str, int] = Table("live_test_ports")
"""Where the application of a cluster is."""


@query
def port_of(db: View, name: str) -> int | None:
    return PORTS.get(db, name)


@query
def patched(db: View, asker: Asker, type_url: str, name: str) -> Resource | None:
    """A resource as this Envoy is told it."""
    cell = EnvoyDialect().resource_query(asker, type_url, name)
    found: Resource | None = cell[0](db, *cell[1:]) if cell is not None else None
    wire: Message
    if found is not None and type_url == CLUSTER:
        told = plain(cluster_pb2.Cluster.FromString(found.value))
        wire = cluster_pb2.Cluster()
        json_format.ParseDict(at_application(told, port_of(db, name) or 9), wire)
    elif found is not None and (type_url, name) == (LISTENER, "outbound"):
        wire = _by_proxy(listener_pb2.Listener.FromString(found.value))
    else:
        return found
    new = resource(wire, name, origin=found.origin)
    return msgspec.structs.replace(new, clusters=found.clusters)


def _by_proxy(wire: listener_pb2.Listener) -> listener_pb2.Listener:
    proxied = component.ListenerFilter(name="proxy", typed_config=Any(type_url=PROXY))
    del wire.listener_filters[:]
    wire.listener_filters.append(proxied)
    wire.address.socket_address.address = "127.0.0.1"
    wire.address.socket_address.port_value = 0
    return wire


class _Dialect(EnvoyDialect):
    def resource_query(self, asker: Asker, type_url: str, name: str, /) -> Cell | None:
        return (patched, asker, type_url, name)


class Live:
    """The mesh as a board, and the Envoy that follows it."""

    way: Way
    apps: Apps
    server: XdsServer

    def __init__(self, world: World) -> None:
        self.world = world
        self.log = ListLog()

    def subscribe(self) -> Subscription:
        return Subscription(self.world.db, SystemClock())

    def admit(self, _peer: Peer, _node: Node) -> Proxy:
        found = self.world.db.read(asker_of, pod("shop/me"))
        return Proxy("me.shop", _Dialect(), found)

    async def apply(self, *objects: Compact) -> None:
        """Create or replace objects, and wait until the Envoy has accepted what follows."""
        self.world.apply(*objects)
        await self.settled()

    async def delete(self, *names: str) -> None:
        """Delete objects, and wait likewise."""
        self.world.delete(*names)
        await self.settled()

    async def settled(self) -> None:
        """Wait until the Envoy has accepted all that it is told."""
        async with deadline(CLOCK, SOON, "acceptance of everything"):
            await CLOCK.sleep(PAUSE)
            while any(map(self._behind, self._told())):
                await CLOCK.sleep(PAUSE)

    def _told(self) -> list[tuple[str, str]]:
        view = self.world.db.read(sidecar_view, pod("shop/me"))
        assert view is not None
        kinds = (CLUSTER, LISTENER, ROUTES)
        return [(kind, name) for kind in kinds for name in view.types[kind] or ()]

    def _behind(self, one: tuple[str, str]) -> bool:
        return bool(self.server.streams.behind(*one))


@asynccontextmanager
async def live(folder: Path, world: World, *services: str) -> AsyncIterator[Live]:
    """Run it. `services` (`cart.shop:80`) have applications, as has the world outside."""
    Anchor().write(folder, IDENTITY)
    made, socket = Live(world), folder / "ads"
    async with AsyncExitStack() as stack:
        made.apps = Apps(stack)
        parts = [one.rpartition(":") for one in services]
        names = [f"p{port}.{name}.here.internal.{TRUST}" for name, _, port in parts]
        ports = {name: await made.apps.add(name) for name in (*names, "passthrough")}
        world.db.commit([Put(PORTS, name, port) for name, port in ports.items()])
        clock = SystemClock()
        made.server = XdsServer(made, made.admit, clock=clock, random=Random(1), log=made.log)
        made.server.bind_unix(socket)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(group.create_task(made.server.run()).cancel)
        said = Bootstrap(id="me", workload="shop/me", ads=str(socket), admin="/nowhere")
        made.way = await stack.enter_async_context(running(folder, json.loads(bootstrap(said))))
        yield made

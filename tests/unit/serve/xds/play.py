"""Conversations with a machine: `>>` a request goes in, `<<` this response must come out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self

from envoy.service.discovery.v3 import discovery_pb2

from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine import (
    Convicted,
    Delta,
    DeltaRequest,
    Rejected,
    Response,
    Sotw,
    SotwRequest,
    Stream,
)
from isthmus.serve.xds.machine.frames import framed
from isthmus.serve.xds.machine.types import CLUSTER as CDS
from isthmus.serve.xds.machine.types import ENDPOINTS as EDS
from isthmus.serve.xds.machine.types import LISTENER as LDS
from isthmus.serve.xds.machine.types import ROUTES as RDS
from isthmus.serve.xds.machine.values import Framed

OTHER = "type.googleapis.com/made.up.Thing"

__all__ = ["CDS", "EDS", "LDS", "OTHER", "RDS"]


def thing(
    type_url: str, name: str, version: str = "1", clusters: tuple[str, ...] | None = ()
) -> Framed:
    """A resource whose content says its name and version."""
    message = f"{name}={version}".encode()
    return framed(name, version, type_url, message, clusters=clusters, origin=f"o/{name}")


class World:
    """What is true, as a dictionary."""

    def __init__(self) -> None:
        self.all: dict[str, dict[str, Resource]] = {CDS: {}, EDS: {}, LDS: {}, RDS: {}}
        self.open: set[str] = set()
        self.wanted: set[tuple[str, str]] = set()

    def names(self, type_url: str) -> Collection[str] | None:
        return None if type_url in self.open else self.all.get(type_url, {}).keys()

    def resource(self, type_url: str, name: str) -> Resource | None:
        return self.all.get(type_url, {}).get(name)

    def want(self, type_url: str, name: str) -> None:
        self.wanted.add((type_url, name))

    def drop(self, type_url: str, name: str) -> None:
        self.wanted.discard((type_url, name))


class Sent(NamedTuple):
    """A response, told by names and versions."""

    type_url: str
    resources: Mapping[str, str] = {}
    removed: Collection[str] = ()


class Nothing:
    """The stream has nothing to say."""


NOTHING = Nothing()


class Ack(NamedTuple):
    """The proxy accepts the last response of a type, and may change what it listens for."""

    type_url: str
    names: tuple[str, ...] | None = None


class Nack(NamedTuple):
    """The proxy rejects it."""

    type_url: str
    message: str = "no"


class Play:
    """A stream and the world it tells of. Time moves by hand."""

    def __init__(self, world: World | None = None, convicted: Convicted | None = None) -> None:
        self.world = world or World()
        self.now = 0.0
        self.nonces: dict[str, str] = {}
        self.guilty: list[Rejected] = []
        self.transcript: list[str] = []
        self.stream: Stream[Any] = self.machine()(self.world, convicted or Convicted(), self.now)

    def machine(self) -> type[Stream[Any]]:
        return Delta

    def put(self, type_url: str, *names: str, **options: Any) -> Self:  # noqa: ANN401
        """These resources are true now."""
        for name in names:
            self.world.all.setdefault(type_url, {})[name] = thing(type_url, name, **options)
        self.stream.reveal(type_url, names)
        return self

    def gone(self, type_url: str, *names: str) -> Self:
        """These are not."""
        for name in names:
            self.world.all[type_url].pop(name)
        self.stream.reveal(type_url, names)
        return self

    def change(
        self, put: Iterable[tuple[str, Resource]] = (), gone: Iterable[tuple[str, str]] = ()
    ) -> Self:
        """Several things in one revision."""
        puts, gones = list(put), list(gone)
        for type_url, one in puts:
            self.world.all[type_url][one.name] = one
        for type_url, name in gones:
            del self.world.all[type_url][name]
        for type_url, name in (*((url, one.name) for url, one in puts), *gones):
            self.stream.reveal(type_url, (name,))
        return self

    def __rshift__(self, event: DeltaRequest | SotwRequest | Ack | Nack) -> Self:
        match event:
            case Ack() | Nack():
                event = self.answer(event)
            case _:
                pass
        self.transcript.append(f">> {event}")
        guilty = self.stream.receive(event, self.now)
        if guilty is not None:
            self.guilty.append(guilty)
        return self

    def answer(self, event: Ack | Nack) -> DeltaRequest | SotwRequest:
        nonce = self.nonces[event.type_url]
        return DeltaRequest(event.type_url, nonce, getattr(event, "message", None))

    def __lshift__(self, expected: Sent | Nothing) -> Self:
        response = self.stream.next(self.now)
        got: Sent | None = None if response is None else self.read(response)
        self.transcript.append(f"<< {got}")
        if isinstance(expected, Nothing):
            wanted = None
        else:
            wanted = Sent(expected[0], dict(expected[1]), tuple(sorted(expected[2])))
        assert got == wanted, "\n".join((*self.transcript, f"instead of {wanted}"))
        return self

    def read(self, response: Response) -> Sent:
        message = discovery_pb2.DeltaDiscoveryResponse.FromString(response.body)
        assert (message.type_url, message.nonce) == (response.type_url, response.nonce)
        assert all(one.resource.type_url == response.type_url for one in message.resources)
        self.nonces[message.type_url] = message.nonce
        resources = {one.name: one.version for one in message.resources}
        return Sent(message.type_url, resources, tuple(sorted(message.removed_resources)))

    def started(self) -> Self:
        """An Envoy that has asked for everything, and was told that there is nothing."""
        self >> DeltaRequest(CDS) << Sent(CDS) >> Ack(CDS)
        return self >> DeltaRequest(LDS) << Sent(LDS) >> Ack(LDS) << NOTHING

    def started_with_clusters(self, *names: str) -> Self:
        """An Envoy that has these clusters, which must be all, in version 1."""
        self >> DeltaRequest(CDS) << Sent(CDS, dict.fromkeys(names, "1")) >> Ack(CDS)
        return self >> DeltaRequest(LDS) << Sent(LDS) >> Ack(LDS)


class SotwPlay(Play):
    """The same over the other protocol."""

    def machine(self) -> type[Stream[Any]]:
        return Sotw

    def __init__(self, world: World | None = None, convicted: Convicted | None = None) -> None:
        super().__init__(world, convicted)
        self.names: dict[str, tuple[str, ...]] = {}

    def __rshift__(self, event: DeltaRequest | SotwRequest | Ack | Nack) -> Self:
        if isinstance(event, SotwRequest):
            self.names[event.type_url] = event.names
        return super().__rshift__(event)

    def answer(self, event: Ack | Nack) -> SotwRequest:
        names = event.names if isinstance(event, Ack) and event.names is not None else None
        names = self.names.get(event.type_url, ()) if names is None else names
        self.names[event.type_url] = names
        nonce = self.nonces[event.type_url]
        return SotwRequest(event.type_url, nonce, getattr(event, "message", None), names)

    def read(self, response: Response) -> Sent:
        message = discovery_pb2.DiscoveryResponse.FromString(response.body)
        assert (message.type_url, message.nonce) == (response.type_url, response.nonce)
        self.nonces[message.type_url] = message.nonce
        resources: dict[str, str] = {}
        for one in message.resources:
            assert one.type_url == message.type_url
            name, _, version = one.value.decode().partition("=")
            resources[name] = version
        return Sent(message.type_url, resources)


def empty(name: str) -> dict[str, str]:
    """An assignment without endpoints, as `SotwPlay` reads it: its only field is the name."""
    return {f"\n{chr(len(name))}{name}": ""}

"""xDS streams converge to what is true, in a safe order, from any state and with any losses.

The proxy is a model of Envoy: clusters warm until their endpoints come, and only then are the
cluster response answered and routes to them served. It checks what it is told as it is told it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from envoy.service.discovery.v3 import discovery_pb2
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from isthmus.errors import PeerFault
from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine import (
    Convicted,
    Delta,
    DeltaRequest,
    Response,
    Sotw,
    SotwRequest,
    Stream,
)
from isthmus.serve.xds.machine.frames import framed
from isthmus.serve.xds.machine.stream import CALM
from isthmus.serve.xds.machine.types import CLUSTER as CDS
from isthmus.serve.xds.machine.types import ENDPOINTS as EDS
from isthmus.serve.xds.machine.types import LISTENER as LDS
from isthmus.serve.xds.machine.types import ROUTES as RDS
from tests.support.examples import examples

CLUSTERS = ("a", "b", "c", "d")
LISTENERS = ("in", "out")
NAMELESS, NAMED = "!", "?"
"""Versions that end so are rejected: with the whole response, or alone and by name."""

versions = st.builds(
    str.__add__, st.sampled_from("123"), st.sampled_from(("", "", "", "", NAMELESS, NAMED))
)


class Thing(NamedTuple):
    """A resource as the proxy reads it."""

    version: str
    clusters: tuple[str, ...]

    @property
    def bad(self) -> bool:
        return self.version.endswith((NAMELESS, NAMED))


Truths = dict[str, dict[str, Thing]]


def thing(version: str, clusters: Collection[str]) -> Thing:
    """Other content, another version."""
    return Thing("".join(sorted(clusters)) + version, tuple(sorted(clusters)))


@st.composite
def worlds(draw: st.DrawFn) -> Truths:
    """A mesh without contradictions: routes send to clusters that exist."""
    clusters = draw(st.dictionaries(st.sampled_from(CLUSTERS), versions))
    some = st.lists(st.sampled_from(sorted(clusters)), unique=True) if clusters else st.just([])
    listeners = draw(st.dictionaries(st.sampled_from(LISTENERS), st.tuples(versions, some)))
    routes = draw(st.fixed_dictionaries({name: st.tuples(versions, some) for name in listeners}))
    return {
        CDS: {name: Thing(version, ()) for name, version in clusters.items()},
        EDS: {name: Thing(draw(versions), ()) for name in clusters},
        LDS: {name: thing(one, to) for name, (one, to) in listeners.items()},
        RDS: {name: thing(one, to) for name, (one, to) in routes.items()},
    }


class World:
    """The truth of the machine."""

    def __init__(self) -> None:
        self.things: Truths = {CDS: {}, EDS: {}, LDS: {}, RDS: {}}

    def names(self, type_url: str) -> Collection[str]:
        return self.things.get(type_url, {}).keys()

    def resource(self, type_url: str, name: str) -> Resource | None:
        thing = self.things.get(type_url, {}).get(name)
        if thing is None:
            return None
        message = f"{name}={thing.version}={','.join(thing.clusters)}".encode()
        return framed(name, thing.version, type_url, message, clusters=thing.clusters)

    def want(self, type_url: str, name: str) -> None: ...

    def drop(self, type_url: str, name: str) -> None: ...


class Told(NamedTuple):
    """A response on its way, with what was true when it left."""

    response: Response
    then: Truths


class Envoy:
    """A model of the proxy; `say` puts requests on their way."""

    def __init__(self) -> None:
        self.have: Truths = {CDS: {}, EDS: {}, LDS: {}, RDS: {}}
        self.warming: dict[str, Thing] = {}
        self.answer: tuple[str, str | None] | None = None
        """To the cluster response, once everything is warm."""
        self.requests: deque[DeltaRequest | SotwRequest] = deque()
        self.asked: set[str] = set()
        self.heard: set[str] = set()
        """Endpoints that it was told on this stream."""

    # ------------------------------------------------ what it says

    def connect(self) -> None:
        """A new stream: what was warming goes on with what it has."""
        self.have[CDS].update(self.warming)
        self.warming, self.answer = {}, None
        self.requests.clear()
        self.asked, self.heard = set(), set()
        for type_url in (CDS, EDS, LDS, RDS):
            if type_url in (CDS, LDS) or self.names(type_url):
                self.say(type_url)

    def names(self, type_url: str) -> tuple[str, ...]:
        """What it listens for, of types that it asks for by name."""
        parent = {EDS: {**self.have[CDS], **self.warming}, RDS: self.have[LDS]}
        return tuple(sorted(parent.get(type_url, {})))

    def say(self, type_url: str, nonce: str = "", error: str | None = None) -> None:
        raise NotImplementedError

    def change_names(self, type_url: str, before: Collection[str]) -> None:
        raise NotImplementedError

    # ------------------------------------------------ what it hears

    def hear(self, told: Told) -> None:
        """Take a response; all checks of order are here."""
        type_url, nonce = told.response.type_url, told.response.nonce
        things, removed = self.read(told.response)
        bad = sorted(name for name, thing in things.items() if thing.bad)
        nameless = any(things[name].version.endswith(NAMELESS) for name in bad)
        error = None if not bad else ("?" if nameless else f"rejected: {', '.join(bad)}")
        child = {CDS: EDS, LDS: RDS}.get(type_url, "")
        before = self.names(child)
        if not nameless:
            good = {name: thing for name, thing in things.items() if not thing.bad}
            self.apply(type_url, good, removed, told.then)
        if type_url == EDS:  # rejected or not, it ends the waiting
            self.heard |= things.keys()
            self.warm(things)
        if type_url == CDS:
            self.answer = (nonce, error)
        else:
            self.say(type_url, nonce, error)
        if child and set(before) != set(self.names(child)):
            self.change_names(child, before)
        self.answer_if_warm()

    def time_out(self, true: Truths) -> None:
        """Warm with what it has from another stream. Nobody can send that again if it is gone."""
        old = self.have[EDS].keys() - self.heard - true[EDS].keys()
        self.warm([name for name in self.warming if name in old])
        self.answer_if_warm()

    def answer_if_warm(self) -> None:
        if self.answer is not None and not self.warming:
            (mark, why), self.answer = self.answer, None
            self.say(CDS, mark, why)

    def read(self, response: Response) -> tuple[dict[str, Thing], Collection[str]]:
        raise NotImplementedError

    def apply(
        self, type_url: str, things: dict[str, Thing], removed: Collection[str], then: Truths
    ) -> None:
        for name in removed:
            self.remove(type_url, name)
        for name, thing in things.items():
            if type_url == CDS:
                if (self.warming.get(name) or self.have[CDS].get(name)) != thing:
                    self.warming[name] = thing
                continue
            if type_url in (LDS, RDS):
                self.check_clusters(thing, then)
            self.have[type_url][name] = thing

    def check_clusters(self, thing: Thing, then: Truths) -> None:
        """No route to a cluster that is not warm, unless there is none, or it was rejected."""
        for cluster in thing.clusters:
            true = then[CDS].get(cluster)
            assert true is None or true.bad or cluster in self.have[CDS], f"503: {cluster} is cold"

    def remove(self, type_url: str, name: str) -> None:
        self.have[type_url].pop(name, None)
        if type_url == LDS:
            self.have[RDS].pop(name, None)
        if type_url == CDS:
            self.warming.pop(name, None)
            self.have[EDS].pop(name, None)
            used = {to for url in (LDS, RDS) for one in self.have[url].values() for to in one[1]}
            assert name not in used, f"503: {name} was removed under a route"

    def warm(self, names: Collection[str]) -> None:
        for name in names:
            if name in self.warming:
                self.have[CDS][name] = self.warming.pop(name)


def thing_of(content: bytes) -> tuple[str, Thing]:
    if content.startswith(b"\n"):  # an assignment without endpoints
        return content[2:].decode(), Thing("absent", ())
    name, version, clusters = content.decode().split("=")
    return name, Thing(version, tuple(filter(None, clusters.split(","))))


class DeltaEnvoy(Envoy):
    def say(self, type_url: str, nonce: str = "", error: str | None = None) -> None:
        if type_url in self.asked:
            self.requests.append(DeltaRequest(type_url, nonce, error))
            return
        self.asked.add(type_url)
        initial = {name: thing.version for name, thing in self.have[type_url].items()}
        request = DeltaRequest(type_url, subscribe=self.names(type_url), initial=initial)
        self.requests.append(request)

    def change_names(self, type_url: str, before: Collection[str]) -> None:
        now = self.names(type_url)
        if type_url not in self.asked:
            self.say(type_url)
            return
        fresh = tuple(name for name in now if name not in before)
        old = tuple(name for name in before if name not in now)
        self.requests.append(DeltaRequest(type_url, subscribe=fresh, unsubscribe=old))

    def read(self, response: Response) -> tuple[dict[str, Thing], Collection[str]]:
        message = discovery_pb2.DeltaDiscoveryResponse.FromString(response.body)
        things = dict(thing_of(one.resource.value) for one in message.resources)
        assert {one.name: one.version for one in message.resources} == {
            name: thing.version for name, thing in things.items()
        }
        return things, tuple(message.removed_resources)


class SotwEnvoy(Envoy):
    def __init__(self) -> None:
        super().__init__()
        self.nonces: dict[str, str] = {}

    def connect(self) -> None:
        self.nonces = {}
        super().connect()

    def say(self, type_url: str, nonce: str = "", error: str | None = None) -> None:
        self.asked.add(type_url)
        self.nonces[type_url] = nonce or self.nonces.get(type_url, "")
        mark = self.nonces[type_url]
        self.requests.append(SotwRequest(type_url, mark, error, self.names(type_url)))

    def change_names(self, type_url: str, before: Collection[str]) -> None:
        self.say(type_url)

    def read(self, response: Response) -> tuple[dict[str, Thing], Collection[str]]:
        message = discovery_pb2.DiscoveryResponse.FromString(response.body)
        things = dict(thing_of(one.value) for one in message.resources)
        if response.type_url not in (CDS, LDS):
            return things, ()
        held = {
            **self.have[response.type_url],
            **(self.warming if response.type_url == CDS else {}),
        }
        return things, tuple(held.keys() - things.keys())


class Conversation(RuleBasedStateMachine):
    """Everything that can happen between a server, a proxy, and a network, in any order."""

    envoys: type[Envoy] = DeltaEnvoy
    streams: type[Stream[Any]] = Delta
    keeping: Mapping[str, set[str]] = {CDS: {LDS, RDS, CDS}, LDS: set()}
    """A rejection of which types may keep resources that are gone.

    What the proxy has instead may refer to clusters; of one from another stream nobody knows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.envoy = self.envoys()
        self.convicted = Convicted()
        self.told: deque[Told] = deque()
        self.now = 0.0

    @initialize(things=worlds())
    def start(self, things: Truths) -> None:
        self.world.things = things
        self.reconnect()

    @rule()
    def reconnect(self) -> None:
        """The network loses everything that is on its way."""
        self.told.clear()
        self.stream = self.streams(self.world, self.convicted, self.now)
        self.envoy.connect()

    @rule(things=worlds())
    def change(self, things: Truths) -> None:
        before, self.world.things = self.world.things, things
        for type_url in (CDS, EDS, LDS, RDS):
            self.stream.reveal(type_url, before[type_url].keys() | things[type_url].keys())

    @rule()
    def server_writes(self) -> None:
        response = self.stream.next(self.now)
        if response is not None:
            self.told.append(Told(response, self.world.things))

    @rule()
    def server_reads(self) -> None:
        if self.envoy.requests:
            self.stream.receive(self.envoy.requests.popleft(), self.now)

    @rule()
    def proxy_reads(self) -> None:
        if self.told:
            self.envoy.hear(self.told.popleft())

    @rule()
    def time_passes(self) -> None:
        self.now += 4.0

    @invariant()
    def one_response_of_a_type_is_under_way(self) -> None:
        types = [told.response.type_url for told in self.told]
        assert len(types) == len(set(types))

    def teardown(self) -> None:
        if not hasattr(self, "stream"):
            return
        idle = 0.0
        for _ in range(400):
            steps = len(self.told) + len(self.envoy.requests)
            self.server_reads()
            self.server_writes()
            self.proxy_reads()
            self.now += 1.0
            if steps == 0:
                self.envoy.time_out(self.world.things)
            idle = idle + 1.0 if steps == len(self.told) == len(self.envoy.requests) == 0 else 0.0
            if idle > CALM:
                break
        else:
            pytest.fail("no end of messages")
        self.check_converged()

    def check_converged(self) -> None:
        true, have = self.world.things, self.envoy.have
        assert not self.envoy.warming
        for type_url in (CDS, LDS):
            good = {name: thing for name, thing in true[type_url].items() if not thing.bad}
            assert good.items() <= have[type_url].items()
        for type_url in (EDS, RDS):
            listened = {name: true[type_url].get(name) for name in self.envoy.names(type_url)}
            for name, thing in listened.items():
                if thing is not None and not thing.bad:
                    assert have[type_url][name] == thing
        bad = {url for url in true if any(one.bad for one in true[url].values())}
        if not bad & self.keeping[LDS]:
            assert have[LDS].keys() <= true[LDS].keys()
        if not bad & self.keeping[CDS]:
            assert have[CDS].keys() <= true[CDS].keys()


class SotwConversation(Conversation):
    envoys = SotwEnvoy
    streams = Sotw
    # A whole set that is rejected removes nothing, until there is another.
    keeping = {CDS: {LDS, RDS, CDS}, LDS: {LDS}}  # noqa: RUF012  # as above


TestDelta = Conversation.TestCase
TestSotw = SotwConversation.TestCase
TestDelta.settings = TestSotw.settings = settings(
    max_examples=examples(50), stateful_step_count=30, deadline=None
)

texts = st.sampled_from(("", "*", "a", "b", "x" * 5000, CDS, EDS, LDS, RDS, "1", "2", "3"))
few = st.lists(texts, max_size=4).map(tuple)
deltas = st.builds(
    DeltaRequest,
    texts,
    texts,
    st.none() | texts,
    few,
    few,
    st.dictionaries(texts, texts, max_size=3),
)
sotws = st.builds(SotwRequest, texts, texts, st.none() | texts, few)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(deltas, max_size=12) | st.lists(sotws, max_size=12), worlds(), worlds())
def test_whatever_is_said_a_stream_answers_or_blames_the_peer(
    requests: list[DeltaRequest] | list[SotwRequest], before: Truths, after: Truths
) -> None:
    world = World()
    world.things = before
    delta = all(isinstance(one, DeltaRequest) for one in requests)
    stream: Stream[Any] = (Delta if delta else Sotw)(world, Convicted(), 0.0)
    for number, request in enumerate(requests):
        if number == len(requests) // 2:
            world.things = after
            for type_url in after:
                stream.reveal(type_url, before[type_url].keys() | after[type_url].keys())
        try:
            stream.receive(request, float(number))
        except PeerFault:
            return
        while stream.next(float(number)) is not None:
            pass
        stream.status()
        stream.due(float(number))

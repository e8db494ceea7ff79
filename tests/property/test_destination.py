"""Histories of objects against the Destination service's answers.

Whatever was applied and deleted in whatever order: what a long watch holds equals what is computed
from scratch; a client that folds the messages it got, with any of the states in between skipped,
holds what a fresh client gets; where a fresh client is refused, a Get stream holds nothing and a
GetProfile stream the default. Depth: HYPOTHESIS_PROFILE=thorough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Generic, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from isthmus.aio import ManualClock, breathe
from isthmus.app.destination import whole
from isthmus.board import Following
from isthmus.dialects.linkerd import AddressBook, addresses, delta, profile_bytes
from isthmus.engine import Query, View, query
from isthmus.mesh.addressed import subject_refusal
from isthmus.mesh.asked import AddressHost, GetKey, Host, InstanceHost, ProfileKey, ServiceHost
from isthmus.mesh.queries import Group, Piece, SetKey, Topology, groups, piece_groups, pieces
from isthmus.mesh.services import get_refusal
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.serve.linkerd import Read, Stream
from isthmus.serve.linkerd.machine import Steps
from isthmus.serve.linkerd.topics import Learn, Topics
from tests.support.compact import Compact
from tests.support.meshworld import DOMAIN, LOCAL, Held, World, fold

V = TypeVar("V")
Key = GetKey | ProfileKey

CART = ObjectKey(LOCAL, "shop", "cart")
FEDERATED = "multicluster.linkerd.io/"
FULL = f"cart.shop.svc.{DOMAIN}"

VARIANTS: Mapping[str, Sequence[Compact]] = {
    "svc shop/cart": (
        {"ip": "10.96.0.10", "ports": [8080]},
        {"ip": "10.96.0.10", "ports": [8080], "local": True, "selector": {"app": "cart"}},
        {"ip": "10.96.0.11", "ports": [{"port": 8080, "name": "web"}], "opaque": "web"},
        {"ports": [{"port": 8080, "target": 3306, "app": "http"}], "selector": {"app": "cart"}},
        {"type": "ExternalName", "ports": [8080]},
        {"ports": [9090]},
        {
            "ports": [8080],
            "annotations": {
                f"{FEDERATED}remote-discovery": "cart@east, cart@west",
                f"{FEDERATED}local-discovery": "till",
            },
        },
        {
            "ports": [8080],
            "labels": {
                f"{FEDERATED}remote-discovery": "east",
                f"{FEDERATED}remote-service": "cart",
            },
        },
        {"ports": [8080], "labels": {f"{FEDERATED}remote-discovery": "east"}},
    ),
    "svc shop/till": (
        {"ports": [8080]},
        {"ip": "10.96.0.10", "ports": [8080]},
        {"type": "ExternalName", "ports": [8080]},
    ),
    "east: svc shop/cart": ({"ports": [8080]}, {"ports": [{"port": 8080, "name": "web"}]}),
    "pod shop/a": (
        {"ip": "10.1.0.1", "labels": {"app": "cart"}, "meshed": True, "node": "n1"},
        {"ip": "10.1.0.1", "labels": {"app": "cart"}, "meshed": True, "opaque": "8080,web"},
        {"ip": "10.1.0.1", "meshed": True, "skip": "8000-9000", "node": "n2"},
        {"ip": "10.1.0.1", "meshed": True, "noenv": True},
        {"ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "cart"},
        {"ip": "10.1.0.1", "phase": "Pending"},
        {"ip": "10.1.0.1", "deleting": True, "owner": ["ReplicaSet", "cart-1"]},
        {
            "ip": "10.1.0.7",
            "hostIP": "172.16.0.9",
            "ports": [{"port": 8080, "name": "web", "host": 8080}],
        },
    ),
    "pod shop/b": (
        {"ips": ["10.1.0.2", "2001:db8::b"], "meshed": True, "labels": {"app": "cart"}},
        {"ip": "10.1.0.1", "meshed": "other", "native": True, "node": "n1"},
        {"ip": "10.1.0.1", "phase": "Succeeded"},
        {"ip": "10.1.0.2", "hostIP": "172.16.0.9", "ports": [{"port": 80, "host": 8080}]},
    ),
    "east: pod shop/a": ({"ip": "10.2.0.1", "meshed": True}, {"ip": "10.1.0.1", "meshed": True}),
    "slice shop/cart-1": (
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "10.1.0.1", "pod": "a", "zone": "z1"}]},
        {
            "svc": "cart",
            "ports": [8080, {"port": 3306, "name": "web"}],
            "eps": [
                {"ip": "10.1.0.1", "pod": "a", "hints": ["z1"], "host": "a-0"},
                {"ip": "10.1.0.2", "pod": "b", "hints": ["z2"]},
            ],
        },
        {"svc": "cart", "ports": [], "eps": [{"ip": "192.0.2.1"}]},
        {
            "svc": "cart",
            "ports": [4143],
            "eps": [{"ip": "192.0.2.1"}, {"ip": "10.1.0.1"}],
            "labels": {"mirror.linkerd.io/cluster-name": "west"},
            "annotations": {
                "mirror.linkerd.io/remote-gateway-identity": "gw.west",
                "mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.west",
            },
        },
    ),
    "slice shop/cart-2": (
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "10.1.0.7", "pod": "a", "ready": False}]},
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "10.1.0.7", "pod": "a"}]},
        {
            "svc": "cart",
            "family": "IPv6",
            "ports": [8080],
            "eps": [{"ip": "2001:db8::b", "pod": "b", "host": "a-0"}],
        },
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "198.51.100.1", "ew": "vm"}]},
    ),
    "slice shop/till-1": (
        {"svc": "till", "ports": [8080], "eps": [{"ip": "10.1.0.2", "pod": "b", "zone": "z2"}]},
        {"svc": "till", "ports": [8080], "eps": [{"ip": "10.1.0.1", "pod": "a"}]},
    ),
    "east: slice shop/cart-1": (
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "10.2.0.1", "pod": "a"}]},
        {"svc": "cart", "ports": [8080], "eps": [{"ip": "10.1.0.1", "pod": "a", "hints": ["z9"]}]},
    ),
    "server shop/bin": (
        {"pods": {"app": "cart"}, "port": 8080, "protocol": "opaque"},
        {"raw_pods": {}, "port": "web", "protocol": "opaque"},
        {"pods": {"app": "cart"}, "port": 8080, "protocol": "HTTP/1"},
        {"ews": {"app": "cart"}, "port": 8080, "protocol": "opaque"},
        {"raw_pods": {"matchExpressions": [{"key": "app", "operator": "Near"}]}, "port": 8080},
    ),
    f"sp shop/{FULL}": (
        {"spec": {"routes": [{"name": "s", "condition": {"pathRegex": "/s"}}]}},
        {"spec": {"routes": [{"name": "bad", "condition": {"pathRegex": "("}}]}},
        {"spec": {"dstOverrides": [{"authority": "till", "weight": "500m"}]}},
    ),
    f"sp pay/{FULL}": (
        {"spec": {"retryBudget": {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "5s"}}},
        {"spec": {"routes": [{"name": "c", "condition": {"method": "GET"}, "timeout": "1s"}]}},
    ),
    "split shop/one": ({"service": "cart", "backends": [["till", 1], ["cart", 3]]},),
    "route shop/r": ({"service": "cart"}, {"service": "cart", "port": 9090}),
    "rs shop/cart-1": ({"owner": ["Deployment", "cart"]}, {}),
    "node n1": ({"zone": "z1"}, {"zone": "z2"}, {}),
    "ew shop/vm": (
        {"ips": ["198.51.100.1"], "ports": [{"port": 8080}], "id": "spiffe://r/vm", "sni": "vm"},
        {
            "ips": ["10.1.0.1"],
            "ports": [{"port": 8080, "name": "linkerd-proxy"}],
            "id": "vm.example",
            "sni": "vm",
            "labels": {"app": "cart"},
            "opaque": "8080",
        },
    ),
    "link east": ({"trust": "east.test", "domain": "mesh.test"},),
}

HOSTS: Sequence[Host] = (
    ServiceHost(CART),
    InstanceHost(CART, "a-0"),
    *(AddressHost(LOCAL, ip) for ip in ("10.96.0.10", "10.1.0.1", "172.16.0.9", "198.51.100.1")),
)
GETS: Sequence[GetKey] = [
    GetKey(CART, port, instance, node)
    for port, instance, node in (
        (8080, "", ""),
        (8080, "", "n1"),
        (8080, "a-0", "n1"),
        (3306, "", "n2"),
    )
]
PROFILES: Sequence[ProfileKey] = [
    ProfileKey(host, 8080, namespace) for host in HOSTS for namespace in ("", "pay")
]

Step = tuple[str, int | None]
"""An object and which variant of it is applied; None: it is deleted."""


def applied(name: str) -> st.SearchStrategy[Step]:
    """One variant of an object; the first one, which is the plainest, most often."""
    which = st.one_of(st.just(0), st.integers(0, len(VARIANTS[name]) - 1))
    return st.tuples(st.just(name), which)


def one_step(name: str) -> st.SearchStrategy[Step]:
    return st.one_of(applied(name), applied(name), st.just((name, None)))


STEP = st.sampled_from(sorted(VARIANTS)).flatmap(one_step)
DENSE = st.tuples(*map(applied, sorted(VARIANTS))).flatmap(st.permutations)
"""Something said of every object, in any order."""

STEPS = st.builds(lambda dense, more: [*dense, *more], DENSE, st.lists(STEP, max_size=12))


def compact(name: str, variant: int) -> Compact:
    cluster, _, rest = name.rpartition(": ")
    kind, _, path = rest.partition(" ")
    return {kind: path, **VARIANTS[name][variant], **({"in": cluster} if cluster else {})}


def take(world: World, step: Step) -> None:
    name, variant = step
    if variant is not None:
        world.apply(compact(name, variant))
    elif name.startswith("link"):
        world.link(name.removeprefix("link "))
    else:
        world.delete(name)


def state(steps: Sequence[Step]) -> dict[str, int]:
    """What is there after these steps."""
    last = dict(steps)
    return {name: variant for name, variant in last.items() if variant is not None}


def fresh(steps: Sequence[Step], order: Random | None = None, *, ipv6: bool = False) -> World:
    """A world that holds what these steps lead to, and has no past."""
    found = list(state(steps).items())
    if order is not None:
        order.shuffle(found)
    world = World(ipv6=ipv6)
    for name, variant in found:
        world.apply(compact(name, variant))
    return world


Answers = dict[object, object]


def answers(world: World) -> Answers:
    """All that can be asked of a world."""
    found: Answers = {("get", key): world.db.read(addresses, key) for key in GETS}
    return found | {("profile", key): world.db.read(profile_bytes, key) for key in PROFILES}


@given(STEPS, st.booleans())
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step], ipv6: bool) -> None:
    world = World(ipv6=ipv6)
    asked: list[tuple[Query[..., object], object]] = [(addresses, key) for key in GETS]
    asked += [(profile_bytes, key) for key in PROFILES]
    held: dict[tuple[object, object], object] = {}
    with world.db.watch(lambda: None) as watch:
        for query, key in asked:
            watch.add(query, key)
        held |= watch.take()
        for at, step in enumerate(steps):
            take(world, step)
            if at % 3 == 2:
                held |= watch.take()
        held |= watch.take()
        assert not watch.failed()
    other = fresh(steps, ipv6=ipv6)
    for query, key in asked:
        assert held[query, key] == other.db.read(query, key), key


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(steps: list[Step], order: Random) -> None:
    assert answers(fresh(steps)) == answers(fresh(steps, order))


@given(STEPS, st.lists(st.booleans(), min_size=40, max_size=40), st.sampled_from(GETS))
def test_a_client_that_folds_holds_what_a_fresh_one_gets(
    steps: list[Step], reads: list[bool], key: GetKey
) -> None:
    world = World()
    book: AddressBook | None = None
    held: Held = {}
    for step, looks in zip([*steps, steps[0]], [*reads[: len(steps)], True], strict=True):
        take(world, step)
        if not looks:
            continue  # the client does not read just now
        now = world.db.read(addresses, key)
        held, book = fold(held, delta(book, now)), now
        assert held == fold({}, delta(None, now))
        if world.db.read(get_refusal, key.service) is not None:
            assert not held


@given(STEPS)
def test_who_is_refused_anew_has_the_default_on_an_open_stream(steps: list[Step]) -> None:
    world = fresh(steps)
    for key in PROFILES:
        if world.db.read(subject_refusal, key.host, key.port) is None:
            continue
        said = pb.DestinationProfile.FromString(world.db.read(profile_bytes, key))
        assert not said.routes
        assert not said.dst_overrides
        assert not said.HasField("profile_ref")
        assert said.retry_budget.ttl.seconds == 10
        assert not said.endpoint.HasField("tls_identity")


@given(STEPS)
def test_no_answer_is_followed_by_another_unless_an_object_changed(steps: list[Step]) -> None:
    world = fresh(steps)
    with world.db.watch(lambda: None) as watch:
        for key in PROFILES:
            watch.add(profile_bytes, key)
        watch.take()
        for name, variant in state(steps).items():
            world.apply(compact(name, variant))  # as a relist delivers it
        assert not watch.take()


@given(STEPS, STEP)
def test_an_add_never_empties_and_comes_before_the_remove(steps: list[Step], last: Step) -> None:
    world = fresh(steps)
    before = {key: world.db.read(addresses, key) for key in GETS}
    take(world, last)
    for key, book in before.items():
        messages = delta(book, world.db.read(addresses, key))
        kinds = [pb.Update.FromString(each).WhichOneof("update") for each in messages]
        assert kinds in ([], ["add"], ["remove"], ["add", "remove"])


# ------------------------------------------------------------- through the stream machine


class Client(Generic[V]):
    """A stream of the server with a client that folds what it gets, and reads when it likes."""

    def __init__(self, topics: Topics, query: Query[..., V], key: Key, steps: Steps[V]) -> None:
        self._address = (query, key)
        self._topics = topics
        self._stream = Stream(steps)
        self.messages: list[bytes] = []
        topics.join(query, key, self._stream.learn)

    def read(self) -> list[bytes]:
        """Whatever can be written now, to the end."""
        found = []
        while (message := self._stream.next()) is not None:
            found.append(message)
        self.messages += found
        return found

    def leave(self) -> None:
        self._topics.leave(*self._address, self._stream.learn)

    @property
    def held(self) -> Held:
        """What the client of a Get knows."""
        return fold({}, self.messages)


class Streamed(World):
    """A world that streams are served from."""

    def __init__(self) -> None:
        super().__init__()
        self.topics = Topics(self)

    @property
    def read(self) -> Read:
        return self.db.read

    def follow(self, told: Learn, query: Query[..., object], /, *key: object) -> Following:
        return Following(self.db, ManualClock(), told, query, *key)

    def get(self, key: GetKey) -> Client[AddressBook]:  # type: ignore[override]
        return Client(self.topics, addresses, key, delta)

    def profile(self, key: ProfileKey) -> Client[bytes]:  # type: ignore[override]
        return Client(self.topics, profile_bytes, key, whole)


READS = st.lists(st.integers(0, 7), min_size=64, max_size=64)
"""After each step: whether clients read (1), a new one comes (2), the loop has a turn (4)."""


@given(STEPS, READS, st.sampled_from(GETS))
def test_every_get_stream_ends_where_a_fresh_one_begins(
    steps: list[Step], reads: list[int], key: GetKey
) -> None:
    async def play() -> None:
        world = Streamed()
        clients = [world.get(key)]
        for step, read in zip(steps, reads, strict=False):
            take(world, step)
            if read & 4:
                await breathe()
            if read & 2:
                clients.append(world.get(key))
            if read & 1:
                for each in clients:
                    each.read()
        await breathe()
        fresh_one = world.get(key)
        for each in (*clients, fresh_one):
            each.read()
        for each in clients:
            assert each.messages, "a stream begins with a message"
            assert each.held == fresh_one.held
        if world.db.read(get_refusal, key.service) is not None:
            assert fresh_one.held == {}
        for each in (*clients, fresh_one):
            each.leave()
        world.db.forget()
        assert (len(world.topics), world.db.stats.cells) == (0, 0)

    asyncio.run(play())


@given(STEPS, READS, st.sampled_from(PROFILES))
def test_every_profile_stream_says_what_is_true_once(
    steps: list[Step], reads: list[int], key: ProfileKey
) -> None:
    """No answer is followed by another while no object changes, and none is said twice."""

    async def play() -> None:
        world = Streamed()
        clients = [world.profile(key)]
        for step, read in zip(steps, reads, strict=False):
            take(world, step)
            if read & 4:
                await breathe()
            if read & 2:
                clients.append(world.profile(key))
            if read & 1:
                for each in clients:
                    assert len(each.read()) <= 1
            if read & 5 == 5:  # everybody has been told, and has read
                await breathe()
                assert not any(each.read() for each in clients)
        await breathe()
        fresh_one = world.profile(key)
        for each in (*clients, fresh_one):
            each.read()
        for each in clients:
            assert each.messages[-1] == fresh_one.messages[-1]
            assert all(one != two for one, two in pairwise(each.messages))

    asyncio.run(play())


@given(STEPS, st.booleans(), st.sampled_from(["", "z1"]), st.sampled_from(["", "a-0"]))
def test_slices_looked_at_alone_say_what_they_say_together(
    steps: list[Step], ipv6: bool, zone: str, instance: str
) -> None:
    world = fresh(steps, ipv6=ipv6)
    for topology in Topology:
        key = SetKey(CART, 8080, instance, topology, zone, "n1" if topology == "node" else "")
        assert world.db.read(groups, key) == world.db.read(together, key)


@query
def together(db: View, key: SetKey) -> tuple[Group, ...]:
    """The members of a set, all slices seen at once."""
    return piece_groups(db, Piece(key, None)) if pieces(db, key) else ()

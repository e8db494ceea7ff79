"""Histories of policies against what a workload's proxy is told of its ports.

Whatever was applied and deleted in whatever order: what a long watch holds is what is computed from
scratch, for Envoy and for linkerd2-proxy. Nobody is let in whom no object that is there lets in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.envoy import Asker, EnvoyDialect
from isthmus.dialects.linkerd import inbound_faults, server_faults, server_policy
from isthmus.dialects.linkerd.inbound import server
from isthmus.ir.decide import Admit
from isthmus.ir.decide import inbound as decide
from isthmus.ir.inbound import Anybody, Authorization, Inbound, Peers
from isthmus.ir.names import Default, Origin, Ref
from isthmus.ir.proxy import InboundName
from isthmus.ir.request import HttpRequest, Peer
from isthmus.mesh.authorization import authorization_policy, grant_faults, server_authorization
from isthmus.mesh.inbound import inbound
from isthmus.mesh.inbound_routes import inbound_route_faults, refused_by_server
from isthmus.mesh.rate_limits import limit_state
from isthmus.mesh.routes import parents
from isthmus.mesh.servers import covered_workloads, covering_server, described_ports, overlaps
from isthmus.mesh.standing import authorization_standing, policy_standing
from isthmus.model.key import ObjectKey
from isthmus.proto.xds import LISTENER, ROUTES
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.meshworld import LOCAL, World

Cell = tuple[Any, ...]
POLICY = "config.linkerd.io/default-inbound-policy"
ME = pod("shop/me")
ASKER = Asker(ME)
DIALECT = EnvoyDialect()
PORTS = (0, 8080, 9090)
JUICE = {"matches": [{"path": {"type": "PathPrefix", "value": "/juice"}}]}
PAY = {"matches": [{"method": {"service": "shop.Till", "method": "Pay"}}]}
EXTENSION = {"type": "ExtensionRef", "extensionRef": {"group": "g", "kind": "K", "name": "n"}}

VARIANTS: Mapping[str, Sequence[Compact]] = {
    "ns shop": ({}, {"annotations": {POLICY: "deny"}}),
    "pod shop/me": (
        {"ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "labels": {"app": "me"}},
        {"ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}, "opaque": "9090",
         "ports": [{"port": 8080, "name": "web"}], "probes": [{"port": "web", "path": "/live"}]},
        {"ip": "10.1.0.9", "meshed": True, "labels": {"app": "you"}},
    ),
    "server shop/a": (
        {"pods": {"app": "me"}, "port": 8080, "labels": {"tier": "front"}},
        {"pods": {"app": "me"}, "port": "web", "protocol": "gRPC", "access": "audit"},
        {"pods": {"app": "you"}, "port": 9090, "access": "all-authenticated"},
    ),
    "server shop/b": (
        {"pods": {"app": "me"}, "port": 8080, "access": "cluster-unauthenticated",
         "created": "2020-01-01T00:00:00Z"},
        {"raw_pods": {}, "port": 9090, "protocol": "opaque", "access": "nonsense"},
    ),
    "saz shop/z": (
        {"server": "a", "client": {"unauthenticated": True}},
        {"servers": {"tier": "front"}, "client": {"meshTLS": {"identities": ["*.example", "X"]}}},
        {"servers": {}, "client": {}},
    ),
    "az shop/p": (
        {"for": "a", "needs": ["MeshTLSAuthentication m"]},
        {"for": ["Namespace", "shop"], "needs": ["NetworkAuthentication pay/n"]},
        {"for": ["HTTPRoute.policy.linkerd.io", "r"], "needs": []},
        {"for": "b", "needs": ["ServiceAccount till", "NetworkAuthentication pay/n"]},
    ),
    "az shop/q": (
        {"for": ["HTTPRoute.policy.linkerd.io", "r"], "needs": ["MeshTLSAuthentication m"]},
        {"for": ["GRPCRoute", "g"], "needs": []},
        {"for": "a", "needs": ["MeshTLSAuthentication m", "ServiceAccount till"]},
    ),
    "mtls shop/m": ({"ids": ["*"]}, {"refs": [["Namespace", "pay"]]}, {"ids": ["No."]}),
    "nets pay/n": ({"networks": ["10.0.0.0/8"]}, {"networks": [{"cidr": "x"}, "::/0"]}),
    "phr shop/r": (
        {"for": "a", "rules": [JUICE]},
        {"for": "b", "rules": [JUICE], "hosts": ["a.example"], "created": "2020-01-01T00:00:00Z"},
        {"for": "a", "parent": {"port": 1}, "rules": [JUICE]},
    ),
    "hr shop/r": ({"for": "a", "rules": [{"filters": [EXTENSION]}, {}]}, {"for": "gone"}),
    "gr shop/g": ({"for": "a", "rules": [PAY]}, {"for": "a"}),
    "limit shop/l": (
        {"for": "a", "total": 5, "overrides": [[3, ["till"]]]},
        {"for": "b", "identity": 7, "created": "2020-01-01T00:00:00Z"},
    ),
    "limit shop/k": ({"for": "a", "identity": 9},),
}  # fmt: skip

Step = tuple[str, int | None]


def applied(name: str) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.integers(0, len(VARIANTS[name]) - 1))


STEP = st.sampled_from(sorted(VARIANTS)).flatmap(
    lambda name: st.one_of(applied(name), applied(name), st.just((name, None)))
)
DENSE = st.tuples(*map(applied, sorted(VARIANTS))).flatmap(st.permutations)
STEPS = st.builds(lambda dense, more: [*dense, *more], DENSE, st.lists(STEP, max_size=12))


def world() -> World:
    return World(cluster_networks=("10.0.0.0/8",))


def take(held: World, step: Step) -> None:
    name, variant = step
    kind, _, path = name.partition(" ")
    if variant is None:
        held.delete(name)
    else:
        held.apply({kind: path, **VARIANTS[name][variant]})


def fresh(steps: Sequence[Step], order: Random | None = None) -> World:
    found = [(name, variant) for name, variant in dict(steps).items() if variant is not None]
    if order is not None:
        order.shuffle(found)
    held = world()
    for step in found:
        take(held, step)
    return held


def key(name: str) -> ObjectKey:
    return ObjectKey(LOCAL, "shop", name)


ROUTES_THERE = (
    Ref(LOCAL, "policy.linkerd.io", "HTTPRoute", "shop", "r"),
    Ref(LOCAL, "gateway.networking.k8s.io", "HTTPRoute", "shop", "r"),
    Ref(LOCAL, "gateway.networking.k8s.io", "GRPCRoute", "shop", "g"),
)


def dialects() -> Iterator[Cell]:
    """What proxies are told, by address."""
    yield DIALECT.view_query(ASKER)
    for type_url, name in ((LISTENER, "inbound"), *((ROUTES, f"in|{port}") for port in PORTS)):
        cell = DIALECT.resource_query(ASKER, type_url, name)
        assert cell is not None
        yield cell
    for port in PORTS:
        yield server_policy, InboundName(ME, port)
        yield inbound_faults, InboundName(ME, port)


def meanings(held: World) -> Iterator[Cell]:
    """What is meant, and what conditions are made of."""
    for port in PORTS:
        yield inbound, InboundName(ME, port)
        yield covering_server, ME, port
    for name in ("a", "b"):
        yield covered_workloads, key(name)
        yield overlaps, key(name)
        yield described_ports, key(name)
        yield server_faults, key(name)
    for name in ("p", "q"):
        yield authorization_policy, key(name)
        yield policy_standing, key(name)
    yield server_authorization, key("z")
    yield authorization_standing, key("z")
    yield grant_faults, Ref(LOCAL, "policy.linkerd.io", "ServerAuthorization", "shop", "z")
    yield limit_state, key("l")
    yield limit_state, key("k")
    for route in ROUTES_THERE:
        yield inbound_route_faults, route
        for parent in held.db.read(parents, route):
            yield refused_by_server, route, parent


def everything(held: World) -> dict[Cell, object]:
    return {cell: held.db.read(*cell) for cell in (*dialects(), *meanings(held))}


@given(STEPS)
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step]) -> None:
    held = world()
    values: dict[object, object] = {}
    with held.db.watch(lambda: None) as watch:
        for at, step in enumerate(steps):
            take(held, step)
            if at % 3 == 2:
                for cell in everything(held):
                    watch.add(*cell)
                values |= watch.take()
        values |= watch.take()
        assert not watch.failed()
    other = fresh(steps)
    for address, value in values.items():
        assert isinstance(address, tuple)
        assert value == other.db.read(*address), address


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(steps: list[Step], order: Random) -> None:
    assert everything(fresh(steps)) == everything(fresh(steps, order))


def there(steps: Sequence[Step]) -> dict[str, Compact]:
    """The objects that are there at the end."""
    return {
        name: VARIANTS[name][variant]
        for name, variant in dict(steps).items()
        if variant is not None
    }


_WORDS = {"AuthorizationPolicy": "az", "ServerAuthorization": "saz"}
_NEEDS = {"MeshTLSAuthentication m": "mtls shop/m", "NetworkAuthentication pay/n": "nets pay/n"}


def of_ports(held: World) -> Iterator[Inbound]:
    for port in PORTS:
        yield held.db.read(inbound, InboundName(ME, port))


def granted(found: Inbound) -> Iterator[Authorization]:
    yield from found.authorizations
    for route in found.http_routes:
        yield from route.authorizations
    for call in found.grpc_routes:
        yield from call.authorizations


@given(STEPS)
def test_nobody_grants_what_is_not_there_or_says_nothing(steps: list[Step]) -> None:
    objects = there(steps)
    for found in of_ports(fresh(steps)):
        for one in granted(found):
            assert one.networks
            assert not isinstance(one.authentication, Peers) or one.authentication.identities
            if isinstance(one.source, Origin):
                ref = one.source.ref
                written = objects[f"{_WORDS[ref.kind]} {ref.namespace}/{ref.name}"]
                missing = [need for need in written.get("needs", ()) if need in _NEEDS]
                assert all(_NEEDS[need] in objects for need in missing)


@given(STEPS)
def test_a_covered_port_admits_strangers_only_by_somebodys_word(steps: list[Step]) -> None:
    stranger, asked = Peer("192.0.2.7"), HttpRequest(path="/juice")
    for found in of_ports(fresh(steps)):
        verdict = decide(found, stranger, asked).verdict
        if isinstance(found.source, Origin) and isinstance(verdict, Admit):
            by = [one for one in granted(found) if one.source == verdict.source]
            assert any(isinstance(one.authentication, Anybody) for one in by)


@given(STEPS)
def test_linkerds_wire_grants_what_is_meant(steps: list[Step]) -> None:
    for found in of_ports(fresh(steps)):
        told = server(found)
        names = [one.metadata.default or one.metadata.resource.name for one in told.authorizations]
        assert names == [
            one.source.name if isinstance(one.source, Default) else one.source.ref.name
            for one in found.authorizations
        ]


@given(STEPS)
def test_nothing_is_told_twice_unless_an_object_changed(steps: list[Step]) -> None:
    held = fresh(steps)
    with held.db.watch(lambda: None) as watch:
        for cell in everything(held):
            watch.add(*cell)
        watch.take()
        for step in dict(steps).items():
            if step[1] is not None:
                take(held, step)  # as a relist delivers it
        assert not watch.take()

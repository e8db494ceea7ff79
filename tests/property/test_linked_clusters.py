"""Histories of linked clusters against what sidecars, gateways and gRPC processes are told.

Links, members, shares, mirrors and exports in any order: what a long watch holds equals what is
computed from scratch; every name leads to a resource; whoever is dialled by mesh TLS is expected; a
gateway lets in what is exported and nothing else; no share is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.envoy import Asker, EnvoyDialect
from isthmus.dialects.envoy.view import sidecar_view
from isthmus.dialects.grpc.clients import client_assignment, client_cluster
from isthmus.ir.names import Dns
from isthmus.mesh.backends import service_backends
from isthmus.mesh.census import Place
from isthmus.mesh.federation import share_problems
from isthmus.mesh.gateways import EXPORTED
from isthmus.mesh.scope import declared
from isthmus.mesh.targets import read_key, target
from isthmus.model.key import ObjectKey
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Resource
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.meshworld import LOCAL, TRUST, World

SHARE = "multicluster.isthmus.dev/member."
DISCOVERY = "multicluster.linkerd.io/"
MIRROR = {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "east"}
FQ_NAME = {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.x"}
IDENTITY = {"mirror.linkerd.io/remote-gateway-identity": "gw.east"}
OURS = {"meshed": True, "proxy": "envoy", "sa": "cart"}
LINK = {"trust": TRUST, "domain": "x"}


def federated(own: str, remote: str, **shares: str) -> Compact:
    notes = {f"{SHARE}{name}": said for name, said in shares.items()}
    if own:
        notes[f"{DISCOVERY}local-discovery"] = own
    notes[f"{DISCOVERY}remote-discovery"] = remote
    return {"ip": "10.96.0.8", "ports": [80], "annotations": notes}


def behind(*pods: str, ready: bool = True) -> Compact:
    eps = [{"ip": f"10.1.0.{ord(name)}", "pod": name, "ready": ready} for name in pods]
    return {"svc": "cart", "ports": [80], "eps": eps}


VARIANTS: Mapping[str, Sequence[Compact]] = {
    "link east": (LINK, {**LINK, "trust": "east.test", "own": "orient"}, {**LINK, "dead": True}),
    "link west": (LINK, {**LINK, "mesh": "other"}),
    "svc shop/cart-federated": (
        federated("cart", "cart@east,cart@west"),
        federated("", "cart@east,cart@west", east="weight=3", west="priority=1"),
        federated("cart", "cart@west", local="priority=2, weight=2", west="drain"),
        federated("cart", "cart@east,cart@west", here="drain", east="drain", west="nonsense"),
        {"ip": "10.96.0.8", "ports": [80, 81]},
    ),
    "svc shop/cart-east": (
        {"ip": "10.96.0.9", "ports": [80], "labels": MIRROR, "annotations": FQ_NAME},
        {"ip": "10.96.0.9", "ports": [80], "labels": MIRROR},
        {
            "ip": "10.96.0.9",
            "ports": [80],
            "labels": {
                f"{DISCOVERY}remote-discovery": "east",
                f"{DISCOVERY}remote-service": "cart",
            },
        },
    ),
    "slice shop/cart-east-1": (
        {
            "svc": "cart-east", "ports": [4143], "annotations": FQ_NAME | IDENTITY,
            "eps": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "ready": False}],
        },
        {"svc": "cart-east", "ports": [4143], "eps": []},
    ),
    "svc shop/cart": (
        {"ip": "10.96.0.7", "ports": [80], "labels": {EXPORTED: "true"}},
        {"ip": "10.96.0.7", "ports": [80, {"port": 90, "app": "tcp"}]},
    ),
    "pod shop/a": ({"ip": "10.1.0.97", **OURS}, {"ip": "10.1.0.97", "meshed": True, "sa": "cart"}),
    "slice shop/cart-1": (behind("a"), behind("a", ready=False)),
    "east: svc shop/cart": (
        {"ports": [80], "labels": {EXPORTED: "true"}},
        {"ports": [81]},
        federated("", "cart@west"),
    ),
    "east: pod shop/a": (
        {"ip": "10.1.0.97", **OURS},
        {"ip": "10.1.0.97", **OURS, "sa": "next"},
        {"ip": "10.1.0.97", "meshed": True, "sa": "cart"},
    ),
    "east: pod shop/b": ({"ip": "10.1.0.98"},),
    "east: slice shop/cart-1": (behind("a"), behind("a", "b"), behind("b")),
    "east: pod mc/gate": tuple(
        {"meshed": True, "annotations": {"config.linkerd.io/enable-gateway": "true"}, **more}
        for more in ({}, {"proxy": "envoy"})
    ),
    "west: svc shop/cart": ({"ports": [80]},),
    "west: pod shop/c": ({"ip": "10.1.0.99", **OURS, "meshed": "other"},),
    "west: slice shop/cart-1": (behind("c"), behind("c", ready=False)),
}  # fmt: skip

ME = pod("shop/me")
GATE = pod("mc/gate")
TYPES = (CLUSTER, ENDPOINTS, LISTENER, ROUTES)
DIALECT = EnvoyDialect()

Step = tuple[str, int | None]


def applied(name: str) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.integers(0, len(VARIANTS[name]) - 1))


STEP = st.sampled_from(sorted(VARIANTS)).flatmap(
    lambda name: st.one_of(applied(name), applied(name), st.just((name, None)))
)
DENSE = st.tuples(*map(applied, sorted(VARIANTS))).flatmap(st.permutations)
STEPS = st.builds(lambda dense, more: [*dense, *more], DENSE, st.lists(STEP, max_size=10))


def world() -> World:
    gate = {"config.linkerd.io/enable-gateway": "true"}
    return World(
        {"ns": "shop"},
        {"pod": "shop/me", "ip": "10.1.0.9", **OURS},
        {"pod": "mc/gate", "ip": "10.1.0.8", **OURS, "annotations": gate},
    )


def take(held: World, step: Step) -> None:
    name, variant = step
    where, _, rest = name.rpartition(": ")
    kind, _, path = rest.partition(" ")
    if variant is not None:
        held.apply({kind: path, **VARIANTS[name][variant], **({"in": where} if where else {})})
    elif kind == "link":
        held.link(path)
    else:
        held.delete(name)


def fresh(steps: Sequence[Step], order: Random | None = None) -> World:
    found = [(name, variant) for name, variant in dict(steps).items() if variant is not None]
    if order is not None:
        order.shuffle(found)
    held = world()
    for step in found:
        take(held, step)
    return held


def told(held: World, workload: Asker) -> dict[tuple[str, str], Resource]:
    """All that a proxy is told. Every name in sight leads to a resource."""
    view = held.db.read(sidecar_view, workload.workload)
    assert view is not None
    found: dict[tuple[str, str], Resource] = {}
    for type_url, names in view.types.items():
        for name in names or ():
            cell = DIALECT.resource_query(workload, type_url, name)
            assert cell is not None
            one = held.db.read(*cell)
            assert one is not None, name
            found[type_url, name] = one
    return found


@given(STEPS)
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step]) -> None:
    held = world()
    values: dict[object, object] = {}
    with held.db.watch(lambda: None) as watch:
        for asker in (Asker(ME), Asker(GATE)):
            watch.add(*DIALECT.view_query(asker))
        for at, step in enumerate(steps):
            take(held, step)
            if at % 4 == 3:
                values |= watch.take()
                for asker in (Asker(ME), Asker(GATE)):
                    for type_url, name in told(held, asker):
                        cell = DIALECT.resource_query(asker, type_url, name)
                        assert cell is not None
                        watch.add(*cell)
        values |= watch.take()
        assert not watch.failed()
    other = fresh(steps)
    for address, value in values.items():
        assert isinstance(address, tuple)
        assert value == other.db.read(*address), address


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(steps: list[Step], order: Random) -> None:
    one, other = fresh(steps), fresh(steps, order)
    for asker in (Asker(ME), Asker(GATE)):
        assert told(one, asker) == told(other, asker)


@given(STEPS)
def test_what_is_sent_to_is_in_sight(steps: list[Step]) -> None:
    held = fresh(steps)
    for asker in (Asker(ME), Asker(GATE)):
        found = told(held, asker)
        clusters = {name for type_url, name in found if type_url == CLUSTER}
        for one in found.values():
            assert one.clusters is not None
            assert set(one.clusters) <= clusters


@given(STEPS)
def test_every_port_has_backends_and_no_member_is_in_two(steps: list[Step]) -> None:
    held = fresh(steps)
    for name in held.db.read(declared, Place(LOCAL, "shop")):
        service = ObjectKey(LOCAL, "shop", name.parent.name)
        backends = held.db.read(service_backends, service, name.port)
        assert backends
        assert all(one.weight > 0 for one in backends)
        ids = [one.target.id for one in backends]
        assert len(ids) == len(set(ids))
        for one in backends:
            assert one.target.id not in {each.id for each in one.failover}
        for each in (some for one in backends for some in (one.target, *one.failover)):
            key = each.id.key(each.trust_domain)
            assert held.db.read(target, each.id) == each
            if not each.id.variant:
                assert held.db.read(client_cluster, key) is not None
                assert held.db.read(client_assignment, key, "") is not None
        assert isinstance(held.db.read(share_problems, service), tuple)


@given(STEPS)
def test_whoever_is_dialled_by_mesh_tls_is_expected(steps: list[Step]) -> None:
    held = fresh(steps)
    for (type_url, name), one in told(held, Asker(ME)).items():
        if type_url != ENDPOINTS:
            continue
        wire = endpoint_pb2.ClusterLoadAssignment.FromString(one.value)
        key = read_key(name)
        assert key is not None
        peers = held.db.read(target, key).peers
        modes = {
            str(each.metadata.filter_metadata["envoy.transport_socket_match"]["mode"])
            for some in wire.endpoints
            for each in some.lb_endpoints
            if "envoy.transport_socket_match" in each.metadata.filter_metadata
        }
        assert peers or not modes
        assert all(isinstance(peer, Dns) for peer in peers)
        assert "gateway" not in name or modes <= {"mesh"}


@given(STEPS)
def test_a_gateway_lets_in_what_is_exported_and_nothing_else(steps: list[Step]) -> None:
    held = fresh(steps)
    found = told(held, Asker(GATE))
    assert {name for type_url, name in found if type_url == LISTENER} == {"gateway"}
    wire = listener_pb2.Listener.FromString(found[LISTENER, "gateway"].value)
    names = [name for one in wire.filter_chains for name in one.filter_chain_match.server_names]
    exported = dict(steps)["svc shop/cart"] == 0
    assert names == ([f"p80.cart.shop.{LOCAL}.internal.{TRUST}"] if exported else [])

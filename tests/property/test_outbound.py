"""Histories of objects against what sidecars and gRPC processes are told.

Whatever was applied and deleted in whatever order: what a long watch holds of a view and of all its
resources equals what is computed from scratch; every name in sight leads to a resource; what is
sent to is in sight; nobody is dialled by mesh TLS whose identity is not expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2
from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.envoy import Asker, EnvoyDialect, faults
from isthmus.dialects.envoy.tls import NOBODY
from isthmus.dialects.envoy.view import sidecar_view
from isthmus.ir.names import Dns
from isthmus.ir.proxy import InboundName
from isthmus.mesh.asked import GetKey
from isthmus.mesh.attachment import egress_class
from isthmus.mesh.census import Place
from isthmus.mesh.endpoints import endpoint_sets
from isthmus.mesh.inbound import inbound
from isthmus.mesh.outbound import outbound
from isthmus.mesh.outside import egress_names, outside
from isthmus.mesh.proxy import proxy_view
from isthmus.mesh.targets import service_of, target_named
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Resource
from tests.support.compact import Compact
from tests.support.envoys import pod
from tests.support.meshworld import World

NOTE = "config.isthmus.dev/"
POLICY = "config.linkerd.io/default-inbound-policy"

VARIANTS: Mapping[str, Sequence[Compact]] = {
    "ns shop": (
        {},
        {"annotations": {f"{NOTE}upstreams": "shop/*"}},
        {"annotations": {f"{NOTE}inbound-tls": "strict", POLICY: "all-authenticated"}},
    ),
    "ns pay": ({},),
    "svc shop/cart": (
        {"ip": "10.96.0.10", "ports": [80]},
        {"ip": "10.96.0.10", "ports": [{"port": 80, "app": "http"}, 3306]},
        {"ip": "10.96.0.11", "ports": [{"port": 80, "app": "grpc"}], "selector": {"app": "cart"}},
        {"ip": "None", "ports": [80, {"port": 5432, "name": "sql"}]},
        {"ip": "10.96.0.10", "ports": [80], "opaque": "80", "local": True},
        {"type": "ExternalName", "ports": [80]},
    ),
    "svc pay/till": (
        {"ip": "10.96.0.20", "ports": [80]},
        {"ip": "None", "ports": [80]},
        {
            "ip": "172.20.0.1",
            "ports": [80],
            "annotations": {"balancer.linkerd.io/failure-accrual": "consecutive"},
        },
    ),
    "pod shop/a": (
        {
            "ip": "10.1.0.1",
            "meshed": True,
            "proxy": "envoy",
            "sa": "cart",
            "labels": {"app": "cart"},
        },
        {"ip": "10.1.0.1", "meshed": True, "sa": "cart", "opaque": "80,5432"},
        {"ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "next", "node": "n1"},
        {"ip": "10.1.0.1"},
        {"ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "skip": "80"},
    ),
    "pod pay/b": (
        {"ip": "10.1.0.2", "meshed": True, "proxy": "envoy", "sa": "till"},
        {"ip": "10.1.0.2", "meshed": True, "sa": "till"},
    ),
    "pod shop/me": (
        {"ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me", "labels": {"app": "me"}},
        {
            "ip": "10.1.0.9",
            "meshed": True,
            "proxy": "envoy",
            "sa": "me",
            "labels": {"app": "me"},
            "ports": [{"port": 8080, "name": "web"}],
            "probes": [{"port": "web", "path": "/live"}],
            "annotations": {f"{NOTE}upstreams": "pay/till"},
        },
        {
            "ip": "10.1.0.9",
            "meshed": True,
            "proxy": "envoy",
            "annotations": {POLICY: "deny"},
            "opaque": "9000",
            "ports": [{"port": 9000}],
        },
    ),
    "slice shop/cart-1": (
        {"svc": "cart", "ports": [80], "eps": [{"ip": "10.1.0.1", "pod": "a", "zone": "z1"}]},
        {"svc": "cart", "ports": [80], "eps": [{"ip": "10.1.0.1", "pod": "a", "ready": False}]},
        {
            "svc": "cart",
            "ports": [80, {"port": 5432, "name": "sql"}],
            "eps": [
                {
                    "ip": "10.1.0.1",
                    "pod": "a",
                    "ready": False,
                    "serving": True,
                    "terminating": True,
                },
                {"ip": "192.0.2.7"},
            ],
        },
    ),
    "slice pay/till-1": (
        {"svc": "till", "ports": [80], "eps": [{"ip": "10.1.0.2", "pod": "b"}]},
        {"svc": "till", "ports": [80], "eps": []},
    ),
    "server shop/web": (
        {"pods": {"app": "me"}, "port": 8080, "protocol": "HTTP/1", "access": "audit"},
        {"pods": {"app": "me"}, "port": "web", "protocol": "opaque"},
    ),
    "route shop/r": (
        {"service": "cart"},
        {"service": "cart", "port": 80, "backends": [["till", 80], ["cart", 80, 3]]},
        {
            "service": "cart",
            "hosts": ["*.example"],
            "rules": [
                {
                    "matches": [{"path": {"type": "RegularExpression", "value": "("}}],
                    "filters": [{"type": "CORS"}],
                },
                {
                    "filters": [
                        {
                            "type": "RequestMirror",
                            "requestMirror": {
                                "backendRef": {"name": "till", "namespace": "pay", "port": 80}
                            },
                        }
                    ]
                },
            ],
        },
        {"service": "till", "of": "pay", "backends": [["cart", 80]]},
        {"egress": "all", "of": "linkerd-egress", "port": 80, "hosts": ["a.example"]},
    ),
    "proute pay/p": (
        {"service": "till", "created": "2020-01-01T00:00:00Z"},
        {"service": "till", "section": "web", "backends": [["gone", 80, 0]]},
    ),
    "groute shop/g": (
        {"service": "cart", "port": 80},
        {"egress": "all", "of": "linkerd-egress", "port": 8000, "backends": [["cart", 80]]},
    ),
    "tlsroute shop/t": (
        {"service": "cart", "hosts": ["a.example"], "backends": [["cart", 80]]},
        {"egress": "own", "port": 443, "hosts": ["a.example", "*.b.example"]},
    ),
    "tcproute shop/c": (
        {"service": "cart", "port": 5432, "backends": [["cart", 80, 2], ["gone", 80]]},
        {"egress": "all", "of": "linkerd-egress", "port": 5000},
    ),
    "egress linkerd-egress/all": ({"policy": "Deny"}, {"policy": "Allow", "opaque": "8000"}),
    "egress shop/own": (
        {"policy": "Deny", "networks": [{"cidr": "198.51.100.0/24", "except": ["198.51.100.7"]}]},
        {"networks": ["10.96.0.0/12", "2001:db8::/32"]},
    ),
    "split shop/s": ({"service": "cart", "backends": [["cart", 1], ["other", 2]]},),
}

ME = pod("shop/me")
ASKER = Asker(ME, "n1")
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
    inside = ("10.0.0.0/8", "fd00::/8")
    return World(service_networks=("10.96.0.0/16",), cluster_networks=inside)


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


def told(held: World) -> dict[tuple[str, str], Resource]:
    """All that the sidecar is told."""
    view = held.db.read(sidecar_view, ME)
    found: dict[tuple[str, str], Resource] = {}
    for type_url, names in (view.types if view is not None else {}).items():
        for name in names or ():
            cell = DIALECT.resource_query(ASKER, type_url, name)
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
        watch.add(*DIALECT.view_query(ASKER))
        for at, step in enumerate(steps):
            take(held, step)
            if at % 3 == 2:
                values |= watch.take()
                for type_url, name in told(held):
                    cell = DIALECT.resource_query(ASKER, type_url, name)
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
    assert told(fresh(steps)) == told(fresh(steps, order))


@given(STEPS)
def test_what_is_sent_to_is_in_sight(steps: list[Step]) -> None:
    found = told(fresh(steps))
    clusters = {name for type_url, name in found if type_url == CLUSTER}
    for one in found.values():
        assert one.clusters is not None
        assert set(one.clusters) <= clusters


@given(STEPS)
def test_addresses_of_listeners_are_taken_once(steps: list[Step]) -> None:
    names = [name for type_url, name in told(fresh(steps)) if type_url == LISTENER]
    taken = [name.partition("|")[2] for name in names if name.startswith(("ip|", "refuse|"))]
    assert len(taken) == len(set(taken))


def expected(wire: cluster_pb2.Cluster) -> set[str]:
    """Whom a cluster believes by mesh TLS to one of our own sidecars."""
    for match in wire.transport_socket_matches:
        if match.name == "mesh":
            context = tls_pb2.UpstreamTlsContext()
            match.transport_socket.typed_config.Unpack(context)
            common = context.common_tls_context.combined_validation_context
            sans = common.default_validation_context.match_typed_subject_alt_names
            return {each.matcher.exact for each in sans}
    raise AssertionError(wire.name)


@given(STEPS)
def test_whoever_is_dialled_by_mesh_tls_is_expected(steps: list[Step]) -> None:
    held = fresh(steps)
    for (type_url, name), one in told(held).items():
        if type_url != ENDPOINTS:
            continue
        cell = DIALECT.resource_query(ASKER, CLUSTER, name)
        assert cell is not None
        peers = expected(cluster_pb2.Cluster.FromString(held.db.read(*cell).value))
        assert peers
        key = held.db.read(target_named, name)
        assert key is not None
        reached = held.db.read(endpoint_sets, GetKey(service_of(key), key.port or 0, "", "n1"))
        proofs = {
            each.identity.name
            for some in reached
            for each in some.endpoints
            if isinstance(each.identity, Dns)
        }
        assert proofs <= peers
        wire = endpoint_pb2.ClusterLoadAssignment.FromString(one.value)
        modes = [each.metadata for some in wire.endpoints for each in some.lb_endpoints]
        assert peers != {NOBODY} or not any(each.filter_metadata for each in modes)


@given(STEPS)
def test_the_mesh_answers_alike_for_every_name_in_a_view(steps: list[Step]) -> None:
    held, other = fresh(steps), fresh(steps)
    view = held.db.read(proxy_view, ME)
    assert view == other.db.read(proxy_view, ME)
    for name in view.upstreams if view is not None else ():
        assert held.db.read(outbound, name) == other.db.read(outbound, name)
    where = Place(ME.cluster, held.db.read(egress_class, Place(ME.cluster, ME.namespace)))
    assert held.db.read(outside, where) == other.db.read(outside, where)
    for name in held.db.read(egress_names, where):
        assert held.db.read(outbound, name) == other.db.read(outbound, name)
        assert held.db.read(faults, name) == other.db.read(faults, name)
    for port in view.inbounds if view is not None else (InboundName(ME, 80),):
        assert held.db.read(inbound, port) == other.db.read(inbound, port)


@given(STEPS)
def test_nothing_is_told_twice_unless_an_object_changed(steps: list[Step]) -> None:
    held = fresh(steps)
    with held.db.watch(lambda: None) as watch:
        for type_url, name in told(held):
            cell = DIALECT.resource_query(ASKER, type_url, name)
            assert cell is not None
            watch.add(*cell)
        watch.take()
        for step in dict(steps).items():
            if step[1] is not None:
                take(held, step)  # as a relist delivers it
        assert not watch.take()

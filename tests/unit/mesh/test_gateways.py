from __future__ import annotations

import pytest

from isthmus.ir.gateway import SniGateway, SniRoute, ToTarget
from isthmus.ir.names import Dns, Exact, Origin, Ref, TargetId
from isthmus.ir.proxy import ProxyKind
from isthmus.ir.target import Tls, Via
from isthmus.mesh.backends import service_backends
from isthmus.mesh.gateways import Protocol, forwards_to, gateway_protocol, sni_gateway
from isthmus.mesh.mirrors import Mirrored, mirrored
from isthmus.mesh.proxy import proxy_view
from isthmus.mesh.targets import THROUGH, target_id, target_named
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

MIRROR = ObjectKey(LOCAL, "shop", "cart-east")
CART = ObjectKey("east", "shop", "cart")
GATE = Ref(LOCAL, "", "Pod", "mc", "gate")
EXPORT = {"mirror.linkerd.io/exported": "true"}
ENABLED = {"config.linkerd.io/enable-gateway": "true"}
LINK: Compact = {"link": "east", "trust": "east.test", "domain": "cluster.local", "own": "oriental"}
LABELS = {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "east"}
NAMED = {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.cluster.local"}
OURS = {"meshed": True, "proxy": "envoy", "sa": "cart"}


def mirror(**said: object) -> Compact:
    usual = {"ip": "10.96.0.9", "ports": [80], "labels": LABELS, "annotations": NAMED}
    return {"svc": "shop/cart-east", **usual, **said}


def remote(*, ready: bool = True, **pod: object) -> list[Compact]:
    eps = [{"ip": "10.1.0.1", "pod": "a", "ready": ready}]
    return [
        {"svc": "shop/cart", "in": "east", "ports": [80]},
        {"pod": "shop/a", "in": "east", "ip": "10.1.0.1", **(pod or OURS)},
        {"slice": "shop/c", "in": "east", "svc": "cart", "ports": [80], "eps": eps},
    ]


def gateway(cluster: str, **said: object) -> Compact:
    where = {} if cluster == LOCAL else {"in": cluster}
    return {"pod": "mc/gate", "ip": "10.1.0.9", "annotations": ENABLED, **where, **said}


# ----------------------------------------------------------------------------- as a client


def test_a_mirror_is_known_by_what_it_says_and_not_by_its_name() -> None:
    assert World(mirror()).db.read(mirrored, MIRROR) == Mirrored(CART)


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {}},
        {"labels": LABELS | {"mirror.linkerd.io/mirrored-service": "false"}},
        {"labels": LABELS | {"multicluster.linkerd.io/remote-discovery": "east"}},
        {"annotations": {}},
        {"annotations": {"mirror.linkerd.io/remote-svc-fq-name": "cart.other.svc.x"}},
        {"annotations": {"mirror.linkerd.io/remote-svc-fq-name": "cart.shop"}},
    ],
)
def test_what_is_no_mirror_through_a_gateway(changed: Compact) -> None:
    assert World(mirror(**changed)).db.read(mirrored, MIRROR) is None


def test_requests_for_a_mirror_go_to_the_service_behind_and_it_proves_itself() -> None:
    world = World(mirror(), LINK, *remote())
    (one,) = world.db.read(service_backends, MIRROR, 80)
    found = one.target
    assert found.id == TargetId("east", "shop", "cart", 80, variant=THROUGH)
    assert found.peers == {Dns("cart.shop.serviceaccount.identity.isthmus.east.test")}
    assert (found.tls, found.via) == (Tls.MESH, Via.REMOTE_GATEWAY)
    assert found.server_name == "p80.cart.shop.oriental.internal.east.test"
    assert found.authority == "cart-east.shop.svc.mesh.test:80"
    assert found.http2
    assert found.remote


def test_if_nobody_is_known_nobody_may_answer() -> None:
    world = World(mirror(), LINK)
    (one,) = world.db.read(service_backends, MIRROR, 80)
    assert one.target.peers == frozenset()
    assert one.target.tls is Tls.MESH


def test_only_pods_that_a_gateway_finds_may_answer() -> None:
    more: list[Compact] = [
        {"pod": "shop/b", "in": "east", "ip": "10.1.0.2", "meshed": True, "sa": "other"},
        {
            "slice": "shop/d", "in": "east", "svc": "cart", "ports": [80],
            "eps": [{"ip": "10.1.0.2", "pod": "b"}],
        },
    ]  # fmt: skip
    world = World(mirror(), LINK, *remote(), *more)
    (one,) = world.db.read(service_backends, MIRROR, 80)
    assert one.target.peers == {Dns("cart.shop.serviceaccount.identity.isthmus.east.test")}


def test_a_key_leads_to_the_mirror_and_to_no_other() -> None:
    key = target_id(CART, 80, THROUGH).key("east.test")
    world = World(mirror(), LINK, *remote())
    assert world.db.read(target_named, key) == target_id(CART, 80, THROUGH)
    assert world.db.read(target_named, key.replace("p80", "p81")) is None
    # The same name, and another Service: `cart-east` of a cluster that is not `east`.
    other = LABELS | {"mirror.linkerd.io/cluster-name": "north"}
    world.apply(mirror(labels=other))
    assert world.db.read(target_named, key) is None


@pytest.mark.parametrize(
    ("pod", "ready", "found"),
    [
        (OURS, True, True),
        (OURS, False, False),
        ({"meshed": True, "sa": "cart"}, True, False),
        ({"sa": "cart"}, True, False),
    ],
)
def test_a_gateway_finds_who_is_ready_behind_our_own_sidecars(
    pod: Compact, ready: bool, found: bool
) -> None:
    world = World(LINK, *remote(ready=ready, **pod))
    assert world.db.read(forwards_to, CART, 80, "") is found


@pytest.mark.parametrize(
    ("pods", "spoken"),
    [
        ([], Protocol.SNI),
        ([gateway("east", meshed=True)], Protocol.LINKERD),
        ([gateway("east", meshed=True, proxy="envoy")], Protocol.SNI),
        ([gateway("east")], Protocol.SNI),
        ([gateway(LOCAL, meshed=True)], Protocol.SNI),
        ([gateway("east", meshed=True, annotations={})], Protocol.SNI),
    ],
)
def test_what_the_gateways_of_a_cluster_understand(pods: list[Compact], spoken: Protocol) -> None:
    assert World(LINK, *pods).db.read(gateway_protocol, "east") is spoken


# ------------------------------------------------------------------- one host of a headless one

HOST: Compact = {
    "svc": "shop/db-0-east", "ip": "10.96.0.8", "ports": [5432],
    "labels": LABELS | {"mirror.linkerd.io/headless-mirror-svc-name": "db-east"},
    "annotations": {"mirror.linkerd.io/remote-svc-fq-name": "db-0.db.shop.svc.cluster.local"},
}  # fmt: skip
DB = ObjectKey("east", "shop", "db")


def test_the_mirror_of_one_host_leads_to_this_host() -> None:
    key = ObjectKey(LOCAL, "shop", "db-0-east")
    world = World(HOST, LINK, {"svc": "shop/db", "in": "east", "ip": "None", "ports": [5432]})
    assert world.db.read(mirrored, key) == Mirrored(DB, "db-0")
    (one,) = world.db.read(service_backends, key, 5432)
    assert one.target.id == TargetId("east", "shop", "db", 5432, "db-0", THROUGH)
    assert one.target.server_name == "db-0.p5432.db.shop.oriental.internal.east.test"
    assert world.db.read(target_named, one.target.id.key("east.test")) == one.target.id
    world.apply({**HOST, "labels": LABELS})
    assert world.db.read(mirrored, key) is None


def test_a_host_that_is_not_ready_is_not_found_whoever_else_is() -> None:
    eps = [
        {"ip": "10.1.0.1", "pod": "a", "host": "db-0"},
        {"ip": "10.1.0.2", "pod": "b", "host": "db-1", "ready": False},
    ]
    east: list[Compact] = [
        {"svc": "shop/db", "ip": "None", "ports": [5432]},
        {"pod": "shop/a", "ip": "10.1.0.1", **OURS},
        {"pod": "shop/b", "ip": "10.1.0.2", **OURS},
        {"slice": "shop/d", "svc": "db", "ports": [5432], "eps": eps},
    ]
    world = World(LINK, *({**one, "in": "east"} for one in east))
    assert world.db.read(forwards_to, DB, 5432, "db-0")
    assert not world.db.read(forwards_to, DB, 5432, "db-1")
    assert not world.db.read(forwards_to, DB, 5432, "db-2")


def test_a_gateway_knows_the_hosts_of_headless_services() -> None:
    eps = [
        {"ip": "10.1.0.2", "pod": "b", "host": "db-1", "ready": False},
        {"ip": "10.1.0.1", "pod": "a", "host": "db-0"},
        {"ip": "10.1.0.3"},
    ]
    world = World(
        {"svc": "shop/db", "ip": "None", "ports": [5432], "labels": EXPORT},
        {"slice": "shop/d", "svc": "db", "ports": [5432], "eps": eps},
    )
    names = [
        one.sni.name.partition(".shop.")[0]
        for one in world.db.read(sni_gateway, GATE).routes
        if isinstance(one.sni, Exact)
    ]
    assert names == ["p5432.db", "db-0.p5432.db", "db-1.p5432.db"]
    for one in world.db.read(sni_gateway, GATE).routes:
        assert isinstance(one.to, ToTarget)
        key = one.to.target.key("trust.mesh.test")
        assert world.db.read(target_named, key) == one.to.target


# ---------------------------------------------------------------------------- as a gateway


def route(name: str, port: int) -> SniRoute:
    service = ObjectKey(LOCAL, "shop", name)
    return SniRoute(
        Exact(f"p{port}.{name}.shop.here.internal.trust.mesh.test"),
        ToTarget(target_id(service, port, "sni")),
        Origin(Ref(LOCAL, "", "Service", "shop", name)),
    )


def test_a_gateway_knows_the_ports_that_are_exported_and_no_other() -> None:
    kind = "mirror.linkerd.io/exported"
    world = World(
        gateway(LOCAL, meshed=True, proxy="envoy"),
        {"svc": "shop/cart", "ports": [80, 8080], "labels": EXPORT},
        {"svc": "shop/till", "ports": [80], "labels": {kind: "false"}},
        {"svc": "shop/flat", "ports": [80], "labels": {kind: "remote-discovery"}},
        {"svc": "shop/name", "ports": [80], "type": "ExternalName", "labels": EXPORT},
        {"svc": "shop/far", "in": "east", "ports": [80], "labels": EXPORT},
        {"svc": "shop/plain", "ports": [80]},
    )  # fmt: skip
    routes = (route("cart", 80), route("cart", 8080))
    assert world.db.read(sni_gateway, GATE) == SniGateway(GATE, 4143, routes)
    world.delete("svc shop/cart")
    assert world.db.read(sni_gateway, GATE).routes == ()


def test_a_pod_that_says_so_is_a_gateway_and_is_told_of_nothing_else() -> None:
    world = World({"ns": "shop"}, gateway(LOCAL, meshed=True, proxy="envoy"))
    world.apply({"svc": "shop/cart", "ip": "10.96.0.1", "ports": [80]})
    view = world.db.read(proxy_view, GATE)
    assert view is not None
    assert view.kind is ProxyKind.GATEWAY
    assert (view.upstreams, view.inbounds) == ((), ())
    for said in ("false", "perhaps", ""):
        notes = {"config.linkerd.io/enable-gateway": said}
        world.apply(gateway(LOCAL, annotations=notes))
        view = world.db.read(proxy_view, GATE)
        assert view is not None
        assert view.kind is ProxyKind.SIDECAR

from __future__ import annotations

import pytest

from isthmus.ir.names import Default, Origin
from isthmus.ir.outbound import (
    Detect,
    Http1,
    Http2,
    HttpRoute,
    Outbound,
    Spread,
    Tcp,
    TcpRoute,
    Vip,
)
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import Forbid, Retry, Timeouts
from isthmus.ir.target import Ejection, Target, To
from isthmus.mesh.outbound import outbound, parent_ref
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")


def asked(world: World, port: int = 80) -> Outbound:
    return world.db.read(outbound, OutboundName(parent_ref(CART), port, ""))


def cart(**said: object) -> World:
    return World({"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80], **said})


def routes(found: Outbound) -> tuple[HttpRoute, ...]:
    assert isinstance(found.protocol, Detect | Http1)
    return found.protocol.http if isinstance(found.protocol, Detect) else found.protocol.routes


def target(found: Outbound) -> Target:
    (backend,) = routes(found)[0].rules[0].backends
    assert isinstance(backend, To)
    return backend.target


@pytest.mark.parametrize(
    ("port", "said", "kind"),
    [
        ({"port": 80}, {}, Detect),
        ({"port": 80, "app": "http"}, {}, Http1),
        ({"port": 80, "app": "HTTP"}, {}, Http1),
        ({"port": 80, "app": "kubernetes.io/ws"}, {}, Http1),
        ({"port": 80, "app": "kubernetes.io/h2c"}, {}, Http2),
        ({"port": 80, "app": "grpc"}, {}, Http2),
        ({"port": 80, "app": "https"}, {}, Tcp),
        ({"port": 80, "app": "http"}, {"opaque": "80"}, Tcp),
        ({"port": 80}, {"opaque": "81"}, Detect),
    ],
)
def test_the_protocol_is_declared_opaque_or_looked_for(
    port: dict[str, object], said: dict[str, object], kind: type
) -> None:
    assert isinstance(asked(cart(ports=[port], **said)).protocol, kind)


def test_the_default_opaque_ports_are_opaque_unless_declared() -> None:
    assert isinstance(asked(cart(ports=[3306]), 3306).protocol, Tcp)
    declared = cart(ports=[{"port": 3306, "app": "http"}])
    assert isinstance(asked(declared, 3306).protocol, Http1)


def test_detection_has_ten_seconds_and_both_outcomes() -> None:
    found = asked(cart()).protocol
    assert isinstance(found, Detect)
    assert found.timeout == 10_000
    assert [route.source for route in found.http] == [Default("http")]
    assert [route.source for route in found.tcp] == [Default("opaq")]
    assert not found.tls


def test_without_routes_everything_goes_to_the_service_itself() -> None:
    found = asked(cart())
    (rule,) = routes(found)[0].rules
    assert rule.spread is Spread.FIRST
    (backend,) = rule.backends
    assert isinstance(backend, To)
    assert backend.source == Origin(parent_ref(CART), port=80)
    assert target(found).id.sni("td") == "p80.cart.shop.here.internal.td"


def test_connections_enter_by_the_cluster_ips() -> None:
    both = cart(ips=["10.96.0.10", "fd00:0::10"])
    assert asked(both).fronts == (Vip("10.96.0.10", 80), Vip("fd00::10", 80))
    assert asked(cart(ip="None")).fronts == ()


@pytest.mark.parametrize("world", [cart(ports=[81]), World(), cart(type="ExternalName")])
def test_what_is_not_declared_is_refused(world: World) -> None:
    found = asked(world)
    refusal = TcpRoute(
        Default("undefined-port"), filters=(Forbid("undefined port"),), spread=Spread.NONE
    )
    assert found.protocol == Tcp((refusal,))
    assert found.fronts == ()


def test_annotations_set_limits_and_retries() -> None:
    notes = {
        "timeout.linkerd.io/request": "3s",
        "timeout.linkerd.io/response": "2s",
        "timeout.linkerd.io/idle": "1m",
        "retry.linkerd.io/http": "gateway-error",
        "retry.linkerd.io/limit": "4",
    }
    (rule,) = routes(asked(cart(annotations=notes)))[0].rules
    assert rule.timeouts == Timeouts(request=3_000, response=2_000, idle=60_000)
    assert rule.retry == Retry(4, ((502, 504),))


def test_what_is_not_understood_spoils_its_own_group_only() -> None:
    notes = {
        "timeout.linkerd.io/request": "soon",
        "timeout.linkerd.io/idle": "1m",
        "retry.linkerd.io/limit": "4",
        "balancer.linkerd.io/failure-accrual": "sometimes",
    }
    found = asked(cart(annotations=notes))
    (rule,) = routes(found)[0].rules
    assert rule.timeouts == Timeouts()
    assert rule.retry == Retry(4)
    assert target(found).ejection is None


def test_failure_accrual_is_the_targets() -> None:
    prefix = "balancer.linkerd.io/failure-accrual"
    notes = {
        prefix: "consecutive",
        f"{prefix}-consecutive-max-failures": "3",
        f"{prefix}-consecutive-jitter-ratio": "0.25",
    }
    found = target(asked(cart(annotations=notes)))
    assert found.ejection == Ejection(3, 1_000, 60_000, 250)


def test_a_cell_does_not_change_when_endpoints_come_and_go() -> None:
    world = cart()
    world.apply({"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "c"})
    part = {"slice": "shop/cart-1", "svc": "cart", "ports": [80]}
    world.apply({**part, "eps": [{"ip": "10.1.0.1", "pod": "a", "ready": False}]})
    with world.db.watch(lambda: None) as watch:
        watch.add(outbound, OutboundName(parent_ref(CART), 80, ""))
        watch.take()
        world.apply({**part, "eps": [{"ip": "10.1.0.1", "pod": "a"}]})
        assert watch.take() == {}

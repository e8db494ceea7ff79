from __future__ import annotations

from isthmus.dialects.envoy import faults
from isthmus.dialects.envoy.filters import unsaid
from isthmus.ir.names import TargetId
from isthmus.ir.proxy import OutboundName
from isthmus.ir.rules import Fail, Forbid, HeaderChange, Mirror, RuleFilter
from isthmus.mesh.egress import network_ref
from isthmus.mesh.outbound import parent_ref
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

CART = OutboundName(parent_ref(ObjectKey(LOCAL, "shop", "cart")), 80, "")


def features(*objects: Compact, **said: object) -> list[str]:
    world = World({"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80], **said}, *objects)
    found = world.db.read(faults, CART)
    assert all(each.dialect == "envoy" for each in found)
    return [each.feature for each in found]


def part(*eps: Compact, **said: object) -> Compact:
    return {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": eps, **said}


def test_a_plain_service_can_be_told_whole() -> None:
    assert features() == []


def test_ways_to_balance_that_envoy_does_not_have() -> None:
    notes = {
        "balancer.linkerd.io/failure-accrual": "unified",
        "balancer.alpha.linkerd.io/penalize-failures": "true",
    }
    assert features(annotations=notes) == ["failure accrual by success rate", "load bias"]


def test_two_limits_are_one_to_envoy() -> None:
    notes = {"timeout.linkerd.io/request": "3s", "timeout.linkerd.io/response": "2s"}
    assert features(annotations=notes) == ["request and response timeouts together"]


def test_what_needs_linkerds_own_transport() -> None:
    opaque: Compact = {"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "opaque": "80"}
    found = features(opaque, part({"ip": "10.1.0.1", "pod": "a"}))
    assert found == ["mesh TLS to opaque ports of linkerd2-proxy"]
    notes = {
        "mirror.linkerd.io/remote-gateway-identity": "gw.west",
        "mirror.linkerd.io/remote-svc-fq-name": "cart.shop.svc.west",
    }
    assert features(part({"ip": "192.0.2.1"}, annotations=notes)) == ["linkerd gateways"]


def test_filters_that_are_not_told() -> None:
    mirror = Mirror(TargetId("here", "shop", "till", 80))
    told: list[RuleFilter] = [Fail(500, 2, "", 1, 2), mirror, Forbid(), HeaderChange()]
    assert list(unsaid(told)) == []
    assert list(unsaid([HeaderChange(remove=("Host",))])) == ["removing the host of requests"]


def test_endpoints_of_other_services_rest_as_those_say() -> None:
    notes = {"balancer.linkerd.io/failure-accrual": "consecutive"}
    route: Compact = {"route": "shop/r", "service": "cart", "backends": [["till", 80]]}
    till: Compact = {"svc": "shop/till", "ip": "10.96.0.11", "ports": [80]}
    assert features(route, till, annotations=notes) == ["failure accrual of backends"]
    assert features(route, {**till, "annotations": notes}, annotations=notes) == []
    assert features(route, till) == []


def test_routes_of_service_profiles_are_not_followed() -> None:
    route = {"name": "all", "condition": {"pathRegex": "/.*"}}
    profile: Compact = {"sp": "shop/cart.shop.svc.mesh.test", "spec": {"routes": [route]}}
    assert features(profile) == ["routes of ServiceProfiles"]


def test_opaque_ports_of_one_network_among_several() -> None:
    world = World(
        {"egress": "shop/a", "opaque": "25,9000"},
        {"egress": "shop/b", "networks": ["198.51.100.0/24"]},
    )
    name = OutboundName(network_ref(ObjectKey(LOCAL, "shop", "a")), 80, "shop")
    assert [each.feature for each in world.db.read(faults, name)] == ["opaque ports"]

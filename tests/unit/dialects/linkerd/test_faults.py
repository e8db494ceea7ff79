from __future__ import annotations

import pytest

from isthmus.dialects.linkerd import faults
from isthmus.ir.names import Default, Origin, Ref
from isthmus.mesh.asked import ProfileKey, ServiceHost
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

NAME = "cart.shop.svc.mesh.test"
KEY = ProfileKey(ServiceHost(ObjectKey(LOCAL, "shop", "cart")), 8080, "")
SERVICE: Compact = {"svc": "shop/cart", "ports": [8080]}


def route(status: Compact) -> Compact:
    condition = {"all": [{"not": {"status": status}}]}
    route = {"name": "r", "condition": {"pathRegex": "/"}}
    return {"routes": [{**route, "responseClasses": [{"condition": condition}]}]}


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({}, []),
        (route({"min": 500, "max": 599}), []),
        (route({"min": 500}), ["StatusRange"]),
        (route({"max": 500}), ["StatusRange"]),
        ({"retryBudget": {"retryRatio": 0.2, "ttl": "60s"}}, []),
        ({"retryBudget": {"retryRatio": 0.2, "ttl": "61s"}}, ["RetryBudget"]),
        ({"retryBudget": {"retryRatio": 0.2, "ttl": "500ms"}}, ["RetryBudget"]),
        ({"dstOverrides": [{"authority": "a", "weight": 0}]}, ["DstOverrides"]),
        (
            {"dstOverrides": [{"authority": "a", "weight": 0}, {"authority": "b", "weight": 1}]},
            [],
        ),
    ],
)
def test_what_a_proxy_will_not_do(spec: Compact, features: list[str]) -> None:
    world = World(SERVICE, {"sp": f"shop/{NAME}", "spec": spec})
    found = world.db.read(faults, KEY)
    assert [each.feature for each in found] == features
    origin = Origin(Ref(LOCAL, "linkerd.io", "ServiceProfile", "shop", NAME))
    assert all(each.origin == origin and each.dialect == "linkerd" for each in found)


def test_without_a_profile_the_default_has_no_faults() -> None:
    assert World(SERVICE).db.read(faults, KEY) == ()
    assert World().db.read(faults, KEY) == ()
    split: Compact = {"split": "shop/s", "service": "cart", "backends": [["till", 0]]}
    (fault,) = World(SERVICE, split).db.read(faults, KEY)
    assert fault.origin == Default("profile")


def test_a_gateway_that_goes_by_server_name_is_told_of() -> None:
    """A linkerd2-proxy says in its transport header what it means, which ours do not read."""
    mirror: Compact = {
        **SERVICE,
        "labels": {
            "mirror.linkerd.io/mirrored-service": "true",
            "mirror.linkerd.io/cluster-name": "east",
        },
        "annotations": {"mirror.linkerd.io/remote-svc-fq-name": "till.shop.svc.x"},
    }
    link: Compact = {"link": "east", "trust": "east.test", "domain": "x"}
    gate: Compact = {
        "pod": "mc/gate",
        "in": "east",
        "meshed": True,
        "annotations": {"config.linkerd.io/enable-gateway": "true"},
    }
    world = World(mirror, link, {**gate, "proxy": "envoy"})
    (found,) = world.db.read(faults, KEY)
    origin = Origin(Ref(LOCAL, "", "Service", "shop", "cart"), port=8080)
    assert (found.feature, found.origin) == ("GatewayProtocol", origin)
    world.apply(gate)
    assert world.db.read(faults, KEY) == ()

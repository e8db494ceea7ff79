from __future__ import annotations

import pytest

from isthmus.mesh.standing import (
    Standing,
    authorization_standing,
    policy_standing,
    server_standing,
)
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

KEY = ObjectKey(LOCAL, "shop", "p")
POD: Compact = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}}
OBJECTS: tuple[Compact, ...] = (
    POD,
    {"server": "shop/web", "pods": {"app": "me"}, "port": 8080, "labels": {"tier": "front"}},
    {"server": "shop/young", "pods": {"app": "me"}, "port": 8080,
     "created": "2026-01-01T00:00:00Z"},
    {"server": "shop/far", "pods": {"app": "far"}, "port": 8080, "labels": {"tier": "back"}},
    {"hr": "shop/on", "for": "web"},
    {"hr": "shop/lost", "for": "ghost"},
    {"hr": "shop/odd", "for": "web", "parent": {"port": 8080}},
    {"hr": "shop/far", "for": "far"},
    {"route": "shop/service", "service": "cart"},
    {"gr": "shop/calls", "for": "young"},
)  # fmt: skip
HTTP = "HTTPRoute.gateway.networking.k8s.io"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("web", Standing.IN_FORCE),
        ("young", Standing.SHADOWED),
        ("far", Standing.ELSEWHERE),
        ("ghost", Standing.NO_TARGET),
        (["Namespace", "shop"], Standing.IN_FORCE),
        (["Namespace", "pay"], Standing.NO_TARGET),
        ([HTTP, "on"], Standing.IN_FORCE),
        ([HTTP, "lost"], Standing.NOT_ON_A_SERVER),
        ([HTTP, "odd"], Standing.NOT_ON_A_SERVER),
        ([HTTP, "service"], Standing.NOT_ON_A_SERVER),
        ([HTTP, "far"], Standing.ELSEWHERE),
        ([HTTP, "gone"], Standing.NO_TARGET),
        (["HTTPRoute.policy.linkerd.io", "on"], Standing.NO_TARGET),
        (["GRPCRoute", "calls"], Standing.SHADOWED),
        (["Service", "cart"], Standing.NO_TARGET),
    ],
)
def test_what_a_policy_decides(target: object, found: Standing) -> None:
    world = World(*OBJECTS, {"az": "shop/p", "for": target})
    assert world.db.read(policy_standing, KEY) is found


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({"server": "web"}, Standing.IN_FORCE),
        ({"server": "ghost"}, Standing.NO_TARGET),
        ({"servers": {}}, Standing.IN_FORCE),
        ({"servers": {"tier": "back"}}, Standing.ELSEWHERE),
        ({"servers": {"tier": "none"}}, Standing.NO_TARGET),
    ],
)
def test_what_a_server_authorization_decides(choice: Compact, found: Standing) -> None:
    world = World(*OBJECTS, {"saz": "shop/p", "client": {"unauthenticated": True}, **choice})
    assert world.db.read(authorization_standing, KEY) is found


def test_a_policy_comes_into_force_with_the_first_workload() -> None:
    world = World({"server": "shop/web", "pods": {"app": "me"}, "port": 8080})
    key = ObjectKey(LOCAL, "shop", "web")
    assert world.db.read(server_standing, key) is Standing.ELSEWHERE
    world.apply(POD)
    assert world.db.read(server_standing, key) is Standing.IN_FORCE


def test_of_a_policy_that_is_gone_nothing_is_said() -> None:
    world = World()
    assert world.db.read(policy_standing, KEY) is None
    assert world.db.read(authorization_standing, KEY) is None

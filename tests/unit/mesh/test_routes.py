from __future__ import annotations

import pytest

from isthmus.mesh.routes import ROUTE_SOURCES, declares_protocol
from isthmus.model.key import ObjectKey
from tests.support.compact import Document, Name
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")
PARENT: Document = {"group": "", "kind": "Service", "name": "cart"}
HTTP = "httproutes.gateway.networking.k8s.io"


def declares(resource: str, parent: Document, namespace: str = "shop") -> bool:
    world = World()
    where = Name(None, resource, namespace, "r")
    world.write(where, {"metadata": {"name": "r"}, "spec": {"parentRefs": [parent]}})
    return world.db.read(declares_protocol, CART, 8080)


@pytest.mark.parametrize("resource", ROUTE_SOURCES)
def test_every_kind_of_route_but_tcp_says_what_a_port_speaks(resource: str) -> None:
    assert declares(resource, PARENT) is not resource.startswith("tcproutes")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"group": "core"}, True),
        ({"port": 8080}, True),
        ({"port": 80}, False),
        ({"namespace": "shop"}, True),
        ({"namespace": "pay"}, False),
        ({"name": "till"}, False),
        ({"kind": "Gateway"}, False),
        ({"group": "policy.linkerd.io"}, False),
    ],
)
def test_the_parent_must_be_the_service(change: Document, expected: bool) -> None:
    assert declares(HTTP, PARENT | change) is expected


def test_routes_of_other_namespaces_are_for_their_own_clients() -> None:
    assert not declares(HTTP, PARENT | {"namespace": "shop"}, namespace="pay")


def test_without_routes_nothing_is_declared() -> None:
    world = World({"route": "shop/r", "service": "cart"})
    assert world.db.read(declares_protocol, CART, 8080)
    world.delete("route shop/r")
    assert not world.db.read(declares_protocol, CART, 8080)

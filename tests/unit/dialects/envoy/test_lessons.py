"""What went wrong in other meshes, in miniature: how often a sidecar is told, and of whom."""

from __future__ import annotations

from typing import Any

from isthmus.dialects.envoy import EnvoyDialect
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from tests.support.compact import Compact, document
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import MESH, World

TYPES = (CLUSTER, ENDPOINTS, LISTENER, ROUTES)
DIALECT = EnvoyDialect()
CART: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]}
ME: Compact = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}


def instance(name: str, at: int) -> Compact:
    base = {"pod": f"shop/{name}", "ip": f"10.1.0.{at}", "meshed": True}
    return {**base, "proxy": "envoy", "sa": "db"}


def pieces(*eps: Compact) -> Compact:
    return {"slice": "shop/db-1", "svc": "db", "ports": [5432], "eps": list(eps)}


def watched(sidecar: Sidecar) -> Any:  # noqa: ANN401 - a Watch
    watch = sidecar.world.db.watch(lambda: None)
    watch.add(*DIALECT.view_query(sidecar.asker))
    for type_url in TYPES:
        for name in sidecar.names(type_url):
            cell = DIALECT.resource_query(sidecar.asker, type_url, name)
            assert cell is not None
            watch.add(*cell)
    watch.take()
    return watch


def test_metadata_that_means_nothing_here_tells_nobody_anything() -> None:
    # istio 60629: annotations of deployment tools were a push to every proxy.
    world = World({"ns": "shop"}, ME, CART, instance("cart-a", 1))
    with watched(Sidecar(world, pod("shop/me"))) as watch:
        for number in range(50):
            for path, compact in (("svc shop/cart", CART), ("pod shop/me", ME)):
                written = document(compact, MESH)
                notes = written["metadata"].setdefault("annotations", {})
                notes["tool.example/revision"] = str(number)
                world.write(path, written)
            assert watch.take() == {}


def test_listeners_of_addresses_go_with_the_addresses() -> None:
    # consul 12223: addresses that had been dialled directly were kept for ever.
    world = World({"ns": "shop"}, ME, {"svc": "shop/db", "ip": "None", "ports": [5432]})
    sidecar = Sidecar(world, pod("shop/me"))
    for number in range(1, 21):
        world.apply(instance("db-0", number), pieces({"ip": f"10.1.0.{number}", "pod": "db-0"}))
        dialled = [name for name in sidecar.names(LISTENER) if name.startswith("ip|")]
        assert dialled == [f"ip|10.1.0.{number}|5432"]

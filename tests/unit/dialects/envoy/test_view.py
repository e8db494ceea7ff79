from __future__ import annotations

from typing import Any

import pytest

from isthmus.dialects.envoy import Asker, EnvoyDialect, asker, sidecar_view
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES
from tests.support.compact import Compact
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import TRUST, World

DIALECT = EnvoyDialect()


def workload(name: str, at: int, **said: object) -> Compact:
    base = {"pod": f"shop/{name}", "ip": f"10.1.0.{at}", "meshed": True, "proxy": "envoy"}
    return {**base, "sa": name, **said}


def service(at: int, *eps: Compact) -> tuple[Compact, ...]:
    name = f"s{at}"
    return (
        {"svc": f"shop/{name}", "ip": f"10.96.0.{at}", "ports": [80]},
        {"slice": f"shop/{name}-1", "svc": name, "ports": [80], "eps": eps},
    )


def mesh(services: int) -> World:
    objects = ({"ns": "shop"}, workload("me", 250), workload("you", 251))
    world = World(*objects, service_networks=("10.96.0.0/16",))
    for at in range(1, services + 1):
        eps: list[Compact] = [{"ip": f"10.1.{at}.{n}", "pod": f"p{at}-{n}"} for n in range(1, 4)]
        world.apply(*service(at, *eps))
        for n in range(1, 4):
            pod_: Compact = {**workload(f"p{at}-{n}", 1), "ip": f"10.1.{at}.{n}", "sa": f"s{at}"}
            world.apply(pod_)
    return world


def flip(world: World, at: int, *, ready: bool) -> None:
    eps: list[Compact] = [
        {"ip": f"10.1.{at}.{n}", "pod": f"p{at}-{n}", "ready": ready or n > 1} for n in range(1, 4)
    ]
    world.apply(service(at, *eps)[1])


def watched(world: World, *workloads: str) -> Any:  # noqa: ANN401 - a Watch
    """A watch of all that these sidecars are told."""
    watch = world.db.watch(lambda: None)
    for path in workloads:
        sidecar = Sidecar(world, pod(path))
        watch.add(*DIALECT.view_query(sidecar.asker))
        for type_url in (CLUSTER, ENDPOINTS, LISTENER, ROUTES):
            for name in sidecar.names(type_url):
                cell = DIALECT.resource_query(sidecar.asker, type_url, name)
                assert cell is not None
                watch.add(*cell)
    watch.take()
    return watch


def cost(services: int) -> tuple[int, list[str]]:
    """Evaluations of one flip, and the names of what changed."""
    world = mesh(services)
    with watched(world, "shop/me", "shop/you") as watch:
        before = world.db.stats.evaluations
        flip(world, 3, ready=False)
        news = watch.take()
        return world.db.stats.evaluations - before, [one.name for one in news.values()]


def test_one_endpoint_that_flips_is_one_assignment_encoded_once_in_a_mesh_of_any_size() -> None:
    small, names = cost(5)
    large, same = cost(40)
    assert names == same == [f"p80.s3.shop.here.internal.{TRUST}"]
    assert small == large


def test_an_endpoint_that_comes_back_is_the_same_bytes() -> None:
    world = mesh(3)
    with watched(world, "shop/me") as watch:
        flip(world, 3, ready=False)
        flip(world, 3, ready=True)
        assert watch.take() == {}


def test_a_new_service_is_new_names_and_nothing_encoded_anew() -> None:
    world = mesh(3)
    with watched(world, "shop/me") as watch:
        world.apply(*service(9))
        (view,) = watch.take().values()
    assert f"p80.s9.shop.here.internal.{TRUST}" in view.types[CLUSTER]


def test_sidecars_with_one_scope_share_names_and_cells() -> None:
    world = mesh(3)
    one, other = (world.db.read(sidecar_view, pod(path)) for path in ("shop/me", "shop/you"))
    assert one is not None
    assert other is not None
    assert one.names.clusters is other.names.clusters
    assert one.names.listeners is other.names.listeners
    cells = [
        DIALECT.resource_query(Asker(pod(path)), LISTENER, "svc|shop/s1:80")
        for path in ("shop/me", "shop/you")
    ]
    assert cells[0] == cells[1]


def test_what_is_the_workloads_own_is_not_shared() -> None:
    cells = [
        DIALECT.resource_query(Asker(pod(path)), LISTENER, "inbound")
        for path in ("shop/me", "shop/you")
    ]
    assert cells[0] != cells[1]


def test_an_asker_is_a_workload_and_its_node() -> None:
    world = World(workload("me", 1, node="n1"))
    assert world.db.read(asker, pod("shop/me")) == Asker(pod("shop/me"), "n1")
    assert world.db.read(asker, pod("shop/you")) == Asker(pod("shop/you"), "")


def test_a_view_says_its_scope_to_people() -> None:
    notes = {"config.isthmus.dev/upstreams": "pay/till, shop/*"}
    world = World(workload("me", 1, annotations=notes))
    view = world.db.read(sidecar_view, pod("shop/me"))
    assert view is not None
    assert view.scope == ("pay/till", "shop/*")


@pytest.mark.parametrize(
    ("type_url", "name"),
    [
        (CLUSTER, "svc|shop/cart:80"),
        (LISTENER, "in|80"),
        (LISTENER, "svc|cart:80"),
        (LISTENER, "ip|10.1.0.1"),
        (LISTENER, "p80.cart.shop.here.internal.td"),
        (ROUTES, "in|65536"),
        (ROUTES, "in|+1"),
        (ROUTES, "outbound"),
        (ROUTES, "x" * 3000),
        ("type.googleapis.com/other", "inbound"),
    ],
)
def test_what_is_no_name_leads_nowhere(type_url: str, name: str) -> None:
    assert DIALECT.resource_query(Asker(pod("shop/me")), type_url, name) is None

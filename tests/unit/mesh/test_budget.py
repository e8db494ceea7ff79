"""What any namespace may write has a budget; beyond it routes are refused, networks never."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.envoy.egress import detect_listener
from isthmus.ir.names import Default, Ref
from isthmus.ir.outbound import Detect
from isthmus.ir.proxy import OutboundName
from isthmus.mesh import attachment, budget
from isthmus.mesh.attachment import acceptance, served
from isthmus.mesh.budget import AtPort, beyond
from isthmus.mesh.census import Place
from isthmus.mesh.egress import network_ref
from isthmus.mesh.outbound import outbound, parent_ref
from isthmus.mesh.outside import egress_names, outside
from isthmus.mesh.routes import GATEWAY_API, parents
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

GLOBAL = "linkerd-egress"
SHOP, PAY, ELSE = (Place(LOCAL, each) for each in ("shop", "pay", ""))
CART = parent_ref(ObjectKey(LOCAL, "shop", "cart"))
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]}


def networks(count: int, policy: str = "Deny") -> list[Compact]:
    return [
        {
            "egress": f"{GLOBAL}/n{at}",
            "policy": policy,
            "networks": [f"93.{at // 256}.{at % 256}.0/24"],
        }
        for at in range(count)
    ]


def out(path: str, port: int, to: str = "n0", age: int = 0) -> Compact:
    day = f"2026-01-{1 + age:02}T00:00:00Z"
    return {"route": path, "egress": to, "of": GLOBAL, "port": port, "created": day}


def route(name: str, *hosts: str, age: int = 0, **more: object) -> Compact:
    day = f"2026-01-{1 + age:02}T00:00:00Z"
    return {"route": name, "service": "cart", "hosts": list(hosts), "created": day, **more}


def ref(path: str, kind: str = "HTTPRoute") -> Ref:
    namespace, _, name = path.partition("/")
    return Ref(LOCAL, GATEWAY_API, kind, namespace, name)


def said(world: World, path: str) -> tuple[bool, str, str]:
    first = world.db.read(parents, ref(path))[0]
    found = world.db.read(acceptance, ref(path), first)
    return (found.accepted, found.reason, found.message)


def refused(world: World, *paths: str) -> set[str]:
    return {path for path in paths if said(world, path)[1] == "TooMany"}


def told(world: World, where: Place) -> list[int]:
    return sorted({name.port for name in world.db.read(egress_names, where)})


# ------------------------------------------------------------------------ ports of networks


def test_the_ports_of_the_oldest_routes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PORTS", 2)
    routes = [
        out(f"{GLOBAL}/{name}", port, age=age)
        for name, port, age in (("a", 83, 2), ("b", 82, 1), ("c", 81, 0), ("d", 82, 9))
    ]
    world = World({"ns": "shop"}, *networks(1), *routes)
    assert told(world, SHOP) == [0, 81, 82]
    assert refused(world, *(f"{GLOBAL}/{name}" for name in "abcd")) == {f"{GLOBAL}/a"}
    assert "more ports of EgressNetworks in linkerd-egress than 2" in said(world, f"{GLOBAL}/a")[2]
    world.delete(f"route {GLOBAL}/c")
    assert told(world, SHOP) == [0, 82, 83]
    assert not refused(world, f"{GLOBAL}/a")


def test_many_networks_leave_room_for_few_ports() -> None:
    routes = [out(f"{GLOBAL}/r{at}", 1000 + at, age=at) for at in range(20)]
    assert len(told(World({"ns": "shop"}, *networks(4), *routes), SHOP)) == 21
    assert told(World({"ns": "shop"}, *networks(100), *routes), SHOP) == [0, 1000, 1001]
    assert told(World({"ns": "shop"}, *networks(600), *routes), SHOP) == [0, 1000]
    wide = [f"93.{high}.{low}.0/24" for high in range(40) for low in range(100)]
    one = {"egress": f"{GLOBAL}/n0", "networks": wide}
    assert told(World({"ns": "shop"}, one, *routes), SHOP) == [0, 1000, 1001]


def test_a_namespace_spends_its_own_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PORTS", 1)
    world = World(
        {"ns": "shop"},
        {"ns": "pay"},
        *networks(1),
        out("pay/a", 81, age=0),
        out("pay/b", 82, age=1),
        out(f"{GLOBAL}/c", 83, age=2),
        out("shop/d", 84, age=3),
    )
    assert refused(world, "pay/a", "pay/b", f"{GLOBAL}/c", "shop/d") == {"pay/b"}
    assert [told(world, each) for each in (ELSE, SHOP, PAY)] == [[0, 83], [0, 83, 84], [0, 81, 83]]


def test_routes_that_no_network_takes_spend_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PORTS", 1)
    world = World(
        {"ns": "shop"},
        *networks(1),
        {"egress": f"{GLOBAL}/inside", "networks": ["10.0.0.0/8"]},
        out(f"{GLOBAL}/a", 81, to="inside", age=0),
        out(f"{GLOBAL}/b", 82, to="gone", age=1),
        out(f"{GLOBAL}/c", 83, age=2),
        cluster_networks=("10.0.0.0/8",),
    )
    assert told(world, SHOP) == [0, 83]
    assert said(world, f"{GLOBAL}/c")[0]


def test_what_a_network_denies_stays_denied_beyond_the_budget() -> None:
    routes = [out(f"{GLOBAL}/r{at}", 1000 + at, f"n{at}", age=at) for at in range(20)]
    world = World({"ns": "shop"}, *networks(300), *routes, cluster_networks=("10.0.0.0/8",))
    known = {region.network for region in world.db.read(outside, SHOP)} - {None}
    assert known == {ObjectKey(LOCAL, GLOBAL, f"n{at}") for at in range(300)}
    refusal = world.db.read(
        outbound, OutboundName(network_ref(ObjectKey(LOCAL, GLOBAL, "n7")), 1007, "shop")
    ).protocol
    assert isinstance(refusal, Detect)
    assert [one.source for one in refusal.http] == [Default("http-egress-deny")]
    chains = world.db.read(detect_listener, SHOP).value
    assert b"n299" in chains
    assert b":1000" in chains
    assert b":1007" not in chains


# ------------------------------------------------------------------------------------ hosts


def at_port(kind: str = "HTTPRoute", namespace: str = "shop") -> AtPort:
    return AtPort(CART, 80, kind, namespace)


def over(world: World, at: AtPort | None = None) -> list[str]:
    return sorted(each.name for each in world.db.read(beyond, at or at_port()))


@pytest.mark.parametrize(
    ("routes", "most"),
    [
        ([route("shop/a"), route("shop/b")], 2),
        ([route("shop/a", "x.test"), route("shop/b", "y.test")], 2),
        ([route("shop/a"), route("shop/b", "y.test", "x.test", age=1)], 5),
        ([route("shop/a", "y.test", "x.test"), route("shop/b", age=1)], 5),
        ([route("shop/a", "*.test"), route("shop/b", "x.test", age=1)], 3),
        ([route("shop/a", "x.test"), route("shop/b", "*.test", age=1)], 3),
        ([route("shop/a", "*.a.test", "*.test"), route("shop/b", "b.a.test", age=1)], 5),
        ([route("shop/a", "a.test", "b.test"), route("shop/b", "a.test", "*.b.test", age=1)], 4),
    ],
)
def test_hosts_times_matches(
    routes: list[Compact], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "MATCHES", most)
    assert over(World({"ns": "shop"}, SERVICE, *routes)) == []
    monkeypatch.setattr(budget, "MATCHES", most - 1)
    assert over(World({"ns": "shop"}, SERVICE, *routes)) == ["b"]


def test_the_oldest_routes_of_a_namespace_and_a_kind_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MATCHES", 2)
    monkeypatch.setattr(attachment, "MATCHES", 2)
    world = World(
        {"ns": "shop"},
        {"ns": "pay"},
        SERVICE,
        route("shop/a", "*.test", age=3),
        route("shop/b", "b.test", age=2),
        route("shop/c", "c.test", age=1),
        route("pay/d", "*.test", of="shop", age=4),
    )
    assert refused(world, "shop/a", "shop/b", "shop/c", "pay/d") == {"shop/a"}
    assert said(world, "shop/a")[2] == (
        "hosts and matches of older HTTPRoutes of shop at port 80 leave no room for this one:"
        " 2 pairs at most"
    )
    names = [each.name for each in world.db.read(served, OutboundName(CART, 80, "")).http]
    assert names == ["c", "b"]
    world.apply(route("shop/b", "b.other", age=2))
    assert over(world) == ["a"]
    world.delete("route shop/b", "route shop/c")
    assert not refused(world, "shop/a")


def test_at_networks_routes_that_join_stand_in_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MATCHES", 3)
    world = World(
        {"ns": "shop"},
        *networks(1),
        {**out(f"{GLOBAL}/owner", 80), "hosts": ["*.test"]},
        {**out("shop/a", 80, age=1), "hosts": ["a.test", "b.test"]},
        {**out("shop/b", 80, age=2), "hosts": ["c.test"]},
    )
    assert refused(world, f"{GLOBAL}/owner", "shop/a", "shop/b") == {"shop/b"}


# ---------------------------------------------------------------------------------- histories

HOSTS = ("a.test", "b.a.test", "*.a.test", "*.test", "*")
ROUTES = st.builds(
    lambda name, hosts, port, to, age: {**out(name, port, to, age), "hosts": hosts},
    st.sampled_from([f"{space}/{name}" for space in (GLOBAL, "shop") for name in "ab"]),
    st.lists(st.sampled_from(HOSTS), max_size=3, unique=True),
    st.sampled_from([80, 81]),
    st.sampled_from(["n0", "n1"]),
    st.integers(0, 3),
)


@given(st.lists(ROUTES, max_size=8))
def test_what_is_beyond_does_not_depend_on_the_past(history: list[Compact]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "PORTS", 1)
        patch.setattr(budget, "MATCHES", 3)
        held = World({"ns": "shop"}, *networks(2))
        for each in history:
            held.apply(each)
            verdicts(held, [each])
        last = {each["route"]: each for each in history}
        fresh = World({"ns": "shop"}, *networks(2), *last.values())
        assert verdicts(held, last.values()) == verdicts(fresh, last.values())
        assert (
            held.db.read(detect_listener, SHOP).value == fresh.db.read(detect_listener, SHOP).value
        )


def verdicts(world: World, routes: Iterable[Compact]) -> list[tuple[bool, str, str]]:
    return [said(world, each["route"]) for each in routes]

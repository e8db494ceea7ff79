from __future__ import annotations

from typing import Any

import msgspec

from isthmus.ir.endpoint import LinkerdOpaque, Speaks
from isthmus.ir.names import Ref
from isthmus.ir.profile import Override, Profile
from isthmus.mesh.asked import AddressHost, Host, InstanceHost, ProfileKey, ServiceHost
from isthmus.mesh.profiles import full_name, profile, used_profile
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World, ports

CART = ObjectKey(LOCAL, "shop", "cart")
THE_CART = ServiceHost(CART)
NAME = "cart.shop.svc.mesh.test"
SERVICE: Compact = {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [8080]}
DEFAULT = Profile(name=NAME, parent=Ref(LOCAL, "", "Service", "shop", "cart"), parent_port=8080)


def ask(world: World, host: Host = THE_CART, port: int = 8080, namespace: str = "") -> Profile:
    return world.db.read(profile, ProfileKey(host, port, namespace))


def sp(namespace: str, route: str, **spec: object) -> dict[str, Any]:
    routes = [{"name": route, "condition": {"pathRegex": "/"}}]
    return {"sp": f"{namespace}/{NAME}", "spec": {"routes": routes, **spec}}


def routes(world: World, namespace: str = "") -> list[str]:
    return [route.name for route in ask(world, namespace=namespace).routes]


def test_a_service_without_profile_has_the_default() -> None:
    assert ask(World(SERVICE)) == DEFAULT
    assert ask(World(SERVICE), AddressHost(LOCAL, "10.96.0.10")) == DEFAULT


def test_the_clients_namespace_comes_before_the_services() -> None:
    world = World(SERVICE, sp("shop", "server"), sp("pay", "client"))
    assert routes(world) == routes(world, "shop") == routes(world, "ops") == ["server"]
    assert routes(world, "pay") == ["client"]
    assert ask(world, namespace="pay").profile == Ref(
        LOCAL, "linkerd.io", "ServiceProfile", "pay", NAME
    )
    world.delete(f"sp pay/{NAME}")
    assert routes(world, "pay") == ["server"]
    world.delete(f"sp shop/{NAME}")
    assert ask(world, namespace="pay") == DEFAULT


def test_a_profile_that_is_hidden_by_another_says_nothing() -> None:
    world = World(SERVICE, sp("pay", "client"))
    key = ProfileKey(ServiceHost(CART), 8080, "pay")
    with world.db.watch(lambda: None) as watch:
        watch.add(profile, key)
        assert watch.take()
        world.apply(sp("shop", "server"))
        assert not watch.take()


def test_clients_without_a_profile_of_their_own_share_one_answer() -> None:
    world = World(SERVICE, sp("shop", "server"))
    assert ask(world, namespace="a") is ask(world, namespace="b")
    assert world.db.read(used_profile, CART, "a") == ObjectKey(LOCAL, "shop", NAME)


def test_the_name_follows_the_clusters_domain() -> None:
    assert World(cluster_domain="k8s.corp").db.read(full_name, CART) == "cart.shop.svc.k8s.corp"
    world = World()
    world.link("east", trust_domain="east.test", cluster_domain="east.local")
    key = CART._replace(cluster="east")
    assert world.db.read(full_name, key) == "cart.shop.svc.east.local"


def test_a_port_that_is_not_declared_has_an_empty_answer_until_it_is() -> None:
    world = World(SERVICE)
    assert ask(world, port=9090) == Profile(refused=True)
    world.apply({**SERVICE, "ports": [8080, {"port": 9090, "name": "adm"}]})
    assert ask(world, port=9090) == msgspec.structs.replace(DEFAULT, parent_port=9090)


def test_a_service_that_goes_leaves_the_default() -> None:
    world = World({**SERVICE, "opaque": "8080"}, sp("shop", "server"))
    assert ask(world).opaque
    assert routes(world) == ["server"]
    world.delete("svc shop/cart")
    assert ask(world) == DEFAULT
    world.apply({"svc": "shop/cart", "type": "ExternalName", "ports": [8080]})
    assert ask(world) == DEFAULT
    world.apply({**SERVICE, "opaque": "8080"})
    assert ask(world).opaque
    assert routes(world) == ["server"]


def test_opaque_ports_come_and_go() -> None:
    world = World({**SERVICE, "ports": [3306]})
    seen = []
    for opaque in (None, "9000", "9000, 3306", "", None):
        world.apply({**SERVICE, "ports": [3306], **({} if opaque is None else {"opaque": opaque})})
        seen.append(ask(world, port=3306).opaque)
    assert seen == [True, False, True, False, True]
    world.delete("svc shop/cart")
    assert ask(world, port=3306).opaque
    none = World({**SERVICE, "ports": [3306]}, default_opaque_ports=ports(""))
    assert not ask(none, port=3306).opaque


def test_overrides_are_the_profiles_else_the_splits() -> None:
    split: Compact = {"split": "shop/s", "service": "cart", "backends": [["till", 1]]}
    world = World(SERVICE, split)
    till = Override("till.shop.svc.mesh.test.:8080", 10_000)
    assert ask(world).overrides == (till,)
    assert ask(world).profile is None
    world.apply(sp("shop", "server"))
    assert ask(world).overrides == (till,)
    shares = [{"authority": "a.shop:1", "weight": 1}, {"authority": "b.shop", "weight": 2}]
    world.apply(sp("shop", "server", dstOverrides=shares))
    assert ask(world).overrides == (Override("a.shop:1", 10_000), Override("b.shop:8080", 20_000))
    world.delete("svc shop/cart")
    assert ask(world).overrides == ()


# ----------------------------------------------------------------------- single workloads

POD: Compact = {"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "sa": "cart"}
AT_POD = AddressHost(LOCAL, "10.1.0.1")


def test_a_pods_address_is_one_endpoint() -> None:
    found = ask(World(POD), AT_POD)
    assert (found.name, found.parent, found.profile, found.routes) == ("", None, None, ())
    assert found.endpoint is not None
    assert (found.endpoint.address, found.endpoint.port) == ("10.1.0.1", 8080)
    labels = dict(found.endpoint.labels)
    assert (labels["pod"], labels["namespace"], labels["zone"]) == ("a", "shop", "")
    assert "zone_locality" not in labels


def test_the_ports_flag_and_the_endpoints_hint_agree() -> None:
    found = ask(World({**POD, "opaque": "8080"}), AT_POD)
    assert found.opaque
    assert found.endpoint is not None
    assert (found.endpoint.speaks, found.endpoint.reach) == (Speaks.OPAQUE, LinkerdOpaque(4143))


def test_servers_are_followed_both_ways() -> None:
    world = World({**POD, "labels": {"app": "cart"}})
    server: Compact = {"server": "shop/s", "pods": {"app": "cart"}, "port": 8080}
    world.apply({**server, "protocol": "opaque"})
    assert ask(world, AT_POD).opaque
    world.apply({**server, "protocol": "HTTP/2"})
    assert not ask(world, AT_POD).opaque
    world.apply({**server, "protocol": "opaque"})
    world.delete("server shop/s")
    assert not ask(world, AT_POD).opaque


def test_an_address_of_nobody_is_itself() -> None:
    for objects in ((), ({**POD, "phase": "Pending"},), ({**POD, "noenv": True},)):
        found = ask(World(*objects), AT_POD)
        assert found.endpoint is not None
        assert (found.endpoint.address, found.endpoint.labels) == ("10.1.0.1", ())
        assert not found.endpoint.meshed
        assert ask(World(*objects), AT_POD, 3306).opaque


def test_an_address_changes_hands() -> None:
    world = World(POD)
    pods = []
    for name, said in (("b", {}), ("a", {"deleting": True}), ("a", None)):
        if said is None:
            world.delete(f"pod shop/{name}")
        else:
            world.apply({**POD, "pod": f"shop/{name}", **said})
        found = ask(world, AT_POD).endpoint
        assert found is not None
        pods.append(dict(found.labels).get("pod"))
    assert pods == [None, "b", "b"]  # two contradict each other, then one leaves


def test_a_workload_is_asked_at_its_ports() -> None:
    world = World(
        {"ew": "lab/vm", "ips": ["198.51.100.1"], "ports": [{"port": 8080}], "id": "spiffe://r/v"}
    )
    found = ask(world, AddressHost(LOCAL, "198.51.100.1"))
    assert found.endpoint is not None
    labels = {"external_workload": "vm", "namespace": "lab", "zone": ""}
    assert dict(found.endpoint.labels) == labels
    world.delete("ew lab/vm")
    found = ask(world, AddressHost(LOCAL, "198.51.100.1"))
    assert found.endpoint is not None
    assert found.endpoint.identity is None


def test_an_instance_is_one_endpoint_and_may_go() -> None:
    host = InstanceHost(CART, "a-0")
    eps = [{"ip": "10.1.0.1", "pod": "a", "host": "a-0"}]
    part: Compact = {"slice": "shop/c", "svc": "cart", "ports": [80], "eps": eps}
    world = World(POD, part)
    found = ask(world, host)
    assert found.endpoint is not None
    assert dict(found.endpoint.labels)["pod"] == "a"
    world.delete("slice shop/c")
    assert ask(world, host) == Profile()
    world.apply({**part, "eps": [{"ip": "198.51.100.1", "ew": "gone", "host": "a-0"}]})
    found = ask(world, host)
    assert found.endpoint is not None
    assert (found.endpoint.address, found.endpoint.meshed) == ("198.51.100.1", False)

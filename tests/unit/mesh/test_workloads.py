from __future__ import annotations

from isthmus.ir.names import Dns, Spiffe
from isthmus.ir.proxy import InboundName, ProxyKind
from isthmus.mesh.proxy import proxy_view
from isthmus.mesh.workloads import (
    external_ref,
    known_ports,
    node_of,
    note,
    own_ports,
    pod_ref,
    workload_identity,
)
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

KEY = ObjectKey(LOCAL, "shop", "me")
ME = pod_ref(KEY)
VM = external_ref(ObjectKey(LOCAL, "shop", "vm"))


def me(**said: object) -> Compact:
    base = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
    return {**base, "labels": {"app": "me"}, "node": "n1", **said}


MACHINE: Compact = {
    "ew": "shop/vm",
    "ips": ["192.0.2.1"],
    "ports": [{"port": 9000, "name": "web"}],
    "id": "spiffe://td/vm",
    "sni": "vm",
    "labels": {"app": "me"},
}


def test_ports_are_known_from_containers_services_servers_and_probes() -> None:
    world = World(
        me(
            ports=[{"port": 8080, "name": "web"}, {"port": 70, "init": True}],
            probes=[{"port": 8081, "path": "/"}],
        ),
        {
            "svc": "shop/cart",
            "ports": [{"port": 80, "target": 8082}, {"port": 81, "target": "web"}, 8083],
            "selector": {"app": "me"},
        },
        {"server": "shop/s", "pods": {"app": "me"}, "port": 8084},
        {"server": "shop/t", "pods": {"app": "me"}, "port": "web"},
        {"server": "shop/u", "pods": {"app": "you"}, "port": 9999},
    )
    assert world.db.read(known_ports, ME) == (70, 8080, 8081, 8082, 8083, 8084)


def test_the_sidecars_own_ports_are_not_the_workloads() -> None:
    assert World(me()).db.read(own_ports, ME) == ()


def test_a_workload_knows_its_identity_and_node() -> None:
    world = World(me(), MACHINE)
    identity = "me.shop.serviceaccount.identity.isthmus.trust.mesh.test"
    assert world.db.read(workload_identity, ME) == Dns(identity)
    assert world.db.read(workload_identity, VM) == Spiffe("td", ("vm",))
    assert (world.db.read(node_of, ME), world.db.read(node_of, VM)) == ("n1", "")
    world.apply(me(meshed=False))
    assert world.db.read(workload_identity, ME) is None
    world.delete("pod shop/me", "ew shop/vm")
    assert world.db.read(workload_identity, ME) is None
    assert world.db.read(workload_identity, VM) is None
    assert world.db.read(node_of, ME) == ""


def test_an_annotation_is_the_workloads_or_the_namespaces() -> None:
    world = World({"ns": "shop", "annotations": {"k": "far"}}, me(), MACHINE)
    assert [world.db.read(note, each, "k") for each in (ME, VM)] == ["far", "far"]
    world.apply(me(annotations={"k": ""}))
    assert world.db.read(note, ME, "k") == ""
    world.delete("pod shop/me")
    assert world.db.read(note, ME, "k") is None


def test_a_view_names_what_a_proxy_is_told() -> None:
    world = World({"ns": "shop"}, me(ports=[{"port": 8080}]), MACHINE)
    world.apply({"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]})
    view = world.db.read(proxy_view, ME)
    assert view is not None
    assert view.kind is ProxyKind.SIDECAR
    assert [(each.parent.name, each.port) for each in view.upstreams] == [("cart", 80)]
    assert view.inbounds == (InboundName(ME, 0), InboundName(ME, 8080))
    assert view.scope == ("*/*",)
    other = world.db.read(proxy_view, VM)
    assert other is not None
    assert other.upstreams is view.upstreams
    assert [each.port for each in other.inbounds] == [0, 9000]


def test_there_is_no_view_of_nobody() -> None:
    assert World().db.read(proxy_view, ME) is None

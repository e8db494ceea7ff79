"""Who may open an xDS stream, and when the mesh has heard that a pod leaves."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.app import xds
from isthmus.ca import Account, Realm
from isthmus.calls import Refusal
from isthmus.ir.names import Ref
from isthmus.serve.identity import Heard
from isthmus.serve.xds import Node, Peer, Proxy
from tests.support.compact import document
from tests.support.meshworld import LOCAL, MESH, TRUST, World

REALM = Realm(TRUST, MESH)
POD: dict[str, Any] = {
    "pod": "shop/cart-a", "ip": "10.1.0.1", "sa": "cart", "labels": {"app": "cart"},
    "meshed": True, "proxy": "envoy", "node": "n1",
}  # fmt: skip
SERVICE: dict[str, Any] = {
    "svc": "shop/cart", "ports": [80, 81], "selector": {"app": "cart"},
}  # fmt: skip


def peer(namespace: str, account: str, realm: Realm = REALM) -> Peer:
    of = Account(namespace, account)
    return Peer("ipv4:127.0.0.1:4000", (realm.name(of), realm.uri(of)))


def node(said: str, agent: str = "envoy") -> Node:
    return Node(said, "", "", agent, "", frozenset(), {})


def admit(who: Peer, said: Node, *objects: dict[str, Any]) -> Proxy | Refusal:
    return xds.admission(World(*objects).db, REALM, LOCAL)(who, said)


# ----------------------------------------------------------------------------------- who may come


@pytest.mark.parametrize(("agent", "dialect"), [("envoy", "envoy"), ("gRPC C-core x", "grpc")])
def test_a_workload_s_own_proxy_comes_in(agent: str, dialect: str) -> None:
    found = admit(peer("shop", "cart"), node("shop/cart-a", agent), POD)
    assert isinstance(found, Proxy)
    assert (found.name, found.dialect.name) == ("cart-a.shop", dialect)
    assert found.asker.workload == Ref(LOCAL, "", "Pod", "shop", "cart-a")
    assert found.asker.node == "n1"


def test_a_pod_without_an_account_is_default_s() -> None:
    bare = {**POD, "sa": ""}
    assert isinstance(admit(peer("shop", "default"), node("shop/cart-a"), bare), Proxy)


def test_a_workload_outside_comes_by_the_identity_that_is_written_of_it() -> None:
    who = peer("shop", "till")
    outside = {"ew": "shop/till-1", "ips": ["10.9.0.1"], "id": who.identities[0], "sni": "till"}
    found = admit(who, node("shop/till-1"), outside)
    assert isinstance(found, Proxy)
    assert found.asker.workload.kind == "ExternalWorkload"
    assert isinstance(admit(peer("shop", "cart"), node("shop/till-1"), outside), Refusal)


@pytest.mark.parametrize(
    ("who", "said", "status"),
    [
        (Peer("unix:", ()), "shop/cart-a", "UNAUTHENTICATED"),
        (Peer("unix:", ("somebody.else",)), "shop/cart-a", "UNAUTHENTICATED"),
        (Peer("unix:", (REALM.server_name,)), "shop/cart-a", "UNAUTHENTICATED"),
        (peer("shop", "cart", Realm("other.test", MESH)), "shop/cart-a", "UNAUTHENTICATED"),
        (peer("shop", "till"), "shop/cart-a", "PERMISSION_DENIED"),
        (peer("pay", "cart"), "shop/cart-a", "PERMISSION_DENIED"),
        (peer("shop", "cart"), "shop/cart-b", "PERMISSION_DENIED"),
        (peer("shop", "cart"), "cart-a", "INVALID_ARGUMENT"),
        (peer("shop", "cart"), "shop/cart/a", "INVALID_ARGUMENT"),
        (peer("shop", "cart"), "/", "INVALID_ARGUMENT"),
        (peer("shop", "cart"), "", "INVALID_ARGUMENT"),
    ],
)
def test_nobody_else_does(who: Peer, said: str, status: str) -> None:
    found = admit(who, node(said), POD)
    assert isinstance(found, Refusal)
    assert found.status == status


def host(name: str) -> Peer:
    return Peer("ipv4:127.0.0.1:4000", (REALM.host_uri(name),))


def test_a_node_s_own_envoy_comes_by_the_certificate_of_its_host() -> None:
    found = admit(host("n1"), node("/n1"), {"node": "n1"})
    assert isinstance(found, Proxy)
    assert found.name == "node/n1"
    assert (found.asker.cluster, found.asker.node) == (LOCAL, "n1")


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (host("n1"), "/n2"),
        (host("n1"), "shop/cart-a"),
        (host("n1"), "n1"),
        (host("n2"), "/n2"),
        (Peer("x", (REALM.server_uri(LOCAL),)), "/n1"),
        (peer("shop", "cart"), "/n1"),
    ],
)
def test_nobody_else_is_a_node(who: Peer, said: str) -> None:
    assert isinstance(admit(who, node(said), POD, {"node": "n1"}), Refusal)


# ----------------------------------------------------------------------------------- who has heard


class Held:
    """Streams that have not accepted the newest of some assignments."""

    def __init__(self, **behind: str) -> None:
        self.held = behind

    def behind(self, type_url: str, name: str) -> tuple[str, ...]:
        return tuple(who for who, key in self.held.items() if key == name)


def slice_of(**said: object) -> dict[str, Any]:
    endpoint = {"ip": "10.1.0.1", "pod": "cart-a", **said}
    return {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": [endpoint]}


def ask(held: Held, *objects: dict[str, Any], pod: str = "shop/cart-a") -> dict[str, object]:
    return dict(xds.leaving(World(*objects).db, held, LOCAL)({"pod": pod}))


LEAVES = {**POD, "deleting": True}
HEARD: dict[str, object] = {"known": True, "behind": [], "linger": 0}
SAID = slice_of(ready=False, serving=True, terminating=True)


def test_a_pod_that_stays_is_not_leaving() -> None:
    assert ask(Held(), POD, SERVICE, SAID) == {"known": False, "behind": []}
    assert ask(Held(), pod="shop/nobody") == {"known": False, "behind": []}
    assert ask(Held(), pod="nonsense") == {"known": False, "behind": []}


def test_while_a_slice_says_nothing_of_it_the_mesh_does_not_know() -> None:
    assert ask(Held(), LEAVES, SERVICE, slice_of(ready=True)) == {"known": False, "behind": []}


def test_it_is_known_once_every_slice_says_it_or_has_it_no_more() -> None:
    assert ask(Held(), LEAVES, SERVICE, SAID) == HEARD
    assert ask(Held(), LEAVES, SERVICE) == HEARD
    assert ask(Held(), LEAVES) == HEARD


@pytest.mark.parametrize(
    ("label", "value", "seconds"),
    [("federated", "member", 1), ("exported", "remote-discovery", 1), ("exported", "true", 3)],
)
def test_others_may_use_what_other_clusters_take_over(label: str, value: str, seconds: int) -> None:
    """Through a gateway nobody sees who is behind it: connections there must end first."""
    lent = {**SERVICE, "labels": {f"mirror.linkerd.io/{label}": value}}
    assert ask(Held(), LEAVES, lent, SAID) == {**HEARD, "linger": seconds}


def test_through_a_gateway_connections_last_a_little_longer() -> None:
    notes = {"config.linkerd.io/enable-gateway": "true"}
    assert ask(Held(), {**LEAVES, "annotations": notes}) == {**HEARD, "linger": 3}


@pytest.mark.parametrize("front", ["", "priority-0.", "tcp~", "tcp~priority-0."])
def test_who_sends_to_it_as_a_member_of_a_federated_service_is_asked_too(front: str) -> None:
    notes = {
        "multicluster.linkerd.io/local-discovery": "cart",
        "multicluster.linkerd.io/remote-discovery": "cart@east,cart@west",
        "multicluster.isthmus.dev/member.west": "priority=1",
    }
    whole = {"svc": "shop/cart-federated", "ports": [81], "annotations": notes}
    key = f"{front}p81.cart-federated.shop.{LOCAL}.internal.{TRUST}"
    assert ask(Held(face=key), LEAVES, SERVICE, SAID, whole) == {**HEARD, "behind": ["face"]}


@pytest.mark.parametrize("variant", ["", "tcp~", "plain~", "sni~"])
def test_who_has_not_accepted_it_is_behind(variant: str) -> None:
    key = f"{variant}p81.cart.shop.{LOCAL}.internal.{TRUST}"
    held = Held(face=key, till=f"p81.other.shop.{LOCAL}.internal.{TRUST}")
    assert ask(held, LEAVES, SERVICE, SAID) == {**HEARD, "behind": ["face"]}


# ------------------------------------------------------------------------- outside the cluster

OUTSIDE = {"ew": "shop/till-1", "ips": ["10.9.0.1"], "labels": {"app": "cart"}}


def outside(held: Held, *slices: dict[str, Any], leaves: str = "True") -> Heard:
    world = World(SERVICE, OUTSIDE, *slices)
    written = document(OUTSIDE, MESH)
    written["status"] = {"conditions": [{"type": "isthmus.dev/Leaving", "status": leaves}]}
    world.write("ew shop/till-1", written)
    return xds.leaving_outside(world.db, held, LOCAL)("shop/till-1")


def slice_outside(**said: object) -> dict[str, Any]:
    endpoint = {"ip": "10.9.0.1", "ew": "till-1", **said}
    return {"slice": "shop/cart-x", "svc": "cart", "ports": [80], "eps": [endpoint]}


def test_a_workload_outside_leaves_when_its_agent_says_so() -> None:
    assert outside(Held(), leaves="False") == Heard(known=False, behind=())
    assert outside(Held()) == Heard(known=True, behind=())
    key = f"p80.cart.shop.{LOCAL}.internal.{TRUST}"
    assert outside(Held(face=key)) == Heard(known=True, behind=("face",))
    assert outside(Held(), slice_outside()) == Heard(known=False, behind=())
    said = slice_outside(ready=False, serving=True, terminating=True)
    assert outside(Held(), said) == Heard(known=True, behind=())

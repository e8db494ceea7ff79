from __future__ import annotations

from isthmus.ir.names import Dns, TargetId
from isthmus.ir.target import To
from isthmus.mesh.asked import GetKey
from isthmus.mesh.backends import service_backends
from isthmus.mesh.federation import share_problems, shares
from isthmus.mesh.sets import sets
from isthmus.mesh.targets import target, target_id, target_named
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, TRUST, World

CART = ObjectKey(LOCAL, "shop", "cart-federated")
KEY = "multicluster.isthmus.dev/member."
MEMBERS = {
    "multicluster.linkerd.io/local-discovery": "cart",
    "multicluster.linkerd.io/remote-discovery": "cart@east,cart@west",
}


def federated(**shares: str) -> Compact:
    notes = MEMBERS | {f"{KEY}{name}": said for name, said in shares.items()}
    return {"svc": "shop/cart-federated", "ip": "10.96.0.9", "ports": [80], "annotations": notes}


def member(cluster: str, at: int, *, ready: bool = True) -> list[Compact]:
    where = {} if cluster == LOCAL else {"in": cluster}
    ip = f"10.{at}.0.1"
    eps = [{"ip": ip, "pod": "a", "ready": ready}]
    ours = {"meshed": True, "proxy": "envoy", "sa": "cart"}
    return [
        {"svc": "shop/cart", "ports": [80], **where},
        {"pod": "shop/a", "ip": ip, **ours, **where},
        {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": eps, **where},
    ]


def link(name: str, trust: str = TRUST) -> Compact:
    return {"link": name, "trust": trust, "domain": "mesh.test"}


def world(*more: Compact, **shares: str) -> World:
    members = [*member(LOCAL, 1), *member("east", 2), *member("west", 3)]
    return World(federated(**shares), link("east"), link("west"), *members, *more)


def groups(said: World) -> list[list[tuple[str, str, int]]]:
    """By priority: each portion's name, its clusters, its weight."""
    return [
        [(one.subset, " ".join(m.cluster for m in one.members), one.weight) for one in group]
        for group in said.db.read(shares, CART).groups
    ]


def backends(said: World) -> tuple[To, ...]:
    return said.db.read(service_backends, CART, 80)


def shown(said: World) -> list[tuple[str, int, list[str]]]:
    """Each backend: its part, its weight, what it falls back to."""
    return [
        (one.target.id.subset, one.weight, [each.id.subset for each in one.failover])
        for one in backends(said)
    ]


def problems(said: World) -> list[str]:
    return [f"{one.key.removeprefix(KEY)}: {one.why}" for one in said.db.read(share_problems, CART)]


def asked(said: World, instance: str = "") -> list[str]:
    return [one.service.cluster for one in said.db.read(sets, GetKey(CART, 80, instance, ""))]


def test_without_annotations_all_endpoints_are_one_target() -> None:
    said = world()
    assert groups(said) == []
    (one,) = backends(said)
    assert (one.target.id, one.failover) == (target_id(CART, 80), ())
    assert asked(said) == [LOCAL, "east", "west"]
    assert one.target.remote
    assert not one.target.foreign


def test_weights_make_a_target_of_each_member_and_the_others_take_over() -> None:
    said = world(east="weight=3", local="weight=1")
    assert groups(said) == [
        [("member-east", "east", 3), (f"member-{LOCAL}", LOCAL, 1), ("member-west", "west", 1)]
    ]
    here, west = f"member-{LOCAL}", "member-west"
    assert shown(said) == [
        ("member-east", 3, [here, west]),
        (here, 1, [west, "member-east"]),
        (west, 1, ["member-east", here]),
    ]


def test_a_priority_without_weights_is_one_target_in_which_endpoints_count() -> None:
    said = world(local="priority=1")
    assert groups(said) == [
        [("priority-0", "east west", 1)],
        [(f"member-{LOCAL}", LOCAL, 1)],
    ]
    assert shown(said) == [("priority-0", 1, [f"member-{LOCAL}"])]


def test_shares_of_several_fall_on_different_ones_of_the_next_priority() -> None:
    more = {"multicluster.linkerd.io/remote-discovery": "cart@a,cart@b,cart@c,cart@d"}
    said = World(
        {
            "svc": "shop/cart-federated", "ports": [80],
            "annotations": more | {
                f"{KEY}a": "weight=2", f"{KEY}b": "weight=1",
                f"{KEY}c": "priority=4, weight=1", f"{KEY}d": "priority=4",
            },
        }
    )  # fmt: skip
    a, b, c, d = (f"member-{each}" for each in "abcd")
    assert shown(said) == [(a, 2, [b, c, d]), (b, 1, [a, d, c])]


def test_one_that_drains_gets_nothing_and_its_weight_waits() -> None:
    said = world(east="drain, weight=9")
    assert groups(said) == [[("priority-0", f"{LOCAL} west", 1)]]
    assert asked(said) == [LOCAL, "west"]
    assert problems(said) == []


def test_if_all_drain_none_does() -> None:
    said = world(east="drain", west="drain", local="drain")
    assert groups(said) == []
    assert problems(said) == ["local: every member drains, so none does"]


def test_the_local_member_has_two_names() -> None:
    assert groups(world(here="drain")) == groups(world(local="drain"))
    said = world(here="drain", local="weight=2")
    assert groups(said) == [[("priority-0", "east west", 1)]]
    assert problems(said) == ["local: the local member is spoken of as here too"]


def test_what_is_wrong_is_told_and_spoils_nothing_else() -> None:
    said = world(east="weight=none", nowhere="drain", west="priority=1")
    assert groups(said) == [
        [("priority-0", f"{LOCAL} east", 1)], [("member-west", "west", 1)]
    ]  # fmt: skip
    assert problems(said) == [
        "east: weight must be a whole number from 1 to 10000; to give nothing write drain",
        "nowhere: no member is of a cluster nowhere",
    ]


def test_shares_say_nothing_of_a_service_that_is_not_federated() -> None:
    plain = {"svc": "shop/cart-federated", "ports": [80], "annotations": {f"{KEY}east": "drain"}}
    said = World(plain)
    assert groups(said) == []
    assert problems(said) == []


def test_who_cannot_choose_gets_the_first_that_have_somebody() -> None:
    said = world(east="priority=1", west="priority=2")
    assert asked(said) == [LOCAL]
    said.apply(*member(LOCAL, 1, ready=False))
    assert asked(said) == ["east"]
    said.apply({**link("east"), "dead": True})
    assert asked(said) == ["west"]
    said.apply(*member("west", 3, ready=False))
    assert asked(said) == ["west"]
    said.apply(*member(LOCAL, 1))
    assert asked(said) == [LOCAL]


def test_a_part_has_a_name_by_which_it_is_asked_for() -> None:
    said = world(east="weight=3", west="priority=1")
    assert asked(said, "member-east") == ["east"]
    assert asked(said, "member-west") == ["west"]
    found = said.db.read(target, TargetId(LOCAL, "shop", "cart-federated", 80, "member-east"))
    assert found.authority == "member-east.cart-federated.shop.svc.mesh.test:80"
    key = f"member-east.p80.cart-federated.shop.here.internal.{TRUST}"
    assert said.db.read(target_named, key) == found.id
    assert said.db.read(target_named, key.replace("east", "north")) is None
    said.apply(federated())
    assert said.db.read(target_named, key) is None


def test_a_linkerd2_proxy_resolves_a_part_by_its_name() -> None:
    said = world(east="weight=3", west="priority=1")
    whole = "cart-federated.shop.svc.mesh.test:80"
    assert said.get(f"member-east.{whole}").keys() == {("10.2.0.1", 80)}
    assert said.get(f"member-west.{whole}").keys() == {("10.3.0.1", 80)}
    assert said.get(whole).keys() == {("10.1.0.1", 80), ("10.2.0.1", 80)}
    assert said.get(f"member-nowhere.{whole}") == {}


def test_endpoints_of_other_clusters_say_which() -> None:
    found = world().get("cart-federated.shop.svc.mesh.test:80")
    homes = {ip: labels.get("target_cluster") for (ip, _), (labels, _) in found.items()}
    assert homes == {"10.1.0.1": None, "10.2.0.1": "east", "10.3.0.1": "west"}


def test_a_part_is_answered_by_its_own_members_only() -> None:
    said = world(link("east", "east.test"), east="priority=1")
    identity = "cart.shop.serviceaccount.identity.isthmus"
    (one,) = backends(said)
    assert one.target.peers == {Dns(f"{identity}.{TRUST}")}
    (other,) = one.failover
    assert other.peers == {Dns(f"{identity}.east.test")}
    assert (one.target.foreign, other.foreign) == (False, True)


def test_a_cluster_that_is_dead_may_still_answer_when_it_comes_back() -> None:
    """Or clients would forget their connections each time."""
    said = world()
    before = backends(said)
    said.apply({**link("east"), "dead": True})
    assert asked(said) == [LOCAL, "west"]
    assert backends(said) is before


def test_a_linked_mesh_may_have_its_control_plane_in_another_namespace() -> None:
    ours = {"pod": "shop/a", "ip": "10.2.0.1", "meshed": "other", "proxy": "envoy", "sa": "cart"}
    said = World(
        federated(), *member("east", 2), {**ours, "in": "east"}, {**link("east"), "mesh": "other"}
    )
    (one,) = backends(said)
    assert one.target.peers == {Dns(f"cart.shop.serviceaccount.identity.other.{TRUST}")}


def test_names_of_clusters_may_have_dots() -> None:
    notes = {
        "multicluster.linkerd.io/remote-discovery": "cart@a.b,cart@c",
        f"{KEY}a.b": "weight=2",
    }
    said = World({"svc": "shop/cart-federated", "ports": [80], "annotations": notes})
    first, _ = backends(said)
    key = first.target.id.key(TRUST)
    assert key.startswith("member-a--b.p80.")
    assert said.db.read(target_named, key) == first.target.id

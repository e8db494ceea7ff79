"""Histories of objects against what statuses say of them, and what carried policies become.

Whatever was applied and deleted in whatever order: what a long watch holds is what is computed from
scratch. What is said is bounded, and at rest once it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isthmus.app.policy import DIALECTS
from isthmus.controllers import carried, policy_status, routes_status
from isthmus.controllers.settings import SETTINGS, Settings
from isthmus.engine import Put
from isthmus.ir.names import Ref
from isthmus.mesh.carried import fates
from isthmus.mesh.census import CensusKey
from isthmus.mesh.spoken import spoken
from isthmus.model.annotations.keys import ACCEPT_POLICIES, CARRY
from isthmus.model.key import ObjectKey
from tests.support.compact import Document, Name, document, name_in
from tests.support.meshworld import LOCAL, World

Cell = tuple[Any, ...]
POLICY = "policy.linkerd.io"
GATEWAY = "gateway.networking.k8s.io"
FEDERATED = {"mirror.linkerd.io/federated": "member"}
MIRROR = {"mirror.linkerd.io/mirrored-service": "true", "mirror.linkerd.io/cluster-name": "east"}
FQ_NAME = "mirror.linkerd.io/remote-svc-fq-name"
REWRITE = {"type": "URLRewrite", "urlRewrite": {"hostname": "o.example"}}
LINK = Name(None, "links.multicluster.linkerd.io", "mc", "east")


def link(**notes: str) -> Document:
    spec = {
        "targetClusterName": "east",
        "federatedServiceSelector": {"matchLabels": FEDERATED},
    }
    return {"metadata": {"name": "east", "namespace": "mc", "annotations": notes}, "spec": spec}


def policy(name: str, target: str, kind: str = "Service", *needs: str, **notes: str) -> Document:
    group = "" if kind == "Service" else POLICY
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": f"az-{name}", "annotations": notes},
        "spec": {
            "targetRef": {"group": group, "kind": kind, "name": target},
            "requiredAuthenticationRefs": [
                {"group": POLICY, "kind": "MeshTLSAuthentication", "name": one} for one in needs
            ],
        },
    }


VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "ns shop": ({},),
    "svc shop/cart": (
        {"ip": "10.96.0.1", "ports": [80, 81], "selector": {"app": "cart"}, "labels": FEDERATED},
        {
            "ip": "10.96.0.1",
            "ports": [80],
            "selector": {"app": "cart"},
            "labels": FEDERATED,
            "annotations": {ACCEPT_POLICIES: "east"},
        },
        {"ip": "None", "ports": [80]},
    ),
    "svc shop/cart-east": (
        {
            "ip": "10.96.0.2",
            "ports": [80],
            "labels": MIRROR,
            "annotations": {FQ_NAME: "cart.shop.svc.mesh.test"},
        },
    ),
    "east: svc shop/cart": (
        {"ip": "10.97.0.1", "ports": [80], "labels": FEDERATED},
        {
            "ip": "10.97.0.1",
            "ports": [80],
            "labels": FEDERATED,
            "annotations": {ACCEPT_POLICIES: f"{LOCAL},x"},
        },
    ),
    "east: svc shop/cart-here": (
        {
            "ip": "10.97.0.2",
            "ports": [80],
            "labels": {**MIRROR, "mirror.linkerd.io/cluster-name": LOCAL},
            "annotations": {FQ_NAME: "cart.shop.svc.mesh.test"},
        },
    ),
    "pod shop/cart-1": (
        {"ip": "10.1.0.1", "meshed": True, "labels": {"app": "cart"}},
        {"ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "labels": {"app": "cart"}},
    ),
    "server shop/cart": (
        {"pods": {"app": "cart"}, "port": 80},
        {"pods": {"app": "none"}, "port": 80},
    ),
    "mtls shop/m": ({"ids": ["*"]}, {"ids": ["No."]}),
    "route shop/r": (
        {"service": "cart", "port": 80, "rules": [{"filters": [REWRITE]}]},
        {"service": "cart-east", "rules": [{}]},
        {"egress": "away", "port": 80, "rules": [{}]},
    ),
    "groute shop/g": ({"service": "cart", "port": 80, "rules": [{}]},),
    "egress shop/away": ({}, {"networks": ["10.0.0.0/8"]}),
    "hr shop/on": ({"for": "cart", "rules": [{"filters": [REWRITE]}]}, {"for": "gone"}),
    "limit shop/l": ({"for": "cart", "total": 5}, {"for": "gone", "total": 5}),
}
RAW: Mapping[str, Sequence[Document]] = {
    "link": (link(), link(**{ACCEPT_POLICIES: "true"})),
    "az shop/p": (
        policy("p", "cart-federated", **{CARRY: "true"}),
        policy("p", "cart-east", "Service", "m", **{CARRY: "true"}),
        policy("p", "cart", "Server", "m"),
    ),
    "east: az shop/p": (
        policy("p", "cart-federated", **{CARRY: "true"}),
        policy("p", "cart-here", "Service", "gone", **{CARRY: "true"}),
        policy("p", "cart-federated"),
    ),
}

Step = tuple[str, int | None]


def applied(name: str) -> st.SearchStrategy[Step]:
    many = len(RAW[name] if name in RAW else VARIANTS.get(name, ("up",)))
    return st.tuples(st.just(name), st.integers(0, many - 1))


NAMES = sorted({*VARIANTS, *RAW, "east up"})
STEP = st.sampled_from(NAMES).flatmap(
    lambda name: st.one_of(applied(name), applied(name), st.just((name, None)))
)
DENSE = st.tuples(*map(applied, NAMES)).flatmap(st.permutations)
STEPS = st.builds(lambda dense, more: [*dense, *more], DENSE, st.lists(STEP, max_size=10))


def world() -> World:
    held = World(cluster_networks=("10.0.0.0/8",))
    held.db.commit([Put(SETTINGS, LOCAL, Settings("isthmus", "PEM", dialects=DIALECTS))])
    return held


def take(held: World, step: Step) -> None:
    name, variant = step
    if name == "east up":
        held.link("east", "" if variant is None else "east.test", "mesh.test")
        return
    where = LINK if name == "link" else name_in(name)
    if variant is None:
        held.remove(where)
    elif name in RAW:
        held.write(where, RAW[name][variant])
    else:
        cluster, _, rest = name.rpartition(": ")
        kind, _, path = rest.partition(" ")
        compact = {kind: path, **VARIANTS[name][variant]}
        held.write(where, document(compact | ({"in": cluster} if cluster else {}), "isthmus"))


def fresh(steps: Sequence[Step], order: Random | None = None) -> World:
    found = [step for step in dict(steps).items() if step[1] is not None]
    if order is not None:
        order.shuffle(found)
    held = world()
    for step in found:
        take(held, step)
    return held


def key(name: str, cluster: str = LOCAL) -> ObjectKey:
    return ObjectKey(cluster, "shop", name)


ROUTES = (
    Ref(LOCAL, GATEWAY, "HTTPRoute", "shop", "r"),
    Ref(LOCAL, GATEWAY, "HTTPRoute", "shop", "on"),
    Ref(LOCAL, GATEWAY, "GRPCRoute", "shop", "g"),
)
POLICIES = (
    ("authorizationpolicies", "p"),
    ("servers", "cart"),
    ("meshtlsauthentications", "m"),
    ("egressnetworks", "away"),
    ("httplocalratelimitpolicies", "l"),
)


def cells() -> Iterator[Cell]:
    yield spoken, LOCAL
    yield carried.wanted, key("cart")
    yield fates, key("p")
    for route in ROUTES:
        yield routes_status.entries, route
    for plural, name in POLICIES:
        yield policy_status.conditions, CensusKey(LOCAL, f"{plural}.{POLICY}", "shop", name)


def everything(held: World) -> dict[Cell, object]:
    return {cell: held.db.read(*cell) for cell in cells()}


@given(STEPS)
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step]) -> None:
    held = world()
    values: dict[object, object] = {}
    with held.db.watch(lambda: None) as watch:
        for cell in cells():
            watch.add(*cell)
        for step in steps:
            take(held, step)
            values |= watch.take()
        assert not watch.failed()
    other = fresh(steps)
    for address, value in values.items():
        assert isinstance(address, tuple)
        assert value == other.db.read(*address), address


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(steps: list[Step], order: Random) -> None:
    assert everything(fresh(steps)) == everything(fresh(steps, order))


@given(STEPS)
def test_nobody_outside_opens_what_was_not_opened_to_them(steps: list[Step]) -> None:
    """Of east's policies nothing comes in unless the Service and the Link both let it."""
    there = dict(steps)
    accepts = there.get("svc shop/cart") == 1 and there.get("link") == 1
    found = fresh(steps).db.read(carried.wanted, key("cart"))
    foreign = [one for one in found if any(text.startswith("east/") for text in one.notes.values())]
    assert accepts or not foreign


@given(STEPS)
def test_messages_are_bounded_and_types_stand_once(steps: list[Step]) -> None:
    held = fresh(steps)
    for plural, name in POLICIES:
        at = CensusKey(LOCAL, f"{plural}.{POLICY}", "shop", name)
        said = held.db.read(policy_status.conditions, at)
        assert len({one.type for one in said}) == len(said)
        assert all(len(one.message) <= 32_768 and one.reason for one in said)


def test_a_policy_of_east_comes_in_where_all_three_agree() -> None:
    agreed = {"svc shop/cart": 1, "link": 1, "east: az shop/p": 0, "east up": 0}
    found = fresh(list(agreed.items())).db.read(carried.wanted, key("cart"))
    kinds = [one.resource.partition(".")[0] for one in found]
    assert kinds == ["servers", "authorizationpolicies"]
    for lacking in agreed:
        steps = [(name, at) for name, at in agreed.items() if name != lacking]
        assert fresh(steps).db.read(carried.wanted, key("cart")) == () or lacking == "east up"

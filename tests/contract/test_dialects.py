"""What the xDS surface asks of every dialect: one suite over Envoy's and gRPC's.

The surface's Protocols are checked by the type checker here, since neither room may import the
other; what Protocols cannot say is checked by running.
"""

from __future__ import annotations

from typing import Any

import pytest
from envoy.service.discovery.v3 import discovery_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects import envoy, grpc
from isthmus.dialects.grpc.servers import TEMPLATE
from isthmus.proto.xds import CLUSTER, ENDPOINTS, LISTENER, ROUTES, Resource
from isthmus.serve.xds.contract import Dialect
from isthmus.serve.xds.contract import Resource as ResourceContract
from isthmus.serve.xds.contract import View as ViewContract
from tests.support.envoys import pod
from tests.support.meshworld import DOMAIN, World

ME = pod("shop/me")
TYPES = (CLUSTER, ENDPOINTS, LISTENER, ROUTES)
DIALECTS: list[tuple[Dialect, Any]] = [
    (envoy.EnvoyDialect(), envoy.Asker(ME, "n1")),
    (grpc.GrpcDialect(), grpc.Asker(ME, "n1")),
]
EACH = pytest.mark.parametrize(
    ("dialect", "asker"), DIALECTS, ids=[dialect.name for dialect, _ in DIALECTS]
)
A = {"ip": "10.1.0.1", "pod": "a"}
KEY = "p80.cart.shop.here.internal.trust.mesh.test"


def world() -> World:
    return World(
        {"ns": "shop"},
        {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80, 3306]},
        {"svc": "shop/db", "ip": "None", "ports": [5432]},
        {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"},
        {"pod": "shop/a", "ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "cart"},
        {"slice": "shop/cart-1", "svc": "cart", "ports": [80], "eps": [A]},
        {"slice": "shop/db-1", "svc": "db", "ports": [8080], "eps": [A]},
    )  # fmt: skip


def view_of(held: World, dialect: Dialect, asker: object) -> ViewContract:
    found: ViewContract | None = held.db.read(*dialect.view_query(asker))
    assert found is not None
    return found


def names_of(view: ViewContract, type_url: str) -> tuple[str, ...]:
    """The names in sight; for a dialect that tells whatever is asked for, some that there are."""
    names = view.types[type_url]
    if names is not None:
        return names
    authorities = ("cart.shop:80", f"cart.shop.svc.{DOMAIN}:80")
    server = f"{TEMPLATE}0.0.0.0:8080"
    some = {LISTENER: (*authorities, server), ROUTES: authorities}
    return some.get(type_url, (KEY,))


def found(
    held: World, dialect: Dialect, asker: object, type_url: str, name: str
) -> Resource | None:
    cell = dialect.resource_query(asker, type_url, name)
    value: Resource | None = held.db.read(*cell) if cell is not None else None
    return value


@EACH
def test_every_name_in_sight_leads_to_a_resource_of_that_name(
    dialect: Dialect, asker: object
) -> None:
    held = world()
    view = view_of(held, dialect, asker)
    assert set(view.types) == set(TYPES)
    for type_url in TYPES:
        names = names_of(view, type_url)
        assert names
        for name in names:
            one = found(held, dialect, asker, type_url, name)
            assert one is not None, name
            meets: ResourceContract = one
            assert meets.name == name
            assert meets.version


@EACH
def test_names_in_sight_are_sorted_and_each_there_once(dialect: Dialect, asker: object) -> None:
    for names in view_of(world(), dialect, asker).types.values():
        assert names is None or list(names) == sorted(set(names))


@EACH
def test_chunks_are_the_field_of_both_kinds_of_responses(dialect: Dialect, asker: object) -> None:
    held = world()
    view = view_of(held, dialect, asker)
    for type_url in TYPES:
        for name in names_of(view, type_url):
            one = found(held, dialect, asker, type_url, name)
            assert one is not None
            delta = pb.DeltaDiscoveryResponse.FromString(one.chunk)
            whole = pb.DiscoveryResponse.FromString(one.any_chunk)
            assert [each.name for each in delta.resources] == [name]
            assert delta.resources[0].version == one.version
            assert delta.resources[0].resource == whole.resources[0]
            assert whole.resources[0].type_url == type_url
            assert whole.resources[0].value == one.value


@EACH
def test_what_is_sent_to_is_in_sight(dialect: Dialect, asker: object) -> None:
    held = world()
    view = view_of(held, dialect, asker)
    for type_url in (LISTENER, ROUTES):
        for name in names_of(view, type_url):
            one = found(held, dialect, asker, type_url, name)
            assert one is not None
            assert one.clusters is not None
            assert set(one.clusters) <= set(names_of(view, CLUSTER))


@EACH
def test_a_cluster_with_endpoints_to_come_has_an_assignment(
    dialect: Dialect, asker: object
) -> None:
    held = World({"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]})
    one = found(held, dialect, asker, ENDPOINTS, KEY)
    assert one is not None
    assert one.name == KEY


@EACH
def test_equal_content_has_an_equal_version_in_another_process(
    dialect: Dialect, asker: object
) -> None:
    one, other = world(), world()
    view = view_of(one, dialect, asker)
    for type_url in TYPES:
        for name in names_of(view, type_url):
            assert found(one, dialect, asker, type_url, name) == found(
                other, dialect, asker, type_url, name
            )


@EACH
def test_nobody_is_told_of_a_workload_that_is_not_there(dialect: Dialect, asker: object) -> None:
    held = world()
    held.delete("pod shop/me")
    assert held.db.read(*dialect.view_query(asker)) is None


NAMES = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"(svc|ip|refuse|in|probe|direct|failover|tcp~p80|p\d+)[|.~:/0-9a-z]{0,30}"),
    st.sampled_from(
        [
            "",
            "|",
            "in|-1",
            "in|65536",
            "in|08",
            "svc|shop/cart",
            "svc|/cart:80",
            "svc|shop/cart:99999999999999999999",
            "ip|10.1.0.1|",
            "p80.cart.shop.here.internal.",
            "px.cart.shop.here.internal.td",
            ".internal.td",
            "failover|",
            "failover|p80.cart.shop.here.internal.td|x",
            f"failover|{KEY}|{KEY}",
            f"tcp~{KEY}",
            f"plain~{KEY}",
            f"other~{KEY}",
            f"~{KEY}",
            f"v1.{KEY}",
            "p080.cart.shop.here.internal.trust.mesh.test",
            "p80.cart.shop.here.internal.td",
            "grpc/server?xds.resource.listening_address=",
            "grpc/server?xds.resource.listening_address=:0",
            "p80.cart.shop.here.internal." + "t" * 3000,
            "cart.shop:0",
            "cart.shop:port",
        ]
    ),
)


@EACH
@given(name=NAMES, type_url=st.sampled_from((*TYPES, "type.googleapis.com/other")))
def test_names_that_nobody_gave_are_harmless(
    dialect: Dialect, asker: object, name: str, type_url: str
) -> None:
    one = found(HELD, dialect, asker, type_url, name)
    assert one is None or one.name == name


HELD = world()

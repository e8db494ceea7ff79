"""What a proxy rejects stands on the object to blame, until it is taken."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.app.policy import DIALECTS
from isthmus.controllers.settings import SETTINGS, Settings
from isthmus.engine import Delete, Put
from isthmus.mesh import settings as mesh_settings
from isthmus.mesh.census import CensusKey
from isthmus.mesh.rejections import REJECTIONS, Rejection
from isthmus.mesh.settings import WHOLE, MeshSettings
from tests.support.controlled import CLUSTER, Cluster

pytestmark = pytest.mark.anyio

CART = CensusKey(CLUSTER, "services", "shop", "cart")
BAD = Rejection("Cluster", "p80.cart", "timeout must be above zero", ("a.shop", "b.shop"))


@pytest.fixture
async def cart(cluster: Cluster) -> Cluster:
    """A Service."""
    spec = {"ports": [{"port": 80}]}
    meta = {"name": "cart", "namespace": "shop"}
    await cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    await cluster.settle()
    return cluster


async def said(cluster: Cluster) -> list[dict[str, Any]]:
    document = await cluster.get("services", "cart")
    assert document is not None
    found: list[dict[str, Any]] = document.get("status", {}).get("conditions", [])
    return found


async def rejected(cluster: Cluster, *found: Rejection) -> dict[str, Any]:
    change = Put(REJECTIONS, CART, found) if found else Delete(REJECTIONS, CART)
    cluster.db.commit([change])
    await cluster.settle()
    [one] = await said(cluster)
    return one


async def test_nothing_is_said_where_nothing_was_rejected(cart: Cluster) -> None:
    assert await said(cart) == []


async def test_the_proxy_s_words_stand_in_the_status_of_the_guilty(cart: Cluster) -> None:
    one = await rejected(cart, BAD)
    assert (one["type"], one["status"], one["reason"]) == (
        "isthmus.dev/ProxyRejected", "True", "Rejected",
    )  # fmt: skip
    assert one["message"] == (
        "Cluster p80.cart: timeout must be above zero (proxy a.shop, b.shop);"
        " the version before stays in use"
    )


async def test_many_are_counted(cart: Cluster) -> None:
    proxies = tuple(f"p{number}" for number in range(6))
    many = tuple(Rejection("Listener", f"l{n}", "no", proxies) for n in range(7))
    one = await rejected(cart, *many)
    assert "Listener l3: no (proxy p0, p1, p2, p3 and 2 more) and 3 more; " in one["message"]
    assert "l4" not in one["message"]


async def test_it_is_taken_back_once_proxies_accept(cart: Cluster) -> None:
    await rejected(cart, BAD)
    one = await rejected(cart)
    assert (one["status"], one["reason"]) == ("False", "Accepted")
    before = await said(cart)
    await cart.settle()
    assert await said(cart) == before


async def test_what_an_earlier_process_said_is_taken_back(cart: Cluster) -> None:
    left = {"type": "isthmus.dev/ProxyRejected", "status": "True", "reason": "x", "message": "y"}
    await cart.update("services", "cart", {"status": {"conditions": [left]}}, status=True)
    await cart.settle()
    [one] = await said(cart)
    assert one["status"] == "False"


async def test_other_conditions_stay(cart: Cluster) -> None:
    other = {"type": "LoadBalancerReady", "status": "True", "reason": "x", "message": "y"}
    await cart.update("services", "cart", {"status": {"conditions": [other]}}, status=True)
    cart.db.commit([Put(REJECTIONS, CART, (BAD,))])
    await cart.settle()
    assert {one["type"] for one in await said(cart)} == {
        "LoadBalancerReady", "isthmus.dev/ProxyRejected",
    }  # fmt: skip


async def test_an_object_that_is_gone_is_nobody_s(cart: Cluster) -> None:
    cart.db.commit([Put(REJECTIONS, CART._replace(name="gone"), (BAD,))])
    await cart.settle()
    assert await said(cart) == []


async def test_a_route_says_so_beside_what_it_says_of_its_parents(cart: Cluster) -> None:
    mesh = MeshSettings(cluster=CLUSTER, control_plane_namespace="linkerd")
    own = Settings("linkerd", "PEM", dialects=DIALECTS)
    cart.db.commit([Put(mesh_settings.SETTINGS, WHOLE, mesh), Put(SETTINGS, CLUSTER, own)])
    parents = [{"group": "", "kind": "Service", "name": "cart", "port": 80}]
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "shop"},
        "spec": {"parentRefs": parents, "rules": [{"backendRefs": [{"name": "cart", "port": 80}]}]},
    }
    await cart.create(route)
    await cart.settle()
    resource = "httproutes.gateway.networking.k8s.io"
    cart.db.commit([Put(REJECTIONS, CensusKey(CLUSTER, resource, "shop", "r"), (BAD,))])
    await cart.settle()
    document = await cart.get(resource, "r")
    assert document is not None
    [one] = document["status"]["conditions"]
    assert (one["type"], one["status"]) == ("isthmus.dev/ProxyRejected", "True")
    assert [each["parentRef"]["name"] for each in document["status"]["parents"]] == ["cart"]

from __future__ import annotations

from typing import Any

import pytest

from isthmus.controllers.settings import SETTINGS, Settings
from isthmus.dialects import linkerd
from isthmus.engine import Put
from isthmus.mesh import settings as mesh_settings
from isthmus.mesh.settings import WHOLE, MeshSettings
from isthmus.model.serviceprofile import GROUP
from tests.support.controlled import CLUSTER, Cluster, key

pytestmark = pytest.mark.anyio

RESOURCE = f"serviceprofiles.{GROUP}"
NAME = "cart.shop.svc.cluster.local"
OK: dict[str, Any] = {"name": "ok", "condition": {"method": "GET"}}
BAD: dict[str, Any] = {"name": "bad", "condition": {"pathRegex": "("}}


@pytest.fixture(autouse=True)
def meshed(cluster: Cluster) -> None:
    """The cluster is the mesh's own."""
    cluster.db.commit([Put(mesh_settings.SETTINGS, WHOLE, MeshSettings(cluster=CLUSTER))])


async def profile(cluster: Cluster, *routes: dict[str, Any], name: str = NAME, **spec: Any) -> None:  # noqa: ANN401 - JSON
    await cluster.create(
        {
            "apiVersion": f"{GROUP}/v1alpha2",
            "kind": "ServiceProfile",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"routes": routes, **spec},
        }
    )
    await cluster.settle()


async def service(cluster: Cluster, name: str = "cart") -> None:
    await cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"ports": [{"port": 80}]},
        }
    )
    await cluster.settle()


async def conditions(cluster: Cluster, name: str = NAME) -> dict[str, dict[str, Any]]:
    document = await cluster.get(RESOURCE, name)
    assert document is not None
    return {each["type"]: each for each in document["status"]["conditions"]}


async def said(cluster: Cluster, name: str = NAME) -> dict[str, tuple[str, str]]:
    found = await conditions(cluster, name)
    return {kind: (each["status"], each["reason"]) for kind, each in found.items()}


async def test_a_sound_profile_is_accepted(cluster: Cluster) -> None:
    await service(cluster)
    await profile(cluster, OK)
    assert await said(cluster) == {
        "Accepted": ("True", "Accepted"),
        "ResolvedRefs": ("True", "ResolvedRefs"),
        "Supported": ("True", "Supported"),
    }


async def test_what_means_nothing_is_named_with_its_route(cluster: Cluster) -> None:
    await service(cluster)
    await profile(cluster, OK, BAD, {**OK, "name": "odd", "strange": 1})
    accepted = (await conditions(cluster))["Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
    assert "spec.routes[1].condition.pathRegex (route 'bad'): " in accepted["message"]
    assert "spec.routes[2].strange (route 'odd'): unknown field" in accepted["message"]
    assert accepted["message"].endswith("the rest is served")


async def test_a_message_stays_short(cluster: Cluster) -> None:
    await profile(cluster, *[BAD] * 40)
    message = (await conditions(cluster))["Accepted"]["message"]
    assert "and 24 more" in message
    assert "routes[16]" not in message


async def test_the_time_moves_with_the_status_alone(cluster: Cluster) -> None:
    await service(cluster)
    await profile(cluster, OK)
    first = (await conditions(cluster))["Accepted"]
    assert first["observedGeneration"] == 1
    cluster.clock.advance(60)
    await cluster.update(RESOURCE, NAME, {"spec": {"routes": [{**OK, "isRetryable": True}]}})
    await cluster.settle()
    second = (await conditions(cluster))["Accepted"]
    assert second == {**first, "observedGeneration": 2}
    cluster.clock.advance(60)
    await cluster.update(RESOURCE, NAME, {"spec": {"routes": [BAD]}})
    await cluster.settle()
    third = (await conditions(cluster))["Accepted"]
    assert third["lastTransitionTime"] > second["lastTransitionTime"]
    cluster.clock.advance(60)
    await cluster.update(RESOURCE, NAME, {"spec": {"routes": [OK, BAD]}})
    await cluster.settle()
    fourth = (await conditions(cluster))["Accepted"]
    assert fourth["message"] != third["message"]
    assert fourth["lastTransitionTime"] == third["lastTransitionTime"]


async def test_others_conditions_stay_and_ours_come_back(cluster: Cluster) -> None:
    await service(cluster)
    await profile(cluster, OK)
    theirs = {"type": "Audited", "status": "True", "reason": "x", "message": "y"}
    theirs["lastTransitionTime"] = "2024-01-01T00:00:00Z"
    await cluster.update(RESOURCE, NAME, {"status": {"conditions": [theirs]}}, status=True)
    await cluster.settle()
    found = await conditions(cluster)
    assert found["Audited"] == theirs
    assert found["Accepted"]["status"] == "True"
    assert not cluster.steps()


async def test_references_follow_the_services(cluster: Cluster) -> None:
    await profile(cluster, OK)
    assert (await said(cluster))["ResolvedRefs"] == ("False", "ServiceNotFound")
    await service(cluster)
    assert (await said(cluster))["ResolvedRefs"] == ("True", "ResolvedRefs")
    overrides = [
        {"authority": "till.shop.svc.cluster.local.:8080", "weight": 1},
        {"authority": "elsewhere.example", "weight": 1},
    ]
    await cluster.update(RESOURCE, NAME, {"spec": {"dstOverrides": overrides}})
    await cluster.settle()
    assert (await said(cluster))["ResolvedRefs"] == ("False", "BackendNotFound")
    assert "till.shop" in (await conditions(cluster))["ResolvedRefs"]["message"]
    await service(cluster, "till")
    assert (await said(cluster))["ResolvedRefs"] == ("True", "ResolvedRefs")
    await cluster.delete("services", "cart")
    await cluster.settle()
    assert (await said(cluster))["ResolvedRefs"] == ("False", "ServiceNotFound")


@pytest.mark.parametrize(
    "name", ["cart", "cart.shop.svc.other.domain", "0.cart.shop.svc.cluster.local"]
)
async def test_a_name_that_nothing_reads(cluster: Cluster, name: str) -> None:
    await profile(cluster, OK, name=name)
    assert (await said(cluster, name))["ResolvedRefs"] == ("False", "InvalidName")


async def test_what_proxies_do_not_do_is_said_if_their_dialect_is_known(
    cluster: Cluster,
) -> None:
    await service(cluster)
    budget = {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "5m"}
    await profile(cluster, OK, retryBudget=budget)
    assert (await said(cluster))["Supported"] == ("True", "Supported")
    settings = Settings("linkerd", "PEM", unsupported=(linkerd.faults,))
    cluster.db.commit([Put(SETTINGS, CLUSTER, settings)])
    await cluster.settle()
    assert (await said(cluster))["Supported"] == ("False", "RetryBudget")
    assert "linkerd: " in (await conditions(cluster))["Supported"]["message"]


async def test_a_profile_that_goes_is_let_go(cluster: Cluster) -> None:
    await profile(cluster, OK)
    await cluster.delete(RESOURCE, NAME)
    await cluster.settle()
    assert cluster.plan("serviceprofile-status", key(NAME)) == ()

"""Secrets with the token of a ServiceAccount: filled, kept right, gone with their account."""

from __future__ import annotations

from base64 import b64decode, b64encode

from isthmus.controllers import Settings
from isthmus.controllers.settings import SETTINGS
from isthmus.engine import Put
from isthmus.mesh.accounts import account_secret
from isthmus.model.kind import Document
from isthmus.store.codec import encode
from tests.support.controlled import CLUSTER, Cluster

TYPE = "kubernetes.io/service-account-token"
UID = "kubernetes.io/service-account.uid"


def account(name: str = "bot") -> Document:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def secret(name: str = "bot-token", of: str = "bot", **data: str) -> Document:
    annotations = {"kubernetes.io/service-account.name": of}
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    plain = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPE, "data": plain
    }  # fmt: skip


async def held(cluster: Cluster, name: str = "bot-token") -> dict[str, str]:
    found = await cluster.get("secrets", name)
    assert found is not None
    return {key: b64decode(text).decode() for key, text in found.get("data", {}).items()}


async def test_a_secret_is_filled(cluster: Cluster) -> None:
    made = await cluster.create(account())
    await cluster.create(secret())
    await cluster.settle()
    uid = made["metadata"]["uid"]
    assert await held(cluster) == {
        "token": f"shop/bot/{uid}/bot-token",
        "ca.crt": "PEM",
        "namespace": "shop",
    }
    found = await cluster.get("secrets", "bot-token")
    assert found is not None
    assert found["metadata"]["annotations"][UID] == uid


async def test_one_made_before_its_account_waits(cluster: Cluster) -> None:
    await cluster.create(secret())
    await cluster.settle()
    assert await held(cluster) == {}
    await cluster.create(account())
    await cluster.settle()
    assert "token" in await held(cluster)


async def test_it_goes_with_its_account(cluster: Cluster) -> None:
    await cluster.create(account())
    await cluster.create(secret())
    await cluster.settle()
    await cluster.delete("serviceaccounts", "bot")
    await cluster.settle()
    assert await cluster.names("secrets") == []


async def test_it_is_not_for_an_account_of_the_same_name(cluster: Cluster) -> None:
    await cluster.create(account())
    await cluster.create(secret())
    await cluster.settle()
    await cluster.delete("serviceaccounts", "bot")
    await cluster.create(account())
    await cluster.settle()
    assert await cluster.names("secrets") == []


async def test_a_token_that_is_taken_out_is_made_anew_and_the_rest_kept_right(
    cluster: Cluster,
) -> None:
    await cluster.create(account())
    await cluster.create(secret())
    await cluster.settle()
    wrong: Document = {"data": {"token": None, "namespace": "eA==", "mine": "eQ=="}}
    await cluster.update("secrets", "bot-token", wrong)
    cluster.db.commit([Put(SETTINGS, CLUSTER, Settings("linkerd", "NEXT"))])
    await cluster.settle()
    data = await held(cluster)
    assert data.pop("token")
    assert data == {"ca.crt": "NEXT", "namespace": "shop", "mine": "y"}


async def test_a_filled_secret_is_left_alone(cluster: Cluster) -> None:
    await cluster.create(account())
    await cluster.create(secret(token="given", namespace="shop", **{"ca.crt": "PEM"}))
    await cluster.settle()
    assert (await held(cluster))["token"] == "given"


async def test_other_secrets_have_no_row(cluster: Cluster) -> None:
    other = secret("other", token="x") | {"type": "Opaque"}
    assert account_secret(encode(other)) is None
    await cluster.create(account())
    await cluster.create(other)
    await cluster.settle()
    assert await held(cluster, "other") == {"token": "x"}


def test_no_token_is_in_a_row() -> None:
    row = account_secret(encode(secret(token="t0ken", namespace="shop")))
    assert row is not None
    assert row.filled
    assert "t0ken" not in repr(row)
    assert account_secret(encode(secret() | {"data": {"namespace": "%%"}})) is not None

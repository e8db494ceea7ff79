"""Every verb x kind x role x namespace over HTTP: who gets in is told by a table of their own.

The table is written down here in the words of the documentation ("view reads what is not secret in
one namespace, ..."), not taken from the rules of the roles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from tests.support.rights import account, allow, binding, group, role, user
from tests.unit.serve.kube.serving import Client, Served, serving

READS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
RBAC = "rbac.authorization.k8s.io"

CREDENTIALS = frozenset({"secrets"})
GIVES_RIGHTS = frozenset({f"roles.{RBAC}", f"rolebindings.{RBAC}"})
ADDRESSES = frozenset({"endpoints", "endpointslices.discovery.k8s.io"})
"""Who writes them speaks for any address: only the control plane and cluster-admin do."""
KEPT_BY_CONTROLLERS = frozenset({"controllerrevisions.apps"})


class Ask(NamedTuple):
    """One request: the verb, the kind, and where ("" for cluster-scoped kinds and paths)."""

    verb: str
    kind: Kind
    namespace: str

    @property
    def path(self) -> str:
        """The URL, with its query."""
        base = f"/apis/{self.kind.group}" if self.kind.group else "/api"
        where = f"/namespaces/{self.namespace}" if self.namespace else ""
        collection = f"{base}/{self.kind.stored}{where}/{self.kind.plural}"
        if self.verb == "watch":
            return f"{collection}?watch=1&timeoutSeconds=1&resourceVersion=0"
        many = self.verb in ("list", "create", "deletecollection")
        return collection if many else f"{collection}/x"

    @property
    def method(self) -> str:
        """The HTTP method."""
        return {
            "get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT",
            "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE",
        }[self.verb]  # fmt: skip


def every() -> Iterator[Ask]:
    for kind in BUILT_IN:
        if kind.persisted:
            for namespace in ("a", "b", "") if kind.namespaced else ("",):
                for verb in sorted(READS | WRITES):
                    if namespace or not kind.namespaced or verb in ("list", "watch"):
                        yield Ask(verb, kind, namespace)


# ---------------------------------------------------------------------- what should be


def viewed(ask: Ask) -> bool:
    """What view shows of a namespace."""
    kind = ask.kind
    return ask.verb in READS and kind.namespaced and kind.resource not in CREDENTIALS | GIVES_RIGHTS


def edited(ask: Ask) -> bool:
    """What edit does in a namespace."""
    kind = ask.kind
    reads = ask.verb in READS and kind.resource in CREDENTIALS
    never = GIVES_RIGHTS | ADDRESSES | KEPT_BY_CONTROLLERS
    writes = ask.verb in WRITES and kind.namespaced and kind.resource not in never
    return viewed(ask) or reads or writes


def administered(ask: Ask) -> bool:
    """What admin does in a namespace."""
    return edited(ask) or ask.kind.resource in GIVES_RIGHTS


def within(ask: Ask) -> bool:
    """Whether it is about namespace a, in which most are somebody; reading the Namespace counts."""
    return ask.namespace == "a"


WHO: dict[str, Callable[[Ask], bool]] = {
    "view-a": lambda ask: within(ask) and viewed(ask),
    "edit-a": lambda ask: within(ask) and edited(ask),
    "admin-a": lambda ask: within(ask) and administered(ask),
    "view-all": lambda ask: (
        viewed(ask) or (ask.kind.resource == "namespaces" and ask.verb in READS)
    ),
    "deployer": lambda ask: (
        within(ask) and ask.kind.resource == "deployments.apps" and ask.verb in ("get", "patch")
    ),
    "bot": lambda ask: within(ask) and ask.kind.resource == "configmaps" and ask.verb in READS,
    "nobody": lambda _: False,
}


async def govern(served: Served) -> dict[str, Client]:
    """The bindings that the table is about, and a client for each."""
    documents = (
        binding("view", "ClusterRole/view", user("view-a"), namespace="a"),
        binding("edit", "ClusterRole/edit", group("editors"), namespace="a"),
        binding("admin", "ClusterRole/admin", user("admin-a"), namespace="a"),
        binding("view-all", "ClusterRole/view", user("view-all")),
        role("deployer", allow("get,patch", "deployments", groups="apps"), namespace="a"),
        binding("deployer", "Role/deployer", user("deployer"), namespace="a"),
        role("bot", allow("get,list,watch", "configmaps")),
        binding("bot", "ClusterRole/bot", account("b", "bot"), namespace="a"),
    )
    for document in documents:
        namespace = document["metadata"].get("namespace")
        where = f"/namespaces/{namespace}" if namespace else ""
        path = f"/apis/{RBAC}/v1{where}/{document['kind'].lower()}s"
        reply = await served.admin.post(path, document)
        assert reply.code == 201, reply.raw
    accounts = "/api/v1/namespaces/b/serviceaccounts"
    await served.admin.post(accounts, {"metadata": {"name": "bot"}})
    issued = await served.admin.post(f"{accounts}/bot/token", {})
    clients = {name: await served.client(name) for name in WHO if name != "bot"}
    clients["edit-a"] = await served.client("edit-a", "editors")
    clients["bot"] = await served.client(token=issued.json["status"]["token"])
    return clients


async def let_in(client: Client, ask: Ask) -> bool:
    """Whether the request got past authorization; whatever came of it then. Nothing is written."""
    dry = "&dryRun=All" if "?" in ask.path else "?dryRun=All"
    path = ask.path + (dry if ask.verb in WRITES else "")
    body = b"[]" if ask.verb in ("create", "update", "patch") else None
    kind = "application/json-patch+json" if ask.verb == "patch" else "application/json"
    reply = await client.ask(ask.method, path, body, content_type=kind)
    assert reply.code in (200, 400, 403, 404, 405, 422), (ask.path, reply.raw)
    return reply.code != 403


@pytest.mark.parametrize("name", WHO)
async def test_the_matrix(name: str) -> None:
    async with serving(governed=True) as served:
        client = (await govern(served))[name]
        gate = asyncio.Semaphore(32)
        wrong: list[str] = []

        async def check(ask: Ask) -> None:
            async with gate:
                if await let_in(client, ask) is not WHO[name](ask):
                    wrong.append(f"{ask.verb} {ask.kind.resource} in {ask.namespace or 'all'}")

        # Who is let in to a watch stays a second: those are asked together.
        async with asyncio.TaskGroup() as group_:
            for ask in every():
                group_.create_task(check(ask))
        assert wrong == []

"""Nobody gives rights that they lack, over HTTP, by any way of writing."""

from __future__ import annotations

import aiohttp
import pytest

from isthmus.model.kind import Document
from isthmus.serve.kube.limits import Limits
from tests.support.rights import account, allow, allow_urls, binding, group, role, user
from tests.unit.serve.kube.serving import Client, Reply, Served, serving

RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN_A = f"{RBAC}/namespaces/a"
MANAGE = allow(
    "get,create,update,patch,delete", "roles,rolebindings", groups="rbac.authorization.k8s.io"
)
MANAGE_ALL = allow(
    "create,update,patch,delete",
    "clusterroles,clusterrolebindings,roles,rolebindings",
    groups="rbac.authorization.k8s.io",
)
POD_READER = allow("get,list", "pods")
SECRETS = allow("get,list", "secrets")
NOT_HELD = "is attempting to grant RBAC permissions not currently held"


def path(document: Document) -> str:
    namespace = document["metadata"].get("namespace")
    where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    return f"{where}/{document['kind'].lower()}s"


async def write(client: Client, document: Document) -> Reply:
    return await client.post(path(document), document)


async def made(served: Served, *documents: Document) -> None:
    for document in documents:
        reply = await write(served.admin, document)
        assert reply.code == 201, reply.raw


async def bob(served: Served, *rules: Document) -> Client:
    """A user who may, in namespace a, read pods and manage roles and bindings, and `rules`."""
    await made(
        served,
        role("bob", POD_READER, MANAGE, *rules, namespace="a"),
        binding("bob", "Role/bob", user("bob"), namespace="a"),
    )
    return await served.client("bob")


def refused(reply: Reply) -> str:
    assert (reply.code, reply.json["reason"]) == (403, "Forbidden"), reply.raw
    message = reply.json["message"]
    assert isinstance(message, str)
    return message


async def test_a_role_holds_no_more_than_its_writer() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        fine = await write(client, role("pods", allow("get", "pods"), namespace="a"))
        assert fine.code == 201, fine.raw
        reply = await write(
            client, role("more", allow("get", "pods"), allow("list,get", "secrets"), namespace="a")
        )
        assert refused(reply) == (
            'roles.rbac.authorization.k8s.io "more" is forbidden: user "bob" '
            f'(groups=["system:authenticated"]) {NOT_HELD}:\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "get"]}'
        )
        assert reply.json["details"] == {
            "name": "more", "group": "rbac.authorization.k8s.io", "kind": "roles"
        }  # fmt: skip


async def test_no_way_of_writing_goes_around() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        await made(served, role("r", allow("get", "pods"), namespace="a"))
        more = role("r", SECRETS, namespace="a")
        url = f"{IN_A}/roles/r"
        replies = [
            await client.ask("PUT", url, more),
            await client.ask("PATCH", url, more, content_type="application/merge-patch+json"),
            await client.ask(
                "PATCH", url, [{"op": "add", "path": "/rules/-", "value": SECRETS}],
                content_type="application/json-patch+json",
            ),
            await client.ask(
                "PATCH", f"{url}?fieldManager=x&force=true", more,
                content_type="application/apply-patch+yaml",
            ),
            await client.ask(
                "PATCH", f"{IN_A}/roles/new?fieldManager=x",
                role("new", SECRETS, namespace="a"), content_type="application/apply-patch+yaml",
            ),
            await client.post(f"{IN_A}/roles?dryRun=All", role("dry", SECRETS, namespace="a")),
        ]  # fmt: skip
        assert [NOT_HELD in refused(reply) for reply in replies] == [True] * len(replies)
        unchanged = await served.admin.get(url)
        assert unchanged.json["rules"] == [allow("get", "pods")]


async def test_a_role_over_ones_rights_is_not_touched_but_may_go() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        await made(served, role("r", SECRETS, namespace="a"))
        url = f"{IN_A}/roles/r"
        merge = "application/merge-patch+json"
        label: Document = {"metadata": {"labels": {"x": "y"}}}
        assert NOT_HELD in refused(await client.ask("PATCH", url, label, content_type=merge))
        finalizer: Document = {"metadata": {"finalizers": ["x.io/y"]}}
        assert (await client.ask("PATCH", url, finalizer, content_type=merge)).code == 200
        assert (await client.ask("DELETE", url)).code == 200
        done: Document = {"metadata": {"finalizers": []}}
        assert (await client.ask("PATCH", url, done, content_type=merge)).code == 200
        assert (await served.admin.get(url)).code == 404


async def test_the_verb_escalate_is_the_way_out() -> None:
    async with serving(governed=True) as served:
        escalate = allow("escalate", "roles", groups="rbac.authorization.k8s.io", names="chosen")
        client = await bob(served, escalate)
        chosen = await write(client, role("chosen", SECRETS, namespace="a"))
        assert chosen.code == 201, chosen.raw
        assert NOT_HELD in refused(await write(client, role("other", SECRETS, namespace="a")))


async def test_what_is_bound_is_held() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        await made(
            served,
            role("pods", POD_READER, namespace="a"),
            role("secrets", SECRETS, namespace="a"),
            role("everywhere", POD_READER),
        )
        for to, code in (
            ("Role/pods", 201), ("ClusterRole/everywhere", 201),
            ("Role/secrets", 403), ("ClusterRole/cluster-admin", 403), ("ClusterRole/edit", 403),
        ):  # fmt: skip
            name = to.lower().replace("/", "-")
            reply = await write(client, binding(name, to, user("eve"), namespace="a"))
            assert reply.code == code, (to, reply.raw)


async def test_the_verb_bind_is_the_way_out() -> None:
    async with serving(governed=True) as served:
        bind = allow("bind", "clusterroles", groups="rbac.authorization.k8s.io", names="edit")
        client = await bob(served, bind)
        fine = await write(client, binding("e", "ClusterRole/edit", user("eve"), namespace="a"))
        assert fine.code == 201, fine.raw
        other = binding("x", "ClusterRole/admin", user("eve"), namespace="a")
        assert NOT_HELD in refused(await write(client, other))


async def test_who_may_not_read_a_role_is_not_told_what_is_in_it_nor_whether_it_is() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        await made(served, role("hidden", SECRETS))
        told = []
        for name in ("hidden", "missing"):
            document = binding("b", f"ClusterRole/{name}", user("eve"), namespace="a")
            told.append(refused(await write(client, document)))
        assert told[0] == told[1]
        assert told[0].endswith(f"{NOT_HELD}")
        # In its own namespace it may read roles: there it is told.
        await made(served, role("seen", SECRETS, namespace="a"))
        seen = await write(client, binding("b", "Role/seen", user("eve"), namespace="a"))
        assert '"secrets"' in refused(seen)
        gone = await write(client, binding("b", "Role/gone", user("eve"), namespace="a"))
        assert (gone.code, gone.json["message"]) == (
            404, 'roles.rbac.authorization.k8s.io "gone" not found'
        )  # fmt: skip


async def test_rights_in_one_namespace_are_none_in_another_or_everywhere() -> None:
    async with serving(governed=True) as served:
        await made(
            served,
            role("manage", MANAGE_ALL),
            binding("manage", "ClusterRole/manage", user("bob")),
            role("pods", POD_READER, namespace="a"),
            binding("pods", "Role/pods", user("bob"), namespace="a"),
        )
        client = await served.client("bob")
        for namespace, code in (("a", 201), ("b", 403), ("", 403)):
            reply = await write(client, role("x", allow("get", "pods"), namespace=namespace))
            assert reply.code == code, (namespace, reply.raw)


async def test_gathering_needs_every_right() -> None:
    async with serving(governed=True) as served:
        await made(
            served,
            role("manage", MANAGE_ALL),
            binding("manage", "ClusterRole/manage", user("bob")),
            role("all", allow("*", "*", groups="*"), allow_urls("*", "*")),
            binding("all", "ClusterRole/all", user("root")),
        )
        gathering = role("g") | {
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}
        }
        client = await served.client("bob")
        assert "must have cluster-admin privileges" in refused(await write(client, gathering))
        root = await served.client("root")
        assert (await write(root, gathering)).code == 201
        emptied = await client.ask("PUT", f"{RBAC}/clusterroles/g", role("g"))
        assert "must have cluster-admin privileges" in refused(emptied)


async def test_masters_may_all_before_any_role_is_known() -> None:
    async with serving() as served:
        await made(served, role("x", allow("*", "*", groups="*"), namespace="a"))


async def test_a_role_that_says_too_much_to_compare() -> None:
    async with serving(governed=True) as served:
        client = await bob(served)
        many = ",".join(f"n{number}" for number in range(100))
        reply = await write(client, role("x", allow(many, many, groups=many), namespace="a"))
        assert "smaller roles" in refused(reply)
        shown = refused(await write(client, role("x", allow("get", many), namespace="a")))
        assert shown.endswith("and 80 more")


async def test_rights_count_when_their_writer_hears_of_it() -> None:
    pods = "/api/v1/namespaces/a/pods"
    async with serving(governed=True) as served:
        client = await served.client("bob", "devs")
        assert (await client.get(pods)).code == 403
        await made(served, role("r", POD_READER, namespace="a"))
        for subject in (user("bob"), group("devs")):
            await made(served, binding("b", "Role/r", subject, namespace="a"))
            assert (await client.get(pods)).code == 200
            assert (await served.admin.ask("DELETE", f"{IN_A}/rolebindings/b")).code == 200
            assert (await client.get(pods)).code == 403


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        (account("a", "bot"), True),
        (account("b", "bot"), False),
        (user("system:serviceaccount:a:bot"), True),
        (group("system:serviceaccounts"), True),
        (group("system:serviceaccounts:a"), True),
        (group("system:serviceaccounts:b"), False),
        (group("system:serviceaccounts:"), False),
        (group("system:authenticated"), True),
        (group("system:unauthenticated"), False),
        (user("bot"), False),
        (user("system:serviceaccount:a:bo"), False),
        (user("system:serviceaccount:a:bott"), False),
        (user("system:serviceaccount:.:bot"), False),
        (user("*"), False),
    ],
)
async def test_accounts_and_look_alikes(subject: Document, allowed: bool) -> None:
    pods = "/api/v1/namespaces/a/pods"
    async with serving(governed=True) as served:
        accounts = "/api/v1/namespaces/a/serviceaccounts"
        await served.admin.post(accounts, {"metadata": {"name": "bot"}})
        issued = await served.admin.post(f"{accounts}/bot/token", {})
        bot = await served.client(token=issued.json["status"]["token"])
        await made(
            served,
            role("r", POD_READER, namespace="a"),
            binding("b", "Role/r", subject, namespace="a"),
        )
        assert (await bot.get(pods)).code == (200 if allowed else 403)


async def test_a_watch_ends_with_the_rights_of_who_watches() -> None:
    cms = "/api/v1/namespaces/a/configmaps"
    async with serving(governed=True, limits=Limits(trust_time=0)) as served:
        await made(
            served,
            role("r", allow("watch", "configmaps"), namespace="a"),
            binding("b", "Role/r", user("bob"), namespace="a"),
        )
        client = await served.client("bob")
        async with client.watch(f"{cms}?watch=1") as lines:
            await served.admin.post(cms, {"metadata": {"name": "one"}})
            assert await lines.take(1) == [("ADDED", "one")]
            await served.admin.ask("DELETE", f"{IN_A}/rolebindings/b")
            await served.admin.post(cms, {"metadata": {"name": "two"}})
            with pytest.raises(aiohttp.ClientError):
                await lines.next()
        assert (await client.get(f"{cms}?watch=1")).code == 403
        assert not served.log.lines


async def test_a_watch_ends_with_the_account_of_who_watches() -> None:
    cms, accounts = "/api/v1/namespaces/a/configmaps", "/api/v1/namespaces/a/serviceaccounts"
    async with serving(governed=True, limits=Limits(trust_time=0)) as served:
        await made(
            served,
            role("r", allow("watch", "configmaps"), namespace="a"),
            binding("b", "Role/r", account("a", "bot"), namespace="a"),
        )
        await served.admin.post(accounts, {"metadata": {"name": "bot"}})
        issued = await served.admin.post(f"{accounts}/bot/token", {})
        bot = await served.client(token=issued.json["status"]["token"])
        async with bot.watch(f"{cms}?watch=1") as lines:
            await served.admin.post(cms, {"metadata": {"name": "one"}})
            assert await lines.take(1) == [("ADDED", "one")]
            await served.admin.ask("DELETE", f"{accounts}/bot")
            await served.admin.post(cms, {"metadata": {"name": "two"}})
            with pytest.raises(aiohttp.ClientError):
                await lines.next()

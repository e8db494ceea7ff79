"""Who am I, may I, is this token good, give me one: over HTTP."""

from __future__ import annotations

import pytest

from isthmus.model.times import parse_seconds
from tests.unit.serve.kube.serving import Client, Reply, serving

AUTHN = "/apis/authentication.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
SA = "/api/v1/namespaces/a/serviceaccounts"

LIST_PODS = {"verb": "list", "resource": "pods", "namespace": "a"}


async def ask(client: Client, path: str, **spec: object) -> Reply:
    return await client.post(path, {"spec": spec})


async def test_who_am_i() -> None:
    async with serving() as served:
        reply = await served.admin.post(f"{AUTHN}/selfsubjectreviews", {})
        assert reply.code == 201
        assert reply.json["kind"] == "SelfSubjectReview"
        assert reply.json["status"]["userInfo"] == {
            "username": "admin",
            "groups": ["system:masters", "system:authenticated"],
        }
        assert served.store.revision == 0


async def test_may_i() -> None:
    path = f"{AUTHZ}/selfsubjectaccessreviews"
    async with serving() as served:
        yes = await ask(served.admin, path, resourceAttributes=LIST_PODS)
        assert yes.json["status"] == {"allowed": True, "reason": "group system:masters"}
        bob = await served.client("bob")
        no = await ask(bob, path, resourceAttributes=LIST_PODS)
        assert (no.code, no.json["status"]) == (201, {"allowed": False})
        known = await ask(bob, path, nonResourceAttributes={"verb": "get", "path": "/apis"})
        assert known.json["status"]["allowed"]
        nobody = await served.client()
        assert (await ask(nobody, path, resourceAttributes=LIST_PODS)).code == 403


async def test_may_they() -> None:
    path = f"{AUTHZ}/subjectaccessreviews"
    local = f"{AUTHZ}/namespaces/a/localsubjectaccessreviews"
    async with serving() as served:
        for url in (path, local):
            root = {"user": "x", "groups": ["system:masters"], "extra": {"k": ["v"]}}
            reply = await ask(served.admin, url, resourceAttributes=LIST_PODS, **root)
            assert reply.json["status"]["allowed"], reply.raw
            other = await ask(served.admin, url, resourceAttributes=LIST_PODS, user="x")
            assert not other.json["status"]["allowed"]
        elsewhere = {**LIST_PODS, "namespace": "b"}
        odd = await ask(served.admin, local, resourceAttributes=elsewhere, user="x")
        assert odd.code == 422
        bob = await served.client("bob")
        assert (await ask(bob, path, resourceAttributes=LIST_PODS, user="x")).code == 403


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"user": "x"},
        {"resourceAttributes": LIST_PODS},
        {"resourceAttributes": LIST_PODS, "nonResourceAttributes": {}, "user": "x"},
    ],
)
async def test_questions_that_are_none(spec: dict[str, object]) -> None:
    async with serving() as served:
        reply = await ask(served.admin, f"{AUTHZ}/subjectaccessreviews", **spec)
        assert (reply.code, reply.json["reason"]) == (422, "Invalid")


async def test_what_may_i() -> None:
    path = f"{AUTHZ}/selfsubjectrulesreviews"
    async with serving() as served:
        all_of_it = await ask(served.admin, path, namespace="a")
        assert all_of_it.json["status"]["resourceRules"][0]["verbs"] == ["*"]
        little = await ask(await served.client("bob"), path, namespace="a")
        rules = little.json["status"]["resourceRules"]
        assert [rule["verbs"] for rule in rules] == [["create"], ["create"]]
        urls = little.json["status"]["nonResourceRules"]
        assert "/api/*" in urls[0]["nonResourceURLs"]


async def test_questions_are_posted_only() -> None:
    async with serving() as served:
        for method, path in (
            ("GET", f"{AUTHN}/selfsubjectreviews"),
            ("GET", f"{AUTHN}/tokenreviews/x"),
            ("DELETE", f"{AUTHN}/tokenreviews"),
        ):
            assert (await served.admin.ask(method, path)).code == 405


async def test_a_token_is_made_and_reviewed() -> None:
    async with serving() as served:
        await served.admin.post(SA, {"metadata": {"name": "bot"}})
        made = await ask(served.admin, f"{SA}/bot/token", expirationSeconds=1200)
        assert made.code == 201, made.raw
        token = made.json["status"]["token"]
        expires = parse_seconds(made.json["status"]["expirationTimestamp"]) or 0
        assert 1100 < expires - served.clock.time() <= 1200
        review = await ask(served.admin, f"{AUTHN}/tokenreviews", token=token)
        assert review.json["status"]["authenticated"]
        user = review.json["status"]["user"]
        assert user["username"] == "system:serviceaccount:a:bot"
        assert user["uid"]
        bot = await served.client(token=token)
        mine = await bot.post(f"{AUTHN}/selfsubjectreviews", {})
        assert mine.json["status"]["userInfo"]["username"] == "system:serviceaccount:a:bot"
        for forged in (token[:-5] + "AAAAA", "x"):
            bad = await ask(served.admin, f"{AUTHN}/tokenreviews", token=forged)
            assert bad.code == 201
            assert "authenticated" not in bad.json["status"]
            assert bad.json["status"]["error"]


async def test_a_token_for_another_audience_is_no_credential_here() -> None:
    async with serving() as served:
        await served.admin.post(SA, {"metadata": {"name": "bot"}})
        made = await ask(served.admin, f"{SA}/bot/token", audiences=["vault"])
        token = made.json["status"]["token"]
        bot = await served.client(token=token)
        assert (await bot.get("/api")).code == 401
        review = await ask(served.admin, f"{AUTHN}/tokenreviews", token=token, audiences=["vault"])
        assert review.json["status"]["authenticated"]
        assert review.json["status"]["audiences"] == ["vault"]


async def test_a_token_bound_to_a_pod_dies_with_it() -> None:
    pods = "/api/v1/namespaces/a/pods"
    async with serving() as served:
        await served.admin.post(SA, {"metadata": {"name": "bot"}})
        spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "bot"}
        pod = await served.admin.post(pods, {"metadata": {"name": "p"}, "spec": spec})
        assert pod.code == 201, pod.raw
        bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        made = await ask(served.admin, f"{SA}/bot/token", boundObjectRef=bound)
        assert made.code == 201, made.raw
        bot = await served.client(token=made.json["status"]["token"])
        assert (await bot.get("/api")).code == 200
        review = await bot.post(f"{AUTHN}/selfsubjectreviews", {})
        extra = review.json["status"]["userInfo"]["extra"]
        assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
        await served.admin.ask("DELETE", f"{pods}/p?gracePeriodSeconds=0")
        assert (await bot.get("/api")).code == 401


@pytest.mark.parametrize(
    ("account", "spec", "code"),
    [
        ("nobody", {}, 404),
        ("bot", {"expirationSeconds": 5}, 422),
        ("bot", {"boundObjectRef": {"kind": "Pod", "name": "nope"}}, 404),
        ("bot", {"boundObjectRef": {"kind": "ConfigMap", "name": "x"}}, 400),
        ("bot", {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "other"}}, 400),
        ("bot", {"expirationSeconds": "soon"}, 400),
    ],
)
async def test_tokens_that_are_not_made(account: str, spec: dict[str, object], code: int) -> None:
    async with serving() as served:
        await served.admin.post(SA, {"metadata": {"name": "bot"}})
        await served.admin.post("/api/v1/namespaces/a/secrets", {"metadata": {"name": "s"}})
        reply = await ask(served.admin, f"{SA}/{account}/token", **spec)
        assert reply.code == code, reply.raw


async def test_a_dry_run_makes_no_token() -> None:
    async with serving() as served:
        await served.admin.post(SA, {"metadata": {"name": "bot"}})
        reply = await ask(served.admin, f"{SA}/bot/token?dryRun=All")
        assert reply.json["status"]["token"] == ""
        other = await ask(served.admin, "/api/v1/namespaces/a/configmaps/x/token")
        assert other.code == 404

"""What the API gives to somebody it does not know, believes of what is only said, and tells."""

from __future__ import annotations

import json

import pytest

from isthmus.engine import Database
from isthmus.serve.kube.auth import Attributes, User
from isthmus.serve.kube.rbac import Rbac
from tests.support.rights import allow, binding, group, put, role, user
from tests.unit.serve.kube.serving import serving

CM = "/api/v1/namespaces/a/configmaps"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

OPEN = ("/healthz", "/livez", "/readyz", "/version")
CLOSED = (
    "/", "/api", "/apis", "/api/v1", "/openapi/v2", "/openapi/v3", "/metrics", "/debug/pprof",
    "/logs", "/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1/namespaces",
    "/api/v1/secrets", "/apis/nothing.example/v1/things", "/no/such/path", "/healthz/x",
    "/version/../api",
)  # fmt: skip


async def test_nobody_gets_health_and_version_and_nothing_else() -> None:
    async with serving() as served:
        nobody = await served.client()
        assert [(await nobody.get(path)).code for path in OPEN] == [200] * len(OPEN)
        codes = {path: (await nobody.get(path)).code for path in CLOSED}
        assert {path: code for path, code in codes.items() if code not in (400, 403)} == {}
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await nobody.ask(method, "/version", b"{}")).code == 403


async def test_what_does_not_exist_is_refused_like_what_does() -> None:
    """A reference is not resolved before permission is checked."""
    async with serving() as served:
        await served.admin.post("/api/v1/namespaces/a/secrets", {"metadata": {"name": "there"}})
        bob = await served.client("bob")
        for method, path in (
            ("GET", "/api/v1/namespaces/a/secrets/NAME"),
            ("DELETE", "/api/v1/namespaces/a/secrets/NAME"),
            ("PUT", "/api/v1/namespaces/a/secrets/NAME"),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/NAME/token"),
        ):
            told = []
            for name in ("there", "gone"):
                body: object = None if method == "GET" else {}
                reply = await bob.ask(method, path.replace("NAME", name), body)
                assert reply.code == 403
                told.append(json.dumps(reply.json).replace(name, "NAME"))
            assert told[0] == told[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Remote-User", "system:admin"),
        ("X-Remote-Group", "system:masters"),
        ("X-Forwarded-User", "root"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1;by=secret"),
        ("X-Forwarded-Client-Cert", 'Subject="CN=root,O=system:masters"'),
        ("X-Ssl-Client-Dn", "CN=root,O=system:masters"),
        ("Host", "localhost"),
        ("Origin", "http://evil.example"),
        ("X-Http-Method-Override", "DELETE"),
    ],
)
async def test_who_asks_is_never_what_a_header_says(name: str, value: str) -> None:
    async with serving() as served:
        nobody = await served.client()
        refused = await nobody.get(CM, **{name: value})
        assert refused.code == 403
        assert 'User "system:anonymous"' in refused.json["message"]
        bob = await served.client("bob")
        review = await bob.ask("POST", REVIEW, {}, headers={name: value})
        assert review.json["status"]["userInfo"]["username"] == "bob"
        assert "Access-Control-Allow-Origin" not in review.headers


async def test_a_body_does_not_say_who_asks() -> None:
    async with serving() as served:
        bob = await served.client("bob")
        claimed = {"status": {"userInfo": {"username": "root", "groups": ["system:masters"]}}}
        review = await bob.post(REVIEW, claimed)
        assert review.json["status"]["userInfo"]["username"] == "bob"
        asked = {"resourceAttributes": {"verb": "get", "resource": "pods"}, "user": "root",
                 "groups": ["system:masters"]}  # fmt: skip
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        mine = await bob.post(path, {"spec": asked, "status": {"allowed": True}})
        assert not mine.json.get("status", {}).get("allowed")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/a/%2e%2e/b/configmaps",
        "/api/v1/namespaces/a%2Fsecrets/configmaps",
        "/api/v1/namespaces/a/configmaps/x%00",
        "/api/v1/namespaces//configmaps",
        "/api/v1//namespaces/a/configmaps",
        "/API/v1/namespaces/a/configmaps",
        "/api/v1/namespaces/a/configmaps/..",
        "/api/v1/namespaces/A/configmaps",
        "/apis//v1/namespaces/a/configmaps",
    ],
)
async def test_a_path_has_one_reading(path: str) -> None:
    """Who may read configmaps of a may not read anything else by writing it otherwise."""
    rule = role("r", allow("get,list", "configmaps"), namespace="a")
    async with serving(governed=True) as served:
        for document in (rule, binding("b", "Role/r", user("bob"), namespace="a")):
            url = f"/apis/rbac.authorization.k8s.io/v1/namespaces/a/{document['kind'].lower()}s"
            assert (await served.admin.post(url, document)).code == 201
        bob = await served.client("bob")
        assert (await bob.get(CM)).code == 200
        assert (await bob.get("/api/v1/namespaces/%61/configmaps")).code == 200
        assert (await bob.get(path)).code in (400, 403, 404)


async def test_a_token_of_one_cluster_is_none_in_another() -> None:
    accounts = "/api/v1/namespaces/a/serviceaccounts"
    async with serving() as east, serving() as west:
        for served in (east, west):
            await served.admin.post(accounts, {"metadata": {"name": "bot"}})
        issued = await east.admin.post(f"{accounts}/bot/token", {})
        token = issued.json["status"]["token"]
        assert (await (await east.client(token=token)).get("/api")).code == 200
        assert (await (await west.client(token=token)).get("/api")).code == 401


def test_a_binding_of_one_cluster_gives_nothing_in_another() -> None:
    db = Database()
    everything = role("all", allow("*", "*", groups="*"))
    for_all = binding("all", "ClusterRole/all", group("system:authenticated"))
    db.commit([put(everything, "east"), put(for_all, "east"), put(everything, "west")])
    bob, asked = User("bob", ("system:authenticated",)), Attributes("get", resource="secrets")
    assert Rbac(db, "east").decide(bob, asked).allowed
    assert not Rbac(db, "west").decide(bob, asked).allowed


NASTY = ("a\nb", "a\x1b[31m", "a\x00", "a\u202eb", "<script>alert(1)</script>", "{{x}}", "%0a")


@pytest.mark.parametrize("text", NASTY)
async def test_texts_of_people_are_data_wherever_they_come_back(text: str) -> None:
    async with serving() as served:
        named = await served.admin.post(CM, {"metadata": {"name": text}})
        assert (named.code, named.json["reason"]) == (422, "Invalid")
        key = await served.admin.post(CM, {"metadata": {"name": "x", "annotations": {text: "v"}}})
        assert key.code == 422
        value = {"name": "x", "annotations": {"k": text}}
        kept = await served.admin.post(CM, {"metadata": value})
        assert kept.code == 201
        assert kept.json["metadata"]["annotations"]["k"] == text
        back = await served.admin.get(f"{CM}/x")
        for reply in (named, key, kept, back):
            assert reply.headers["Content-Type"] == "application/json"
            assert all(byte >= 32 for byte in reply.raw.rstrip(b"\n"))
        table = await served.admin.get(CM, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert table.headers["Content-Type"].startswith("application/json")


async def test_no_answer_of_the_api_is_a_page() -> None:
    async with serving() as served:
        for path in (*OPEN, "/", "/api", "/openapi/v2", CM, f"{CM}/<b>"):
            reply = await served.admin.get(path)
            assert "html" not in reply.headers["Content-Type"], path

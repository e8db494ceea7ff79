"""Tokens of ServiceAccounts: requested and kept, what they hang on, and who issued them."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.aio import ManualClock
from isthmus.ca import Bound, Keyring
from isthmus.errors import Unauthenticated
from isthmus.model.kind import Document
from isthmus.model.registry import BUILT_IN
from isthmus.model.times import format_seconds
from isthmus.serve.kube.accounts import ACCOUNT_TOKEN, LEEWAY, AccountTokens
from isthmus.store.codec import encode
from isthmus.store.contract import Put
from isthmus.store.memory import Memory
from tests.support.examples import examples
from tests.support.rights import allow, binding, role, user
from tests.unit.serve.kube.serving import ISSUER, Client, Reply, Served, serving

NS = "/api/v1/namespaces/a"
AUTHN = "/apis/authentication.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def account(served: Served, name: str = "bot") -> str:
    made = await served.admin.post(f"{NS}/serviceaccounts", {"metadata": {"name": name}})
    assert made.code == 201, made.raw
    return str(made.json["metadata"]["uid"])


async def token_of(client: Client, name: str = "bot", **spec: object) -> Reply:
    return await client.post(f"{NS}/serviceaccounts/{name}/token", {"spec": spec})


async def allowed(served: Served, name: str, *rules: Document) -> Client:
    """A user who may these things in namespace a."""
    for document in (
        role(name, *rules, namespace="a"),
        binding(name, f"Role/{name}", user(name), namespace="a"),
    ):
        kind = document["kind"].lower()
        made = await served.admin.post(f"{RBAC}/namespaces/a/{kind}s", document)
        assert made.code == 201, made.raw
    return await served.client(name)


MAKE_TOKENS = allow("create", "serviceaccounts/token")


# --------------------------------------------------------------------------- requested tokens


async def test_a_token_is_made_by_whom_may_make_tokens_and_for_no_one_elses_pod() -> None:
    async with serving(governed=True) as served:
        await account(served)
        await account(served, "other")
        spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "other"}
        await served.admin.post(f"{NS}/pods", {"metadata": {"name": "p"}, "spec": spec})
        maker = await allowed(served, "maker", MAKE_TOKENS, allow("get", "pods"))
        assert (await token_of(maker)).code == 201
        pod = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        mine = await token_of(maker, "other", boundObjectRef=pod)
        assert mine.code == 201, mine.raw
        theirs = await token_of(maker, boundObjectRef=pod)
        assert (theirs.code, theirs.json["reason"]) == (400, "BadRequest")
        assert "different serviceaccount" in theirs.json["message"]
        viewer = await allowed(served, "viewer", allow("get,create", "serviceaccounts"))
        assert (await token_of(viewer)).code == 403


async def test_binding_a_token_does_not_tell_whether_a_secret_exists() -> None:
    async with serving(governed=True) as served:
        await account(served)
        await served.admin.post(f"{NS}/secrets", {"metadata": {"name": "there"}})
        maker = await allowed(served, "maker", MAKE_TOKENS)
        told = []
        for name in ("there", "gone"):
            reference = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": "x"}
            reply = await token_of(maker, boundObjectRef=reference)
            assert reply.code == 403
            told.append(reply.json["message"].replace(name, "NAME"))
        assert told[0] == told[1]
        reader = await allowed(served, "reader", MAKE_TOKENS, allow("get", "secrets"))
        reference = {"kind": "Secret", "apiVersion": "v1", "name": "there"}
        assert (await token_of(reader, boundObjectRef=reference)).code == 201


async def test_a_token_bound_to_a_secret_or_node_dies_with_it() -> None:
    async with serving() as served:
        await account(served)
        await served.admin.post(f"{NS}/secrets", {"metadata": {"name": "s"}})
        await served.admin.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        for kind, name, path in (
            ("Secret", "s", f"{NS}/secrets/s"), ("Node", "n", "/api/v1/nodes/n"),
        ):  # fmt: skip
            reference = {"kind": kind, "apiVersion": "v1", "name": name}
            made = await token_of(served.admin, boundObjectRef=reference)
            assert made.code == 201, made.raw
            bot = await served.client(token=made.json["status"]["token"])
            assert (await bot.get("/api")).code == 200
            await served.admin.ask("DELETE", path)
            assert (await bot.get("/api")).code == 401


async def test_a_review_grants_only_audiences_that_were_asked_for() -> None:
    async with serving() as served:
        await account(served)
        made = await token_of(served.admin, audiences=["mesh", "vault"])
        token = made.json["status"]["token"]
        for asked, granted in ((["vault", "x"], ["vault"]), (["mesh", "vault"], ["mesh", "vault"])):
            spec = {"token": token, "audiences": asked}
            review = await served.admin.post(f"{AUTHN}/tokenreviews", {"spec": spec})
            assert review.json["status"]["audiences"] == granted
        spec = {"token": token, "audiences": ["x"]}
        refused = await served.admin.post(f"{AUTHN}/tokenreviews", {"spec": spec})
        assert "authenticated" not in refused.json["status"]
        plain = (await token_of(served.admin)).json["status"]["token"]
        review = await served.admin.post(f"{AUTHN}/tokenreviews", {"spec": {"token": plain}})
        assert review.json["status"]["audiences"] == [ISSUER]


async def test_long_lives_are_cut_and_told() -> None:
    async with serving() as served:
        await account(served)
        made = await token_of(served.admin, expirationSeconds=2**32)
        assert made.json["spec"]["expirationSeconds"] == 365 * 86400
        assert (await token_of(served.admin, expirationSeconds=599)).code == 422


# -------------------------------------------------------------------------------- kept tokens


async def test_a_secret_is_filled_works_and_dies_with_itself_and_its_account() -> None:
    body = {
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "bot"}},
        "type": ACCOUNT_TOKEN,
    }

    async def filled(served: Served) -> str:
        path = f"{NS}/secrets?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dt"
        async with served.admin.watch(path) as events:
            while True:
                data = (await events.next())["object"].get("data") or {}
                if "token" in data:
                    assert base64.b64decode(data["namespace"]) == b"a"
                    assert base64.b64decode(data["ca.crt"]) == b"PEM"
                    return base64.b64decode(data["token"]).decode()

    async with serving(governed=True) as served:
        await served.admin.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
        await account(served)
        assert (await served.admin.post(f"{NS}/secrets", body)).code == 201
        token = await filled(served)
        bot = await served.client(token=token)
        mine = await bot.post(f"{AUTHN}/selfsubjectreviews", {})
        assert mine.json["status"]["userInfo"]["username"] == "system:serviceaccount:a:bot"
        # Another audience is not this API's.
        spec = {"token": token, "audiences": ["vault"]}
        review = await served.admin.post(f"{AUTHN}/tokenreviews", {"spec": spec})
        assert "authenticated" not in review.json["status"]
        await served.admin.ask("DELETE", f"{NS}/secrets/t")
        assert (await bot.get("/api")).code == 401
        assert (await served.admin.post(f"{NS}/secrets", body)).code == 201
        second = await served.client(token=await filled(served))
        assert (await second.get("/api")).code == 200
        assert (await bot.get("/api")).code == 401, "the first token is not the one that is kept"
        await served.admin.ask("DELETE", f"{NS}/serviceaccounts/bot")
        assert (await second.get("/api")).code == 401


# ----------------------------------------------------------------------------------- the verifier


CLOCK = ManualClock()
RING = Keyring("https://isthmus", ec.generate_private_key(ec.SECP256R1()))
BOT = Bound("serviceaccounts", "a", "bot", "u")


async def verifier(*objects: tuple[str, str, Document]) -> AccountTokens:
    store = Memory()
    for resource, name, document in objects:
        kind = BUILT_IN.by_key_resource(resource)
        assert kind is not None
        meta = {"name": name, "namespace": "a", **document.pop("metadata", {})}
        await store.txn([], [Put(kind.key("a", name), encode({"metadata": meta, **document}))])
    return AccountTokens(RING, store, BUILT_IN, CLOCK)


def bot(**meta: str) -> tuple[str, str, Document]:
    return "serviceaccounts", "bot", {"metadata": {"uid": "u", **meta}}


def kept(token: str, kind: str = ACCOUNT_TOKEN) -> tuple[str, str, Document]:
    data = {"token": base64.b64encode(token.encode()).decode()}
    return "secrets", "s", {"metadata": {"uid": "s"}, "type": kind, "data": data}


async def test_a_kept_token_must_be_the_one_in_its_secret() -> None:
    token = RING.sign_kept(BOT, "s")
    assert (await (await verifier(bot(), kept(token))).verify(token)).user.uid == "u"
    for objects in (
        (bot(),),
        (kept(token),),
        (bot(), kept(token, "Opaque")),
        (bot(), kept(RING.sign_kept(BOT, "s"))),
        (bot(), ("secrets", "s", {"type": ACCOUNT_TOKEN, "data": {"token": "%%"}})),
    ):
        with pytest.raises(Unauthenticated):
            await (await verifier(*objects)).verify(token)


async def test_what_is_being_deleted_keeps_its_tokens_a_moment() -> None:
    token = RING.sign(BOT, now=CLOCK.utc(), lifetime=timedelta(hours=1))
    just = format_seconds(CLOCK.time() - LEEWAY / 2)
    long = format_seconds(CLOCK.time() - LEEWAY * 2)
    assert await (await verifier(bot(deletionTimestamp=just))).verify(token)
    with pytest.raises(Unauthenticated):
        await (await verifier(bot(deletionTimestamp=long))).verify(token)


CLAIMS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KNOWN = st.dictionaries(
    st.sampled_from(
        ["iss", "sub", "aud", "exp", "iat", "nbf", "jti", "kubernetes.io",
         "kubernetes.io/serviceaccount/namespace", "kubernetes.io/serviceaccount/secret.name"]
    ),
    CLAIMS | st.sampled_from(["kubernetes/serviceaccount", "https://isthmus", -1, 2**64, 1e308]),
)  # fmt: skip


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@given(
    st.one_of(
        st.text(max_size=100),
        st.builds(
            lambda header, claims, end: f"{part(header)}.{part(claims)}.{end}",
            CLAIMS, KNOWN, st.text(st.sampled_from("abcXYZ-_="), max_size=90),
        ),
        st.builds(RING._signed, KNOWN),  # noqa: SLF001  # a true signature
    )
)  # fmt: skip
def test_no_token_finds_a_bug(token: str) -> None:
    with pytest.raises(Unauthenticated):
        RING.verify(token, now=CLOCK.utc())


# ------------------------------------------------------------------------------------ discovery


async def test_who_issued_tokens_is_told_to_accounts_and_not_to_everybody() -> None:
    paths = ("/.well-known/openid-configuration", "/openid/v1/jwks")
    async with serving() as served:
        await account(served)
        made = await token_of(served.admin)
        token = made.json["status"]["token"]
        bot_ = await served.client(token=token)
        found, keys = [await bot_.get(path) for path in paths]
        assert found.json == {
            "issuer": ISSUER,
            "jwks_uri": f"{ISSUER}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        assert keys.headers["Content-Type"] == "application/jwk-set+json"
        head = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
        assert [key["kid"] for key in keys.json["keys"]] == [head["kid"]]
        assert all("d" not in key for key in keys.json["keys"])
        for client in (await served.client(), await served.client("bob")):
            assert [(await client.get(path)).code for path in paths] == [403, 403]


# --------------------------------------------------------------------------- bodies of reviews


REVIEWS = (
    f"{AUTHN}/tokenreviews", f"{AUTHN}/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews",
    f"{NS}/serviceaccounts/bot/token",
)  # fmt: skip
WORDS = (
    "spec", "token", "audiences", "user", "groups", "extra", "uid", "resourceAttributes",
    "nonResourceAttributes", "verb", "path", "namespace", "name", "boundObjectRef", "kind",
    "expirationSeconds",
)  # fmt: skip
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.just("*"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(REVIEWS), TREES), min_size=20, max_size=20))
async def test_no_review_finds_a_bug(asked: list[tuple[str, object]]) -> None:
    async with serving() as served:
        await account(served)
        before = served.store.revision
        for path, tree in asked:
            reply = await served.admin.post(path, {"spec": tree})
            assert reply.code in (201, 400, 404, 422), (path, tree, reply.raw)
        assert served.store.revision == before
        assert not served.log.lines

"""Who asks, whom they count as, and whether they may."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import ManualClock
from isthmus.ca import Bound as BoundObject
from isthmus.ca import Keyring
from isthmus.errors import BadRequest, Forbidden, Unauthenticated
from isthmus.model.rbac import PolicyRule
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube import auth
from isthmus.serve.kube.accounts import AccountTokens
from isthmus.serve.kube.auth import (
    ANONYMOUS,
    Attributes,
    Bearer,
    Decision,
    NoTokens,
    User,
)
from isthmus.serve.kube.impersonation import impersonate
from isthmus.serve.kube.routes import parse
from isthmus.store.codec import encode
from isthmus.store.contract import Delete, Put
from isthmus.store.memory import Memory
from tests.support.rights import authorizer

ADMIN = User("root", ("system:masters", "system:authenticated"))
BOB = User("bob", ("system:authenticated",))
CERTIFICATE = {
    "subject": (
        (("organizationName", "system:masters"),),
        (("organizationName", "staff"),),
        (("commonName", "root"),),
    )
}


class OneToken:
    async def verify(self, token: str, audiences: Sequence[str] = ()) -> Bearer:
        if token != "good":
            raise Unauthenticated("no such token")
        return Bearer(BOB)


async def test_a_certificate_names_user_and_groups_and_beats_a_token() -> None:
    user = await auth.authenticate(CERTIFICATE, "Bearer bad", OneToken(), 0.0)
    assert user == User("root", ("system:masters", "staff", "system:authenticated"))


@pytest.mark.parametrize("name", ["", "a\nb"])
def test_a_certificate_without_a_usable_name_is_nobody(name: str) -> None:
    with pytest.raises(Unauthenticated):
        auth.user_of_certificate({"subject": ((("commonName", name),),)}, 0.0)


def test_a_certificate_may_expire_while_its_connection_lasts() -> None:
    certificate = {**CERTIFICATE, "notAfter": "Jan  2 00:00:00 2026 GMT"}
    day = 86400.0
    until = 1767312000.0
    assert auth.user_of_certificate(certificate, until - day).name == "root"
    with pytest.raises(Unauthenticated, match="expired"):
        auth.user_of_certificate(certificate, until + day)


async def test_tokens_and_nobody() -> None:
    assert await auth.authenticate(None, "Bearer good", OneToken(), 0.0) == BOB
    assert await auth.authenticate(None, None, OneToken(), 0.0) == ANONYMOUS
    assert await auth.authenticate({}, "", OneToken(), 0.0) == ANONYMOUS


@pytest.mark.parametrize("header", ["Bearer bad", "Basic Ym9iOmJvYg==", "Bearer", "Bearer a b"])
async def test_a_wrong_credential_is_an_error_and_not_anonymous(header: str) -> None:
    with pytest.raises(Unauthenticated):
        await auth.authenticate(None, header, OneToken(), 0.0)


async def test_where_no_tokens_are_issued_none_is_valid() -> None:
    with pytest.raises(Unauthenticated):
        await NoTokens().verify("x")


async def test_a_token_of_an_account_lives_as_long_as_account_and_pod() -> None:
    clock, store = ManualClock(), Memory()
    keyring = Keyring("https://isthmus", ec.generate_private_key(ec.SECP256R1()))
    kind = BUILT_IN.by_kind("", "ServiceAccount")
    assert kind is not None
    key = kind.key("faces", "face")
    account = BoundObject("serviceaccounts", "faces", "face", "u1")
    token = keyring.sign(account, now=clock.utc(), lifetime=timedelta(hours=1))
    tokens = AccountTokens(keyring, store, BUILT_IN, clock)
    with pytest.raises(Unauthenticated):
        await tokens.verify(token)
    await store.txn([], [Put(key, encode({"metadata": {"name": "face", "uid": "u1"}}))])
    user = (await tokens.verify(token)).user
    assert (user.name, user.uid) == ("system:serviceaccount:faces:face", "u1")
    assert "system:serviceaccounts:faces" in user.groups
    await store.txn([], [Delete(key)])
    await store.txn([], [Put(key, encode({"metadata": {"name": "face", "uid": "u2"}}))])
    with pytest.raises(Unauthenticated):
        await tokens.verify(token)


def test_masters_may_all_and_others_next_to_nothing() -> None:
    rule = authorizer()
    secrets = Attributes("list", resource="secrets", namespace="x")
    review = Attributes("create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
    assert rule.decide(ADMIN, secrets).allowed
    assert not rule.decide(BOB, secrets).allowed
    assert rule.decide(BOB, review).allowed
    assert not rule.decide(ANONYMOUS, review).allowed
    assert not rule.decide(BOB, review._replace(resource="subjectaccessreviews")).allowed


@pytest.mark.parametrize(
    ("user", "path", "allowed"),
    [
        (ANONYMOUS, "/healthz", True),
        (ANONYMOUS, "/version", True),
        (ANONYMOUS, "/api", False),
        (ANONYMOUS, "/", False),
        (BOB, "/api/v1", True),
        (BOB, "/openapi/v3", True),
        (BOB, "/metrics", False),
        (ADMIN, "/metrics", True),
    ],
)
def test_paths_without_resources(user: User, path: str, allowed: bool) -> None:
    asked = auth.attributes("GET", "get", parse(path))
    assert authorizer().decide(user, asked).allowed is allowed


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            Attributes("list", "", "v1", "services", namespace="y"),
            'User "bob" cannot list resource "services" in API group "" in the namespace "y"',
        ),
        (
            Attributes("update", "apps", "v1", "deployments", "scale", "y", "x"),
            (
                'User "bob" cannot update resource "deployments/scale" in API group "apps" '
                'in the namespace "y"'
            ),
        ),
        (
            Attributes("get", "", "v1", "nodes", name="n"),
            'User "bob" cannot get resource "nodes" in API group "" at the cluster scope',
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "bob" cannot get path "/metrics"'),
    ],
)
def test_the_words_of_a_refusal(asked: Attributes, message: str) -> None:
    with pytest.raises(Forbidden) as caught:
        auth.require(authorizer(), BOB, asked)
    assert caught.value.message == message


class MayImpersonate:
    """Allows `impersonate` of what it was given, and nothing else."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = allowed

    def decide(self, user: User, asked: Attributes) -> Decision:
        known = (asked.resource, asked.name) in self._allowed
        return Decision(asked.verb == "impersonate" and known)

    def rights(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        raise AssertionError


def test_without_the_headers_nobody_changes() -> None:
    assert impersonate((("Accept", "x"),), BOB, MayImpersonate()) is BOB


def test_a_user_and_groups_are_put_on_if_each_is_allowed() -> None:
    headers = (
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Scopes", "view"),
    )
    rule = MayImpersonate(
        ("users", "eve"), ("groups", "devs"), ("uids", "7"), ("userextras", "view")
    )
    worn = impersonate(headers, BOB, rule)
    assert worn == User("eve", ("devs", "system:authenticated"), "7", {"scopes": ("view",)})
    lesser = MayImpersonate(("users", "eve"), ("uids", "7"), ("userextras", "view"))
    with pytest.raises(Forbidden, match="groups"):
        impersonate(headers, BOB, lesser)


def test_an_account_put_on_has_its_groups() -> None:
    headers = (("Impersonate-User", "system:serviceaccount:faces:face"),)
    worn = impersonate(headers, BOB, MayImpersonate(("serviceaccounts", "face")))
    assert worn.groups == (
        "system:serviceaccounts", "system:serviceaccounts:faces", "system:authenticated",
    )  # fmt: skip


def test_anonymous_put_on_is_not_authenticated() -> None:
    headers = (("Impersonate-User", "system:anonymous"),)
    worn = impersonate(headers, BOB, MayImpersonate(("users", "system:anonymous")))
    assert worn.groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    "headers",
    [
        (("Impersonate-Group", "system:masters"),),
        (("Impersonate-User", "a"), ("Impersonate-User", "b")),
        (("Impersonate-User", ""),),
        (("Impersonate-User", "a\udcff"),),
        (("Impersonate-User", "a"), ("Impersonate-Group", "x\x7f")),
        (("Impersonate-User", "a"), ("Impersonate-Extra-", "x")),
        (("Impersonate-User", "a"), ("Impersonate-Extra-%0a", "x")),
        (("Impersonate-User", "a"), *[("Impersonate-Group", f"g{n}") for n in range(70)]),
    ],
)
def test_impersonation_that_cannot_be_meant(headers: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(BadRequest):
        impersonate(headers, ADMIN, authorizer())


def test_a_user_as_reviews_show_it() -> None:
    shown = auth.user_info(User("a", ("g",), "7", {"k": ("v",)}))
    assert shown == {"username": "a", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
    assert auth.user_info(User("a")) == {"username": "a"}


def test_keys_of_extras_are_percent_decoded() -> None:
    headers = (("Impersonate-User", "eve"), ("Impersonate-Extra-acme.io%2fscope", "v"))
    worn = impersonate(headers, BOB, MayImpersonate(("users", "eve"), ("userextras", "v")))
    assert worn.extra == {"acme.io/scope": ("v",)}


@pytest.mark.parametrize(
    "name",
    [
        "system:serviceaccount:faces:",
        "system:serviceaccount::face",
        "system:serviceaccount:faces:a:b",
        "system:serviceaccount:FACES:face",
        "system:serviceaccounts:faces:face",
        "xsystem:serviceaccount:faces:face",
    ],
)
def test_what_only_looks_like_an_account_is_a_user(name: str) -> None:
    headers = (("Impersonate-User", name),)
    account = name.rpartition(":")[2]
    with pytest.raises(Forbidden, match='resource "users"'):
        impersonate(headers, BOB, MayImpersonate(("serviceaccounts", account)))
    worn = impersonate(headers, BOB, MayImpersonate(("users", name)))
    assert worn.groups == ("system:authenticated",)


def test_who_says_to_be_nobody_is_not_authenticated() -> None:
    headers = (("Impersonate-User", "x"), ("Impersonate-Group", "system:unauthenticated"))
    rule = MayImpersonate(("users", "x"), ("groups", "system:unauthenticated"))
    assert impersonate(headers, BOB, rule).groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    ("verb", "path", "selector", "namespace", "name"),
    [
        ("get", "/api/v1/namespaces/a", "", "a", "a"),
        ("list", "/api/v1/namespaces", "metadata.name=a", "", "a"),
        ("get", "/api/v1/nodes/a", "", "", "a"),
        ("list", "/api/v1/namespaces/a/pods", "", "a", ""),
        ("list", "/api/v1/namespaces/a/pods", "metadata.name=x", "a", "x"),
        ("watch", "/api/v1/namespaces/a/pods", "metadata.name==x", "a", "x"),
        (
            "deletecollection",
            "/api/v1/namespaces/a/pods",
            "status.phase=Y,metadata.name=x",
            "a",
            "x",
        ),
        ("list", "/api/v1/namespaces/a/pods", "metadata.name!=x", "a", ""),
        ("list", "/api/v1/namespaces/a/pods", "metadata.names=x", "a", ""),
        ("create", "/api/v1/namespaces/a/pods", "metadata.name=x", "a", ""),
        ("get", "/api/v1/namespaces/a/pods/y", "metadata.name=x", "a", "y"),
        ("list", "/api/v1/namespaces/a/pods", "metadata.name=x\\,y", "a", "x,y"),
    ],
)
def test_what_a_request_asks_about(
    verb: str, path: str, selector: str, namespace: str, name: str
) -> None:
    query = {"fieldSelector": (selector,)} if selector else {}
    asked = auth.attributes("GET", verb, parse(path), query)
    assert (asked.namespace, asked.name) == (namespace, name)

from __future__ import annotations

import base64
import json

import pytest

from isthmus.app.links.renewing import Claims, claims_of, replaced


def token(claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.sig"


ACCOUNT = "system:serviceaccount:mc:reader"


def test_an_accounts_token_that_ends_is_due_at_two_thirds() -> None:
    found = claims_of(token({"sub": ACCOUNT, "iat": 1000, "exp": 1900}))
    assert found == Claims("mc", "reader", 1000, 1900)
    assert found.due == pytest.approx(1600)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b.c",
        "e30.%%%.x",
        token([]),
        token({"sub": ACCOUNT}),  # without an end: it is left alone
        token({"sub": ACCOUNT, "iat": 5, "exp": 5}),
        token({"sub": "me@example.test", "iat": 1, "exp": 2}),
        token({"sub": "system:serviceaccount:mc", "iat": 1, "exp": 2}),
        token({"sub": "system:serviceaccount:mc/../x:y", "iat": 1, "exp": 2}),
        token({"sub": "system:serviceaccount:mc:y?x", "iat": 1, "exp": 2}),
        "x" * 100_000,
    ],
)
def test_others_are_not_renewed(text: str) -> None:
    assert claims_of(text) is None


def secret(text: str) -> dict[str, object]:
    return {"data": {"other": "eA==", "kubeconfig": base64.b64encode(text.encode()).decode()}}


def test_only_the_token_is_replaced() -> None:
    before = secret("# mine\nusers: [{user: {token: 'old'}}]\n")
    assert replaced(before, "old", "new") == secret("# mine\nusers: [{user: {token: 'new'}}]\n")


@pytest.mark.parametrize("held", [secret("users: []"), {}, {"data": {"kubeconfig": "%"}}])
def test_a_secret_that_somebody_changed_is_left_alone(held: dict[str, object]) -> None:
    assert replaced(held, "old", "new") is held

from __future__ import annotations

import pytest

from isthmus.app.explain.question import From, To, headers, question, receiver, sender
from isthmus.errors import BadRequest


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shop/cart-a", From("Pod", "shop", "cart-a")),
        ("shop/pod/cart-a", From("Pod", "shop", "cart-a")),
        ("shop/deploy/cart", From("Deployment", "shop", "cart")),
        ("shop/Deployment/cart", From("Deployment", "shop", "cart")),
        ("shop/sa/cart@10.0.0.1", From("ServiceAccount", "shop", "cart", "10.0.0.1")),
        ("a.b.serviceaccount.identity.l.td@fd00::1", From(
            "Identity", "", "a.b.serviceaccount.identity.l.td", "fd00::1")),
        ("spiffe://td/ns/a@10.0.0.1", From("Identity", "", "spiffe://td/ns/a", "10.0.0.1")),
    ],
)  # fmt: skip
def test_who_sends(text: str, found: From) -> None:
    assert sender(text) == found


@pytest.mark.parametrize(
    "text", ["", "cart", "shop/", "/cart", "deploy/cart", "a/b/c/d", "shop/cron/x", "a/b@nowhere"]
)
def test_who_is_nobody(text: str) -> None:
    with pytest.raises(BadRequest):
        sender(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cart", To("cart")),
        ("Cart.Shop.:80", To("cart.shop", "", 80)),
        ("10.0.0.1:80", To("10.0.0.1", "", 80)),
        ("[fd00::1]:80", To("fd00::1", "", 80)),
        ("fd00::1", To("fd00::1")),
        ("shop/cart-a:80", To("cart-a", "shop", 80)),
        ("shop/pod/cart-a", To("cart-a", "shop")),
    ],
)
def test_whom_it_is_for(text: str, found: To) -> None:
    assert receiver(text) == found


@pytest.mark.parametrize("text", ["", ":80", "cart:http", "cart:65536", "/cart", "shop/"])
def test_whom_nothing_is_for(text: str) -> None:
    with pytest.raises(BadRequest):
        receiver(text)


def test_headers_are_lines() -> None:
    assert headers("a: b\nX-C:d:e\n") == [("a", "b"), ("X-C", "d:e")]
    for bad in ("a", ": b", "\n".join(f"h{n}: v" for n in range(65))):
        with pytest.raises(BadRequest):
            headers(bad)


@pytest.mark.parametrize(
    "more",
    [
        {"session": "smtp"},
        {"path": "x"},
        {"throw": "1000"},
        {"throw": "-1"},
        {"address": "here"},
        {"path": "/" + "x" * 4096},
    ],
)
def test_other_parts_are_checked(more: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        question({"from": "a/b", "to": "c"} | more)

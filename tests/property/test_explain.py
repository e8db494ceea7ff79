"""Histories of objects against what is explained, and what clients of linkerd's wire are told.

Whatever was applied and deleted in whatever order: a long watch holds what is computed from
scratch; every question has an answer; the answer's end agrees with the decision of the same cells.
"""

from __future__ import annotations

from hypothesis import given

from isthmus.app.explain import Explained, Outcome, explained
from isthmus.app.explain.question import Question, question
from isthmus.dialects.linkerd import outbound_policy, policy_faults
from isthmus.engine import Query
from isthmus.mesh.census import Place
from isthmus.mesh.resolution import Asked, Dialled, Named, is_known, outbound_for, resolved
from isthmus.model.key import ObjectKey
from tests.property.test_outbound import STEPS, Step, fresh, take, world
from tests.support.meshworld import LOCAL

SHOP = Place(LOCAL, "shop")
ASKED: tuple[Asked, ...] = (
    Named(SHOP, ObjectKey(LOCAL, "shop", "cart"), 80),
    Dialled(SHOP, "10.96.0.10", 80),
    Dialled(SHOP, "10.1.0.1", 80),
    Dialled(SHOP, "203.0.113.9", 8000),
    Dialled(SHOP, "198.51.100.9", 443),
)
QUESTIONS: tuple[Question, ...] = tuple(
    question({"from": sender, "to": to, "address": "203.0.113.9", **more})
    for sender, to, more in (
        ("shop/me", "cart", {}),
        ("shop/me", "cart:80", {"path": "/x", "headers": "a: b", "throw": "600"}),
        ("shop/me", "till.pay", {"session": "tcp"}),
        ("shop/me", "a.example", {}),
        ("shop/me", "a.example:443", {"session": "tls"}),
        ("shop/me", "10.1.0.1:80", {}),
        ("shop/a", "shop/me:8080", {"path": "/live"}),
        ("pay/sa/till", "cart.shop", {"session": "grpc", "path": "/a.B/C"}),
        ("me.shop.serviceaccount.identity.isthmus.trust.mesh.test@10.1.0.9", "shop/a:80", {}),
    )
)


@given(STEPS)
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step]) -> None:
    held = world()
    queries: tuple[Query[..., object], ...] = (outbound_policy, resolved, is_known, outbound_for)
    cells: list[tuple[Query[..., object], object]] = [
        (query, asked) for query in queries for asked in ASKED
    ]
    cells += [(explained, asked) for asked in QUESTIONS]
    values: dict[object, object] = {}
    with held.db.watch(lambda: None) as watch:
        for cell in cells:
            watch.add(*cell)
        for step in steps:
            take(held, step)
            values |= watch.take()
        assert not watch.failed()
    other = fresh(steps)
    for query, key in cells:
        assert held.db.read(query, key) == other.db.read(query, key)
    for address, value in values.items():
        assert isinstance(address, tuple)
        assert value == other.db.read(*address), address


@given(STEPS)
def test_every_question_has_an_answer_or_a_reason(steps: list[Step]) -> None:
    held = fresh(steps)
    for asked in QUESTIONS:
        found: Explained = held.db.read(explained, asked)
        assert bool(found.problem) == (found.verdict is None)
        if found.verdict is None:
            continue
        assert found.lines
        ended = {end.verdict.outcome for end in found.ends}
        if len(ended) == 1 and found.verdict.outcome is not Outcome.DEPENDS:
            assert ended == {found.verdict.outcome}


@given(STEPS)
def test_what_linkerds_wire_lacks_is_the_same_from_scratch(steps: list[Step]) -> None:
    held, other = fresh(steps), fresh(steps)
    for asked in ASKED:
        name = held.db.read(resolved, asked)
        if name is not None:
            assert held.db.read(policy_faults, name) == other.db.read(policy_faults, name)

"""Histories of objects against what is explained, and what clients of linkerd's wire are told.

Whatever was applied and deleted in whatever order: a long watch holds what is computed from
scratch; every question has an answer, however it is spelt.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.app.explain import Explained, Outcome, explained, page
from isthmus.app.explain.question import Question, question
from isthmus.dialects.linkerd import Fault, outbound_policy, outbound_question, policy_faults
from isthmus.engine import Query
from isthmus.mesh.census import Place
from isthmus.mesh.resolution import Asked, Dialled, Named, is_known, outbound_for, resolved
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import outbound_pb2 as pb
from tests.property.test_outbound import STEPS, Step, fresh, take, world
from tests.support.explaining import faces
from tests.support.meshworld import LOCAL

HOSTILE = faces()
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


WORDS = st.sampled_from(
    ("faces/face-1", "faces/old-1", "tools/sa/x", "smiley", "faces/smiley-1", "peers", "cell",
     "shop/me", "cart", "till.pay", "@", ":", "/", "[", "]", "..", "80",
     "10.96.0.10", "fd00::1", "203.0.113.9", "spiffe://", "deploy/", "a.example", "\n", "\x00", "é",
     "-1", "%", "?", "::ffff:10.96.0.10", "0.0.0.0")
)  # fmt: skip
TEXTS = st.one_of(st.lists(WORDS, max_size=4).map("".join), st.text(max_size=12))
PARTS = ("method", "path", "headers", "session", "address", "throw", "at")


@given(st.fixed_dictionaries({"from": TEXTS, "to": TEXTS}, optional=dict.fromkeys(PARTS, TEXTS)))
def test_whatever_is_asked_is_answered(said: dict[str, str]) -> None:
    found = page(HOSTILE.db.read)(said)
    assert isinstance(found, Explained)
    assert bool(found.problem) == (found.verdict is None)
    msgspec.json.encode(found)


@given(TEXTS, TEXTS)
def test_whatever_a_proxy_asks_gets_an_answer_or_a_status(workload: str, authority: str) -> None:
    for who in (workload, "shop:me"):
        spec = pb.TrafficSpec(source_workload=who, authority=authority)
        found = outbound_question(HOSTILE.db.read, spec.SerializeToString())
        if isinstance(found, Fault):
            assert found.status in ("INVALID_ARGUMENT", "NOT_FOUND")
        else:
            pb.OutboundPolicy.FromString(HOSTILE.db.read(outbound_policy, found))

from __future__ import annotations

from typing import Any

import pytest

from isthmus.ir.profile import All, Method, Not, PathRegex, Status
from isthmus.ir.profile import Any as AnyOf
from isthmus.ir.rules import Budget
from isthmus.mesh.serviceprofile import Fault, Meaning, Share, meaning, split_shares
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, World

CART = ObjectKey(LOCAL, "shop", "cart")
OK: dict[str, Any] = {"name": "ok", "condition": {"pathRegex": "/ok"}}


def said(**spec: object) -> Meaning:
    found = World({"sp": "shop/cart", "spec": spec}).db.read(meaning, CART)
    assert found is not None
    return found


def test_there_is_no_meaning_without_a_profile() -> None:
    assert World().db.read(meaning, CART) is None
    assert said() == Meaning()


def test_a_route_with_a_field_that_nobody_knows_is_left_out_and_the_others_stay() -> None:
    strange = {"name": "r", "condition": {"all": [{"method": "GET", "pathRegexp": "/"}]}}
    found = said(routes=[strange, OK], retryBudget=BUDGET | {"jitter": 1}, extra={})
    assert [route.name for route in found.routes] == ["ok"]
    assert found.budget == Budget(500, 1, 5000)
    assert found.faults == (
        Fault("spec.extra", "unknown field"),
        Fault("spec.routes[0].condition.all[0].pathRegexp", "unknown field"),
        Fault("spec.retryBudget.jitter", "unknown field"),
    )


BUDGET: dict[str, Any] = {"retryRatio": 0.5, "minRetriesPerSecond": 1, "ttl": "5s"}

REQUESTS: list[tuple[dict[str, Any], object]] = [
    ({"pathRegex": "/a"}, PathRegex("/a")),
    ({"method": "post"}, Method("POST")),
    ({"not": {"method": "GET"}}, Not(Method("GET"))),
    ({"all": [{"method": "GET"}]}, All((Method("GET"),))),
    ({"any": [{"method": "GET"}, {"pathRegex": "/b"}]}, AnyOf((Method("GET"), PathRegex("/b")))),
    ({"any": []}, AnyOf(())),
    (
        {
            "pathRegex": "/p",
            "not": {"method": "PUT"},
            "method": "GET",
            "any": [{"method": "A"}],
            "all": [{"method": "B"}],
        },
        All(
            (
                All((Method("B"),)),
                AnyOf((Method("A"),)),
                Method("GET"),
                Not(Method("PUT")),
                PathRegex("/p"),
            )
        ),
    ),
]


@pytest.mark.parametrize(("condition", "found"), REQUESTS)
def test_request_conditions(condition: dict[str, Any], found: object) -> None:
    (route,) = said(routes=[{"name": "r", "condition": condition}]).routes
    assert route.condition == found


RESPONSES: list[tuple[dict[str, Any], object]] = [
    ({"status": {"min": 500, "max": 599}}, Status(500, 599)),
    ({"status": {"min": 404}}, Status(404, 0)),
    ({"status": {}}, Status(0, 0)),
    ({"not": {"status": {"max": 400}}}, Not(Status(0, 400))),
    (
        {
            "not": {"status": {"min": 1 + 403}},
            "status": {"min": 400, "max": 499},
            "any": [{"status": {"min": 500}}],
            "all": [{"status": {"min": 501}}],
        },
        All(
            (
                All((Status(501, 0),)),
                AnyOf((Status(500, 0),)),
                Status(400, 499),
                Not(Status(404, 0)),
            )
        ),
    ),
]


@pytest.mark.parametrize(("condition", "found"), RESPONSES)
def test_response_conditions(condition: dict[str, Any], found: object) -> None:
    classes = [{"condition": condition, "isFailure": True}]
    (route,) = said(routes=[{**OK, "responseClasses": classes}]).routes
    (one,) = route.classes
    assert (one.condition, one.failure) == (found, True)


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"method": "GET"}
    for _ in range(levels):
        found = {"not": found}
    return found


BAD: list[tuple[dict[str, Any], str]] = [
    ({"condition": {}}, "condition"),
    ({"condition": {"all": [{"method": "GET"}, {}]}}, "condition.all[1]"),
    ({"condition": {"any": [{"not": {}}]}}, "condition.any[0].not"),
    ({"condition": {"pathRegex": "("}}, "condition.pathRegex"),
    ({"condition": {"pathRegex": "a" * 5000}}, "condition.pathRegex"),
    ({"responseClasses": [{"condition": {}}]}, "responseClasses[0].condition"),
    (
        {"responseClasses": [{"condition": {"status": {"min": 201, "max": 200}}}]},
        "responseClasses[0].condition.status",
    ),
    (
        {"responseClasses": [{"condition": {"status": {"min": 99}}}]},
        "responseClasses[0].condition.status",
    ),
    (
        {"responseClasses": [{"condition": {"any": [{"status": {"max": 600}}]}}]},
        "responseClasses[0].condition.any[0].status",
    ),
]


@pytest.mark.parametrize(("change", "path"), BAD)
def test_a_route_that_means_nothing_is_left_out_and_told(change: dict[str, Any], path: str) -> None:
    found = said(routes=[OK, {**OK, "name": "bad", **change}, {**OK, "name": "last"}])
    assert [route.name for route in found.routes] == ["ok", "last"]
    assert [fault.path for fault in found.faults] == [f"spec.routes[1].{path}"]


def test_conditions_may_be_nested_and_not_without_end() -> None:
    assert said(routes=[{**OK, "condition": deep(32)}]).routes
    found = said(routes=[{**OK, "condition": deep(33)}])
    assert not found.routes
    assert found.faults[0].why == "nested more than 32 deep"
    responses = [{"condition": {"any": [{"not": {"status": {"min": 500}}}]}}]
    assert said(routes=[{**OK, "responseClasses": responses}]).routes


@pytest.mark.parametrize(
    ("text", "milliseconds", "faulty"),
    [
        ("300ms", 300, False),
        ("1m30s", 90_000, False),
        ("1.5h", 5_400_000, False),
        ("1us", 1, False),
        ("", None, False),
        ("0", None, False),
        ("0s", None, False),
        ("soon", None, True),
        ("-1s", None, True),
    ],
)
def test_timeouts(text: str, milliseconds: int | None, faulty: bool) -> None:
    found = said(routes=[{**OK, "timeout": text, "isRetryable": True}])
    (route,) = found.routes
    assert (route.timeout, route.retryable) == (milliseconds, True)
    assert [fault.path for fault in found.faults] == ["spec.routes[0].timeout"] * faulty


@pytest.mark.parametrize(
    ("budget", "found", "fault"),
    [
        (None, Budget(), None),
        ({"retryRatio": 0.5, "minRetriesPerSecond": 3, "ttl": "45s"}, Budget(500, 3, 45_000), None),
        ({"retryRatio": 0, "minRetriesPerSecond": 0, "ttl": "1s"}, Budget(0, 0, 1000), None),
        ({"retryRatio": 0.5, "minRetriesPerSecond": 3, "ttl": "a while"}, Budget(), "ttl"),
        ({"retryRatio": 0.5, "minRetriesPerSecond": 3, "ttl": "0s"}, Budget(), "ttl"),
        ({"retryRatio": 0.5, "minRetriesPerSecond": 3}, Budget(), "ttl"),
        ({"retryRatio": -1, "ttl": "1s"}, Budget(), "retryRatio"),
        ({"retryRatio": 1e9, "ttl": "1s"}, Budget(), "retryRatio"),
        ({"minRetriesPerSecond": -1, "ttl": "1s"}, Budget(), "minRetriesPerSecond"),
        ({"minRetriesPerSecond": 2**32, "ttl": "1s"}, Budget(), "minRetriesPerSecond"),
    ],
)
def test_a_budget_is_as_written_or_the_default(
    budget: dict[str, Any] | None, found: Budget, fault: str | None
) -> None:
    meant = said(retryBudget=budget, routes=[OK])
    assert meant.budget == found
    assert [one.path for one in meant.faults] == ([f"spec.retryBudget.{fault}"] if fault else [])
    assert meant.routes


@pytest.mark.parametrize(
    ("weight", "wire"),
    [
        (1, 10_000),
        ("500m", 5_000),
        (0, 0),
        ("0.25", 2_500),
        (0.25, 2_500),
        ("1u", 10),
        ("429496", 4_294_960_000),
        (429_497, None),
        ("-1", None),
        ("half", None),
    ],
)
def test_weights_of_overrides(weight: object, wire: int | None) -> None:
    found = said(dstOverrides=[{"authority": "till", "weight": weight}])
    assert found.shares == ((Share("till", wire),) if wire is not None else ())
    assert bool(found.faults) is (wire is None)


def test_an_override_must_lead_somewhere() -> None:
    found = said(dstOverrides=[{"weight": 1}, {"authority": "till", "weight": 1}])
    assert found.shares == (Share("till", 10_000),)
    assert found.faults == (Fault("spec.dstOverrides[0].authority", "must name where to"),)


# --------------------------------------------------------------------------------- splits


def shares(*objects: dict[str, Any]) -> tuple[Share, ...]:
    return World(*objects).db.read(split_shares, CART, "mesh.test")


def split(name: str, *backends: list[Any], service: str = "cart") -> dict[str, Any]:
    return {"split": f"shop/{name}", "service": service, "backends": backends}


def test_a_split_shares_a_service_out() -> None:
    assert shares(split("one", ["a", 1], ["b", 3])) == (
        Share("a.shop.svc.mesh.test.", 10_000),
        Share("b.shop.svc.mesh.test.", 30_000),
    )
    assert shares(split("one", ["a", 1], service="till")) == ()
    assert shares() == ()


def test_weights_too_large_for_the_wire_keep_their_proportion() -> None:
    found = shares(split("one", ["a", 1], ["b", 2**31 - 1]))
    assert [each.weight for each in found] == [1, 2**31 - 1]


def test_of_several_splits_the_oldest_counts() -> None:
    world = World(split("a", ["x", 1]), split("b", ["y", 1]))
    assert world.db.read(split_shares, CART, "mesh.test")[0].authority.startswith("x.")
    document = {
        "metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"service": "cart", "backends": [{"service": "z", "weight": 1}]},
    }
    world.write("split shop/z", document)
    assert world.db.read(split_shares, CART, "mesh.test")[0].authority.startswith("z.")

"""Which objects `isthmus check` names, by what their statuses say."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.cli import object_checks
from isthmus.cli.checks import Result, outcomes
from isthmus.cli.object_checks import PATHS, SHOWN, unwell
from isthmus.errors import NotFound


def condition(name: str, status: str = "False", message: str = "why") -> dict[str, Any]:
    return {"type": name, "status": status, "reason": "Because", "message": message}


def parent(*conditions: dict[str, Any], writer: str = object_checks.WRITER) -> dict[str, Any]:
    return {"controllerName": writer, "conditions": list(conditions)}


@pytest.mark.parametrize(
    ("name", "status", "named"),
    [
        ("Accepted", "True", False),
        ("Accepted", "False", True),
        ("Accepted", "Unknown", True),
        ("PartiallyInvalid", "True", True),
        ("PartiallyInvalid", "False", False),
        ("isthmus.dev/ProxyRejected", "False", False),
        ("isthmus.dev/ProxyRejected", "True", True),
        ("multicluster.isthmus.dev/carried-east", "Unknown", True),
        ("multicluster.isthmus.dev/carried-east", "True", False),
        ("LoadBalancerReady", "False", False),
    ],
)
def test_conditions_that_are_not_well(name: str, status: str, named: bool) -> None:
    said = condition(name, status)
    assert list(unwell({"conditions": [said]})) == ([said] if named else [])
    assert list(unwell({"parents": [parent(said)]})) == ([said] if named else [])


def test_what_other_controllers_say_of_a_route_is_theirs() -> None:
    theirs = parent(condition("Accepted"), writer="example.org/gateway")
    assert list(unwell({"parents": [theirs]})) == []


class Api:
    """An API that serves routes and Services alone."""

    def __init__(self, routes: list[dict[str, Any]]) -> None:
        self._held = {PATHS["HTTPRoute"]: routes, PATHS["Service"]: []}

    def get(self, path: str, **_: str) -> dict[str, Any]:
        if path not in self._held:
            raise NotFound(path)
        return {"items": self._held[path]}


def route(name: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    meta = {"namespace": "shop", "name": name}
    return {"metadata": meta, "status": {"parents": [parent(*conditions)]}}


def told(*routes: dict[str, Any]) -> tuple[Result, list[str]]:
    api: Any = Api(list(routes))
    [found] = outcomes([object_checks.category(lambda: api)], 0, lambda: 0, lambda _: None)
    return found.result, found.error.splitlines()


def test_a_line_for_each() -> None:
    assert told(route("well", condition("Accepted", "True"))) == (Result.SUCCESS, [])
    bad = route("bad", condition("Accepted", message=""), condition("ResolvedRefs"))
    assert told(bad) == (
        Result.WARNING,
        [
            "* HTTPRoute shop/bad: Accepted is False (Because)",
            "* HTTPRoute shop/bad: ResolvedRefs is False (Because): why",
        ],
    )


def test_many_are_not_all_told() -> None:
    _, lines = told(*(route(f"r{number}", condition("Accepted")) for number in range(SHOWN + 2)))
    assert lines[SHOWN:] == ["* and 2 more"]

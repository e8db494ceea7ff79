"""How checks are run and told, and that every hint leads somewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli import checks, mesh_checks
from isthmus.cli.checks import Category, Check, Outcome, Result, Settled, Skip, outcomes, tell
from isthmus.cli.cluster import Cluster
from isthmus.cli.kubeconfig import Access
from isthmus.cli.multicluster import checks as link_checks
from isthmus.cli.multicluster import names
from isthmus.cli.multicluster.facts import Facts
from isthmus.errors import UserFault

Capture = pytest.CaptureFixture[str]
DOCS = Path(__file__).parents[3] / "docs"


def well() -> str:
    return ""


def bad() -> str:
    raise UserFault("two\nlines")


def skipped() -> str:
    raise Skip


class Hand:
    """A clock that pausing turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def pause(self, span: float) -> None:
        self.now += span


def found(*categories: Category, wait: float = 0.0) -> list[Outcome]:
    hand = Hand()
    return list(outcomes(categories, wait, lambda: hand.now, hand.pause))


ALL = (
    Category(
        "one",
        (
            Check("is well", "a", well),
            Check("lists", "a", lambda: "    * x\n    * y"),
            Check("is nothing", "a", skipped),
        ),
    ),
    Category("two", (Check("warns", "b", bad, warns=True), Check("is wrong", "c", bad))),
)


def test_the_table(capsys: Capture) -> None:
    assert tell(found(*ALL), "table") == 1
    assert capsys.readouterr().out == (
        "one\n---\n√ is well\n√ lists\n    * x\n    * y\n"
        "\ntwo\n---\n‼ warns\n    two\n    lines\n    see docs/checks.md#b for hints\n"
        "× is wrong\n    two\n    lines\n    see docs/checks.md#c for hints\n"
        "\nStatus check results are ×\n"
    )


def test_short_tells_what_is_not_well(capsys: Capture) -> None:
    assert tell(found(*ALL), "short") == 1
    out = capsys.readouterr().out
    assert "one" not in out
    assert out.startswith("two\n---\n‼ warns\n")
    assert tell(found(ALL[0]), "short") == 0
    assert capsys.readouterr().out == "Status check results are √\n"


def test_json(capsys: Capture) -> None:
    assert tell(found(*ALL), "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["success"] is False
    assert told["categories"][0] == {
        "categoryName": "one",
        "checks": [
            {"description": "is well", "result": "success"},
            {"description": "lists", "result": "success"},
        ],
    }
    assert told["categories"][1]["checks"][0] == {
        "description": "warns",
        "hint": "docs/checks.md#b",
        "error": "two\nlines",
        "result": "warning",
    }


def test_warnings_alone_are_no_failure(capsys: Capture) -> None:
    assert tell(found(Category("x", (Check("w", "h", bad, warns=True),))), "table") == 0
    assert capsys.readouterr().out.endswith("Status check results are √\n")


def test_a_fatal_failure_ends_the_run() -> None:
    ends = Category("x", (Check("f", "h", bad, fatal=True), Check("never", "h", well)))
    assert [each.description for each in found(ends, ALL[0])] == ["f"]


def test_what_may_become_right_is_waited_for() -> None:
    tries = iter([bad, bad, well])
    soon = Check("soon", "h", lambda: str(next(tries)()), waits=True)
    [seen] = found(Category("x", (soon,)), wait=5)
    assert seen.result is Result.SUCCESS
    never = Check("never", "h", bad, waits=True)
    assert [each.result for each in found(Category("x", (never,)), wait=5)] == [Result.ERROR]


def test_what_waiting_does_not_mend_is_told_soon() -> None:
    tries: list[int] = []

    def settled() -> str:
        tries.append(1)
        raise Settled("the token has ended")

    [seen] = found(Category("x", (Check("never", "h", settled, waits=True),)), wait=300)
    assert seen.result is Result.ERROR
    assert 1 < len(tries) < 10


@pytest.mark.parametrize("text", ["", "5", "-1s", "soon"])
def test_a_wait_that_is_no_duration(text: str) -> None:
    with pytest.raises(UserFault, match="is no duration"):
        checks.seconds(text)


def test_without_links_no_anchors_are_compared() -> None:
    class Bare:
        def get(self, path: str, **_: str) -> dict[str, object]:
            return {"items": []} if path == names.LINKS else {}

    bare: Any = Bare()
    world = link_checks.World(bare, Facts(anchors=""))
    outward, _ = link_checks.categories(world)
    told = {each.description for each in found(outward)}
    assert "clusters share trust anchors" not in told


def test_every_hint_is_a_heading() -> None:
    cluster = Cluster(Access("x", "http://127.0.0.1:1"))
    world = mesh_checks.World(lambda: cluster, "linkerd", datetime(2026, 1, 1, tzinfo=UTC))
    named = [
        *mesh_checks.of_cluster(world, "1", proxies=True, namespace=None),
        *link_checks.categories(link_checks.World(cluster, Facts())),
    ]
    hints = {check.hint for category in named for check in category.checks}
    headings = {
        line.removeprefix("### ")
        for line in (DOCS / "checks.md").read_text().splitlines()
        if line.startswith("### ")
    }
    assert hints == headings

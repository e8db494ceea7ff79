from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.controllers.rollout import (
    Bounds,
    Held,
    Targets,
    bounds,
    paused,
    recreating,
    rolling,
    share,
)
from isthmus.model.apps import RollingUpdate, Strategy
from isthmus.model.apps.deployment import DeploymentSpec


@pytest.mark.parametrize(
    ("value", "of", "up", "pods"),
    [
        (3, 10, True, 3),
        (-1, 10, True, 0),
        ("25%", 10, True, 3),
        ("25%", 10, False, 2),
        ("100%", 7, False, 7),
        ("0%", 7, True, 0),
        ("25", 10, True, 0),
        ("%", 10, True, 0),
        ("many%", 10, True, 0),
        ("9999999999%", 10, True, 0),
    ],
)
def test_a_share_is_a_number_or_a_percentage(
    value: int | str, of: int, up: bool, pods: int
) -> None:
    assert share(value, of, up=up) == pods


@pytest.mark.parametrize(
    ("surge", "unavailable", "result"),
    [
        (None, None, Bounds(3, 2)),
        (0, 0, Bounds(0, 1)),
        ("10%", "10%", Bounds(1, 1)),
        (0, 50, Bounds(0, 10)),
    ],
)
def test_bounds(surge: int | str | None, unavailable: int | str | None, result: Bounds) -> None:
    rolling_update = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    spec = DeploymentSpec(replicas=10, strategy=Strategy(rolling_update=rolling_update))
    assert bounds(spec) == result


def held(name: str, wanted: int, available: int | None = None) -> Held:
    return Held(name, wanted, wanted, wanted if available is None else available)


@pytest.mark.parametrize(
    ("replicas", "limits", "new", "old", "result"),
    [
        pytest.param(3, Bounds(1, 0), held("n", 0), [held("o", 3)], Targets(1, {}), id="surge"),
        pytest.param(3, Bounds(1, 0), held("n", 1), [held("o", 2)], Targets(2, {}), id="again"),
        pytest.param(
            3, Bounds(1, 0), held("n", 1, 0), [held("o", 3)], Targets(1, {}), id="wait for ready"
        ),
        pytest.param(
            3, Bounds(1, 0), held("n", 1), [held("o", 3)], Targets(1, {"o": 2}), id="then down"
        ),
        pytest.param(
            3, Bounds(0, 1), held("n", 0), [held("o", 3)], Targets(0, {"o": 2}), id="down first"
        ),
        pytest.param(
            2, Bounds(1, 0), held("n", 1, 0), [held("o", 2, 0)], Targets(1, {}), id="no spare",
        ),
        pytest.param(
            4, Bounds(1, 1), held("n", 2), [held("a", 1, 0), held("b", 2)],
            Targets(2, {"a": 0, "b": 1}), id="idle before available",
        ),
        pytest.param(5, Bounds(1, 1), held("n", 8), [], Targets(5, {}), id="scaled down"),
        pytest.param(5, Bounds(1, 1), held("n", 5), [], Targets(5, {}), id="done"),
    ],
)  # fmt: skip
def test_one_move(
    replicas: int, limits: Bounds, new: Held, old: list[Held], result: Targets
) -> None:
    assert rolling(replicas, limits, new, old) == result


@given(
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=3),
)
def test_a_rollout_keeps_within_its_bounds_and_ends(
    replicas: int,
    surge: int,
    unavailable: int,
    new: int,
    old: list[tuple[int, int]],
) -> None:
    limits = Bounds(surge, max(1 if not surge else 0, min(unavailable, replicas)))
    now = held("n", new, 0)
    rest = [Held(f"o{at}", n, n, min(n, up)) for at, (n, up) in enumerate(old)]
    for _ in range(200):
        total = now.wanted + sum(one.wanted for one in rest)
        serving = now.available + sum(one.available for one in rest)
        targets = rolling(replicas, limits, now, rest)
        after = [one._replace(wanted=targets.old.get(one.name, one.wanted)) for one in rest]
        grown = targets.new + sum(one.wanted for one in after)
        assert grown <= max(total, replicas + limits.surge)
        kept = min(now.available, targets.new) + sum(min(o.available, o.wanted) for o in after)
        assert kept >= min(serving, replicas - limits.unavailable)
        # Pods follow: old ones that are left serve as before, new ones become ready.
        now = held("n", targets.new)
        rest = [
            one._replace(present=one.wanted, available=min(one.available, one.wanted))
            for one in after
        ]
    assert (now.wanted, sum(one.wanted for one in rest)) == (replicas, 0)


def test_recreate_waits_for_the_last_old_pod() -> None:
    new, old = held("n", 0), [held("o", 3)]
    assert recreating(3, new, old, old_pods=True) == Targets(0, {"o": 0})
    assert recreating(3, new, [held("o", 0)], old_pods=True) == Targets(0, {})
    assert recreating(3, new, [held("o", 0)], old_pods=False) == Targets(3, {})


@pytest.mark.parametrize(
    ("replicas", "new", "old", "result"),
    [
        pytest.param(5, held("n", 3), [held("o", 0)], Targets(5, {}), id="one active"),
        pytest.param(5, None, [held("o", 3)], Targets(0, {"o": 5}), id="no new one"),
        pytest.param(10, held("n", 2), [held("o", 3)], Targets(4, {"o": 6}), id="in proportion"),
        pytest.param(5, held("n", 2), [held("o", 3)], Targets(2, {}), id="right already"),
        pytest.param(0, held("n", 2), [held("o", 3)], Targets(0, {"o": 0}), id="to nothing"),
        pytest.param(3, held("n", 0), [held("o", 0)], Targets(3, {}), id="from nothing"),
    ],
)
def test_a_paused_deployment_only_scales(
    replicas: int, new: Held | None, old: list[Held], result: Targets
) -> None:
    assert paused(replicas, new, old, Bounds(0, 1)) == result

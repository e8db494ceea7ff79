"""What is counted at the gate, and who is let in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.aio import Gate, Visit
from isthmus.aio.gate import neighbourhood


def enter(gate: Gate, address: str) -> Visit:
    visit = gate.enter(address)
    assert visit is not None
    return visit


def test_one_address_cannot_take_the_room_of_others() -> None:
    gate = Gate(most=100, each=2, strangers=10)
    one, _ = enter(gate, "10.0.0.1"), enter(gate, "10.0.0.1")
    assert gate.enter("10.0.0.1") is None
    assert gate.refused == 1
    enter(gate, "10.0.0.2")
    one.leave()
    enter(gate, "10.0.0.1")


def test_strangers_of_one_address_are_fewer_than_those_who_are_known() -> None:
    gate = Gate(most=100, each=10, strangers=2)
    one = enter(gate, "a")
    enter(gate, "a")
    assert gate.enter("a") is None
    one.greet()
    one.greet()
    enter(gate, "a")
    assert gate.enter("a") is None


def test_strangers_take_half_of_all_room_at_most() -> None:
    gate = Gate(most=4, each=4, strangers=4)
    known = enter(gate, "a")
    known.greet()
    enter(gate, "b")
    enter(gate, "c")
    assert gate.enter("d") is None
    assert (gate.inside, gate.strangers) == (3, 2)
    known.leave()
    assert gate.enter("d") is None


def test_all_room_has_an_end_for_those_who_are_known_too() -> None:
    gate = Gate(most=3, each=9, strangers=9)
    for name in "abc":
        enter(gate, name).greet()
    assert gate.enter("d") is None


def test_even_the_smallest_gate_opens() -> None:
    assert Gate(most=1, each=1, strangers=1).enter("a") is not None


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "10.0.0.1", False),
    ],
)
def test_neighbours(address: str, other: str, same: bool) -> None:  # a table
    assert (neighbourhood(address) == neighbourhood(other)) is same


@given(st.lists(st.tuples(st.sampled_from(["enter", "greet", "leave"]), st.integers(0, 5))))
def test_after_any_history_nothing_is_left_of_those_who_left(steps: list[tuple[str, int]]) -> None:
    gate = Gate(most=6, each=3, strangers=2)
    visits: list[Visit] = []
    for verb, number in steps:
        if verb == "enter":
            visit = gate.enter(f"10.0.0.{number}")
            visits += [visit] if visit is not None else []
        elif visits:
            visit = visits[number % len(visits)]
            visit.greet() if verb == "greet" else visit.leave()
        assert 0 <= gate.strangers <= gate.inside <= 6
    for visit in visits:
        visit.leave()
    assert (gate.inside, gate.strangers, gate.addresses) == (0, 0, 0)

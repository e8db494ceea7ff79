from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.controllers.packing import MOST, Content, Group, identity, pack
from isthmus.model.discovery import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from isthmus.model.meta import Reference

HTTP = (EndpointPort(name="http", port=80),)
OTHER = (EndpointPort(name="http", port=81),)


def at(number: int, *, ready: bool = True) -> Endpoint:
    return Endpoint(
        addresses=(f"10.0.{number // 256}.{number % 256}",),
        conditions=EndpointConditions(ready=ready),
        target_ref=Reference(kind="Pod", uid=str(number)),
    )


def held(
    *numbers: int, ports: tuple[EndpointPort, ...] = HTTP, family: str = "IPv4"
) -> EndpointSlice:
    return EndpointSlice(address_type=family, endpoints=tuple(map(at, numbers)), ports=ports)


V4 = Group("IPv4", HTTP)


def test_no_endpoints_are_one_empty_slice() -> None:
    group = Group("IPv4", ())
    assert pack({group: []}, {}).slices == (Content("", group, ()),)
    kept = pack({group: []}, {"a": held(1, 2), "b": held(3)})
    assert (kept.slices, kept.surplus) == ((Content("a", group, ()),), ("b",))


def test_endpoints_stay_where_they_are() -> None:
    done = pack({V4: [at(9), at(1), at(2), at(3)]}, {"a": held(2, 5), "b": held(3, 1)})
    assert {one.name: [identity(e)[1] for e in one.endpoints] for one in done.slices} == {
        "a": ["2"],
        "b": ["3", "1", "9"],  # the fuller slice takes the new one
    }


def test_a_changed_endpoint_is_changed_in_place() -> None:
    done = pack({V4: [at(1, ready=False)]}, {"a": held(1)})
    assert done.slices == (Content("a", V4, (at(1, ready=False),)),)


def test_changed_ports_change_the_slice_in_place() -> None:
    moved = Group("IPv4", OTHER)
    done = pack({moved: [at(1), at(2)]}, {"a": held(1, 2)})
    assert (done.slices, done.surplus) == ((Content("a", moved, (at(1), at(2))),), ())


def test_a_slice_never_changes_its_family() -> None:
    done = pack({V4: [at(1)]}, {"a": held(7, family="IPv6")})
    assert (done.slices, done.surplus) == ((Content("", V4, (at(1),)),), ("a",))


@pytest.mark.parametrize(("count", "slices"), [(1, 1), (100, 1), (101, 2), (250, 3)])
def test_a_slice_holds_a_hundred(count: int, slices: int) -> None:
    done = pack({V4: [at(n) for n in range(count)]}, {})
    assert [len(one.endpoints) for one in done.slices][:-1] == [MOST] * (slices - 1)
    assert sum(len(one.endpoints) for one in done.slices) == count
    assert len(done.slices) == slices


@given(
    st.sets(st.integers(0, 400), max_size=300),
    st.lists(st.sets(st.integers(0, 400), max_size=120), max_size=5),
    st.integers(),
)
def test_packing_places_everything_once_and_is_done(
    wanted: set[int], before: list[set[int]], seed: int
) -> None:
    random = Random(seed)
    ports = {f"s{n}": random.choice([HTTP, HTTP, OTHER]) for n in range(len(before))}
    slices = {f"s{n}": held(*some, ports=ports[f"s{n}"]) for n, some in enumerate(before)}
    endpoints = [at(n) for n in sorted(wanted)]
    done = pack({V4: endpoints}, slices)
    placed = [e for one in done.slices for e in one.endpoints]
    assert sorted(map(identity, placed)) == sorted(map(identity, endpoints))
    assert all(len(one.endpoints) <= MOST for one in done.slices)
    assert {one.name for one in done.slices if one.name} | set(done.surplus) == set(slices)
    after = {
        one.name or f"new{n}": EndpointSlice(
            address_type="IPv4", endpoints=one.endpoints, ports=one.group.ports
        )
        for n, one in enumerate(done.slices)
    }
    again = pack({V4: endpoints}, after)
    assert not again.surplus
    assert {one.name: one.endpoints for one in again.slices} == {
        name: one.endpoints for name, one in after.items()
    }


def test_what_does_not_fit_goes_elsewhere() -> None:
    done = pack({V4: [at(n) for n in range(103)]}, {"a": held(*range(99))})
    assert {one.name: len(one.endpoints) for one in done.slices} == {"a": 100, "": 3}

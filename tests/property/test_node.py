"""A node's Envoy: what a long watch holds is what is computed from scratch, in any order."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.envoy import NodeAsker, NodeDialect
from isthmus.proto.xds import CLUSTER, Resource
from tests.property.test_outbound import STEPS, Step, fresh, take, world
from tests.support.meshworld import LOCAL, World

NODE = NodeDialect()
ASKER = NodeAsker(LOCAL, "n1")


def told(held: World) -> dict[tuple[str, str], Resource]:
    found: dict[tuple[str, str], Resource] = {}
    for type_url, names in held.db.read(*NODE.view_query(ASKER)).types.items():
        for name in names:
            cell = NODE.resource_query(ASKER, type_url, name)
            assert cell is not None, name
            one = held.db.read(*cell)
            assert one is not None, name
            found[type_url, name] = one
    return found


@given(STEPS)
def test_what_a_watch_holds_is_what_is_computed_from_scratch(steps: list[Step]) -> None:
    held = world()
    values: dict[object, object] = {}
    with held.db.watch(lambda: None) as watch:
        watch.add(*NODE.view_query(ASKER))
        for step in steps:
            take(held, step)
            values |= watch.take()
            for type_url, name in told(held):
                cell = NODE.resource_query(ASKER, type_url, name)
                assert cell is not None
                watch.add(*cell)
        values |= watch.take()
        assert not watch.failed()
    other = fresh(steps)
    for address, value in values.items():
        assert isinstance(address, tuple)
        assert value == other.db.read(*address), address


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_does_not_matter(steps: list[Step], order: Random) -> None:
    assert told(fresh(steps)) == told(fresh(steps, order))


@given(STEPS)
def test_what_is_sent_to_is_in_sight(steps: list[Step]) -> None:
    found = told(fresh(steps))
    clusters = {name for type_url, name in found if type_url == CLUSTER}
    for one in found.values():
        assert set(one.clusters or ()) <= clusters

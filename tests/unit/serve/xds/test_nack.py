"""Rejections: the guilty is found, kept out by its content, and nobody else suffers."""

from __future__ import annotations

import pytest

from isthmus.serve.xds.machine import Convicted, DeltaRequest, SotwRequest
from isthmus.serve.xds.machine.state import mentions
from isthmus.serve.xds.machine.stream import ERROR
from isthmus.serve.xds.machine.values import Framed
from tests.unit.serve.xds.play import (
    CDS,
    EDS,
    LDS,
    NOTHING,
    RDS,
    Ack,
    Nack,
    Play,
    Sent,
    SotwPlay,
    World,
    thing,
)


def one(play: Play) -> dict[str, str]:
    """What is rejected at present: names and messages."""
    return {rejected.name: rejected.message for _, rejected in play.stream.rejections()}


def test_a_rejected_resource_is_not_sent_again_until_it_changes() -> None:
    # go-control-plane 962, consul 12195: no loop.
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"})
    play.now = 5.0
    play >> Nack(CDS, "bad port") << NOTHING
    play.stream.touch(CDS, ("a",))
    play << NOTHING
    assert one(play) == {"a": "bad port"}
    [guilty] = play.guilty
    assert guilty == ("a", "1", "bad port", 5.0, "o/a")
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"})
    assert one(play) == {"a": "bad port"}  # nobody knows yet
    play >> Ack(CDS) << NOTHING
    assert one(play) == {}


def test_the_last_good_one_stays() -> None:
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) >> Nack(CDS) << NOTHING
    play.put(CDS, "a") << NOTHING  # back to what it has
    assert one(play) == {}
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"})  # a change again


def made_of(version: str, **parts: str) -> Framed:
    return thing(CDS, "r", version)._replace(parts=tuple(parts.items()))


@pytest.mark.parametrize(
    ("before", "after", "guilty"),
    [
        ({"one": "1", "two": "1"}, {"one": "1", "two": "2"}, "two"),
        ({"one": "1"}, {"one": "1", "two": "1"}, "two"),
        ({"one": "1", "two": "1"}, {"one": "2", "two": "2"}, "o/r"),
        ({"one": "1", "two": "1"}, {"one": "1"}, "o/r"),
        ({}, {"one": "1"}, "one"),
        ({}, {"one": "1", "two": "1"}, "o/r"),
    ],
)
def test_of_several_objects_the_one_whose_part_is_new_is_to_blame(
    before: dict[str, str], after: dict[str, str], guilty: str
) -> None:
    play = Play().started().change([(CDS, made_of("1", **before))])
    play << Sent(CDS, {"r": "1"}) >> Ack(CDS)
    play.change([(CDS, made_of("2", **after))]) << Sent(CDS, {"r": "2"}) >> Nack(CDS) << NOTHING
    assert [each.origin for each in play.guilty] == [guilty]


def test_a_message_that_names_nobody_is_bisected() -> None:
    names = dict.fromkeys("abcdefgh", "1")
    play = Play().started().put(CDS, *names) << Sent(CDS, names) >> Nack(CDS, "?")
    play << Sent(CDS, dict.fromkeys("abcd", "1")) >> Ack(CDS)
    play << Sent(CDS, dict.fromkeys("efgh", "1")) >> Nack(CDS, "?")
    play << Sent(CDS, dict.fromkeys("ef", "1")) >> Nack(CDS, "?")
    play << Sent(CDS, {"e": "1"}) >> Ack(CDS) << Sent(CDS, {"f": "1"}) >> Nack(CDS, "f it is")
    play << Sent(CDS, dict.fromkeys("gh", "1")) >> Ack(CDS) << NOTHING
    assert one(play) == {"f": "f it is"}


def test_who_is_named_is_tried_alone_after_the_rest() -> None:
    play = Play().started().put(CDS, "good", "fine", "evil")
    play << Sent(CDS, {"evil": "1", "fine": "1", "good": "1"})
    play >> Nack(CDS, "Error adding/updating cluster(s) evil: no")
    play << Sent(CDS, {"fine": "1", "good": "1"}) >> Ack(CDS)
    play << Sent(CDS, {"evil": "1"}) >> Nack(CDS, "evil: no") << NOTHING
    assert one(play) == {"evil": "evil: no"}


def test_who_is_named_wrongly_is_cleared() -> None:
    play = Play().started().put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"})
    play >> Nack(CDS, "a") << Sent(CDS, {"b": "1"}) >> Nack(CDS, "b")
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS) << NOTHING
    assert one(play) == {"b": "b"}


def test_a_message_that_names_everybody_is_bisected() -> None:
    names = [f"n{number:02}" for number in range(20)]
    play = Play().started().put(CDS, *names) << Sent(CDS, dict.fromkeys(names, "1"))
    play >> Nack(CDS, " ".join(names)) << Sent(CDS, dict.fromkeys(names[:10], "1"))


def test_all_named_of_few_are_tried_one_by_one() -> None:
    play = Play().started().put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"})
    play >> Nack(CDS, "a, b") << Sent(CDS, {"a": "1"}) >> Ack(CDS) << Sent(CDS, {"b": "1"})


def test_all_rejected_ends_too() -> None:
    names = [f"n{number}" for number in range(32)]
    play = Play().started().put(CDS, *names)
    rounds = 0
    while (response := play.stream.next(0)) is not None:
        rounds += 1
        play.stream.receive(DeltaRequest(CDS, response.nonce, "?"), 0)
    assert rounds == 2 * 32 - 1
    assert set(one(play)) == set(names)


def test_a_suspect_that_changes_is_no_suspect() -> None:
    play = Play().started().put(CDS, "a", "b", "c", "d")
    play << Sent(CDS, dict.fromkeys("abcd", "1")) >> Nack(CDS, "?")
    play.put(CDS, "a", version="2").gone(CDS, "b")
    play << Sent(CDS, {"c": "1", "d": "1"}) >> Ack(CDS) << Sent(CDS, {"a": "2"}) >> Ack(CDS)
    play << Sent(CDS, removed=("b",))  # it may have been applied


def test_a_suspect_that_returns_to_what_was_held_is_sent_all_the_same() -> None:
    # The response may have been applied in part: nobody knows what the proxy has.
    play = Play().started().put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"}) >> Ack(CDS)
    play.put(CDS, "a", "b", version="2") << Sent(CDS, {"a": "2", "b": "2"}) >> Nack(CDS, "?")
    play.put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"}) >> Ack(CDS) << NOTHING


def test_what_one_proxy_rejected_is_sent_alone_to_others() -> None:
    world, convicted = World(), Convicted()
    first = Play(world, convicted).started().put(CDS, "bad") << Sent(CDS, {"bad": "1"})
    first >> Nack(CDS)
    first.put(CDS, "good") << Sent(CDS, {"good": "1"})
    other = Play(world, convicted) >> DeltaRequest(CDS) << Sent(CDS, {"good": "1"}) >> Ack(CDS)
    other << Sent(CDS, {"bad": "1"}) >> Ack(CDS) << NOTHING  # a newer one takes it


def test_only_so_many_convictions_are_remembered() -> None:
    convicted = Convicted(keep=2)
    for name in "abc":
        convicted.add(CDS, name, "1")
    assert [convicted.has(CDS, thing(CDS, name)) for name in "abc"] == [False, True, True]


def test_only_bad_things_to_tell_are_told_after_an_empty_first_answer() -> None:
    convicted = Convicted()
    convicted.add(CDS, "a", "1")
    convicted.add(CDS, "b", "1")
    play = (
        Play(convicted=convicted).put(CDS, "a", "b") >> DeltaRequest(CDS) << Sent(CDS) >> Ack(CDS)
    )
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS) << Sent(CDS, {"b": "1"})
    play = Play(convicted=convicted).started().put(CDS, "a", "b")
    play << Sent(CDS, {"a": "1"}) >> Nack(CDS) << Sent(CDS, {"b": "1"}) >> Nack(CDS) << NOTHING


def test_routes_do_not_wait_for_a_rejected_cluster() -> None:
    play = Play().put(CDS, "bad").put(RDS, "r", clusters=("bad",))
    play >> DeltaRequest(CDS) << Sent(CDS, {"bad": "1"})
    play >> DeltaRequest(RDS, subscribe=("r",)) << NOTHING
    play >> Nack(CDS) << Sent(RDS, {"r": "1"})


def test_suspects_wait_at_gates_too() -> None:
    play = Play().put(CDS, "a").put(RDS, "r", "s", clusters=("a",)).started_with_clusters("a")
    play >> DeltaRequest(RDS, subscribe=("r", "s")) << Sent(RDS, {"r": "1", "s": "1"})
    play >> Nack(RDS, "?")
    play.gone(CDS, "a") << Sent(RDS, {"r": "1"})
    play >> Ack(RDS) << Sent(RDS, {"s": "1"}) >> Ack(RDS) << NOTHING


def test_rejected_endpoints_do_not_keep_a_changed_cluster_warming() -> None:
    play = Play().put(CDS, "a").put(EDS, "a").started_with_clusters("a")
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    play.put(EDS, "a", version="2") << Sent(EDS, {"a": "2"}) >> Nack(EDS) << NOTHING
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    assert one(play) == {"a": "no"}
    play << NOTHING


def test_an_empty_assignment_that_is_rejected_is_not_sent_for_ever() -> None:
    play = Play() >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "absent"})
    play >> Nack(EDS) << NOTHING
    play.stream.touch(EDS, ("a",))
    play << NOTHING
    play.put(EDS, "a") << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    assert one(play) == {}


def test_a_rejected_removal_is_given_up() -> None:
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play.gone(CDS, "a") << Sent(CDS, removed=("a",)) >> Nack(CDS) << NOTHING


def test_a_removal_beside_a_rejected_listener_is_said_again() -> None:
    play = Play().started().put(LDS, "a") << Sent(LDS, {"a": "1"}) >> Ack(LDS)
    play.change([(LDS, thing(LDS, "b"))], [(LDS, "a")])
    play << Sent(LDS, {"b": "1"}, removed=("a",)) >> Nack(LDS)
    play << Sent(LDS, removed=("a",)) >> Ack(LDS) << NOTHING


def test_a_rejected_resource_that_goes_is_forgotten() -> None:
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"}) >> Nack(CDS)
    play.gone(CDS, "a") << NOTHING
    assert one(play) == {}


def test_a_rejection_of_what_was_unsubscribed_blames_nobody() -> None:
    play = Play().put(EDS, "a") >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"})
    play >> DeltaRequest(EDS, unsubscribe=("a",)) >> Nack(EDS) << NOTHING
    assert one(play) == {}
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"})


def test_what_is_said_about_it() -> None:
    play = Play().started().put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"})
    play >> Nack(CDS, "?") << Sent(CDS, {"a": "1"}) >> Ack(CDS) << Sent(CDS, {"b": "1"})
    play.now = 3.0
    play >> Nack(CDS, "x" * 2 * ERROR) << NOTHING
    clusters, _ = play.stream.status()
    assert (clusters.wildcard, clusters.sent, clusters.acked, clusters.waiting) == (True, 1, 1, 0)
    assert clusters.error is not None
    assert (clusters.error.at, len(clusters.error.message)) == (3.0, ERROR)
    assert [rejected.name for rejected in clusters.rejected] == ["b"]


def test_in_the_state_of_the_world_the_others_stay_in_the_set() -> None:
    play = SotwPlay().put(CDS, "a", "b", "c") >> SotwRequest(CDS)
    play << Sent(CDS, {"a": "1", "b": "1", "c": "1"}) >> Ack(CDS)
    play.put(CDS, "a", "b", version="2").put(CDS, "d")
    play << Sent(CDS, {"a": "2", "b": "2", "c": "1", "d": "1"}) >> Nack(CDS, "?")
    play << Sent(CDS, {"a": "2", "b": "1", "c": "1"}) >> Ack(CDS)
    play << Sent(CDS, {"a": "2", "b": "2", "c": "1", "d": "1"}) >> Nack(CDS, "?")
    play << Sent(CDS, {"a": "2", "b": "2", "c": "1"}) >> Nack(CDS, "?")
    play << Sent(CDS, {"a": "2", "b": "1", "c": "1", "d": "1"}) >> Ack(CDS) << NOTHING
    assert one(play) == {"b": "?"}
    play.put(CDS, "c", version="2") << Sent(CDS, {"a": "2", "b": "1", "c": "2", "d": "1"})


def test_endpoints_of_which_none_are_good_do_not_keep_a_changed_cluster_warming() -> None:
    play = Play().put(CDS, "a").put(EDS, "a").started_with_clusters("a")
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"}) >> Nack(EDS)
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "absent"})
    play >> Ack(EDS) << NOTHING
    assert one(play) == {"a": "no"}


def test_a_name_is_named_as_a_word() -> None:
    assert mentions("cluster(s) web: bad", "web")
    assert mentions("bad web", "web")
    assert mentions("web-1, web", "web")
    assert not mentions("web-1, cobweb", "web")
    assert not mentions("rejected", "")


def test_a_whole_set_that_goes_back_is_followed_by_endpoints() -> None:
    play = SotwPlay().put(CDS, "a", "b").put(EDS, "a", "b") >> SotwRequest(CDS)
    play << Sent(CDS, {"a": "1", "b": "1"}) >> SotwRequest(EDS, names=("a", "b"))
    play << Sent(EDS, {"a": "1", "b": "1"}) >> Ack(EDS) >> Ack(CDS)
    play.put(CDS, "a", "b", version="2") << Sent(CDS, {"a": "2", "b": "2"})
    play << Sent(EDS, {"a": "1", "b": "1"}) >> Ack(EDS) >> Nack(CDS, "?")
    # If b was applied, this takes it back, and the proxy waits for its endpoints again.
    play << Sent(CDS, {"a": "2", "b": "1"}) << Sent(EDS, {"a": "1", "b": "1"})


def test_a_route_waits_for_a_cluster_that_was_rejected_in_another_version() -> None:
    play = Play().put(CDS, "a").put(RDS, "r", clusters=("a",)) >> DeltaRequest(CDS)
    play << Sent(CDS, {"a": "1"}) >> DeltaRequest(RDS, subscribe=("r",)) >> Nack(CDS)
    play.put(CDS, "a", version="2").put(RDS, "r", version="2", clusters=("a",))
    play << Sent(CDS, {"a": "2"}) << NOTHING >> Ack(CDS) << Sent(RDS, {"r": "2"})


def test_an_aggregate_of_which_only_the_version_is_known_keeps_every_cluster() -> None:
    play = Play().put(CDS, "both", version="2")
    play >> DeltaRequest(CDS, initial={"both": "1", "one": "1"}) << Sent(CDS, {"both": "2"})
    play >> DeltaRequest(LDS) << Sent(LDS) >> Ack(LDS) >> DeltaRequest(RDS)
    play >> Nack(CDS) << NOTHING  # what it keeps may have members
    play.put(CDS, "both", version="3") << Sent(CDS, {"both": "3"}) >> Ack(CDS)
    play << Sent(CDS, removed=("one",))


def test_a_cluster_that_two_rejected_contents_may_have_left_is_removed() -> None:
    play = Play().started().put(CDS, "a", "b") << Sent(CDS, {"a": "1", "b": "1"}) >> Nack(CDS, "?")
    play.put(CDS, "a", "b", version="2") << Sent(CDS, {"a": "2", "b": "2"}) >> Nack(CDS, "?")
    play << Sent(CDS, {"a": "2"}) >> Nack(CDS) << Sent(CDS, {"b": "2"}) >> Ack(CDS)
    play.gone(CDS, "a") << Sent(CDS, removed=("a",))  # its first content may be there


def test_what_is_not_wanted_any_more_is_not_bisected() -> None:
    play = Play().put(EDS, "a", "b") >> DeltaRequest(EDS, subscribe=("a", "b"))
    play << Sent(EDS, {"a": "1", "b": "1"}) >> Nack(EDS, "?")
    play >> DeltaRequest(EDS, unsubscribe=("a",)) << Sent(EDS, {"b": "1"}) >> Ack(EDS) << NOTHING


def test_what_a_rejection_may_have_left_is_over_with_the_next_acceptance() -> None:
    play = Play().put(CDS, "a").put(RDS, "r", "s").started_with_clusters("a")
    play >> DeltaRequest(RDS, subscribe=("r", "s")) << Sent(RDS, {"r": "1", "s": "1"}) >> Ack(RDS)
    play.put(RDS, "r", "s", version="2", clusters=("a",))
    play << Sent(RDS, {"r": "2", "s": "2"}) >> Nack(RDS, "?")
    play.put(RDS, "r", "s", version="3").gone(CDS, "a")
    play << Sent(RDS, {"r": "3", "s": "3"}) << NOTHING >> Ack(RDS) << Sent(CDS, removed=("a",))

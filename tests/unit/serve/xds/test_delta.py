"""The incremental protocol, rule by rule. Cases of public bug reports bear their numbers."""

from __future__ import annotations

import pytest

from isthmus.errors import PeerFault
from isthmus.serve.xds.machine import UNKNOWN, DeltaRequest
from isthmus.serve.xds.machine.stream import LONGEST, NAMES, TYPES
from tests.unit.serve.xds.play import (
    CDS,
    EDS,
    LDS,
    NOTHING,
    OTHER,
    RDS,
    Ack,
    Nack,
    Play,
    Sent,
    World,
    thing,
)


def test_a_first_wildcard_request_is_answered_at_once_even_with_nothing() -> None:
    # go-control-plane 473: a proxy without clusters or listeners would wait 15 s to start.
    Play() >> DeltaRequest(CDS) << Sent(CDS) >> DeltaRequest(LDS) << Sent(LDS) << NOTHING


def test_a_new_resource_is_sent_a_changed_one_again_and_a_vanished_one_removed() -> None:
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"}) >> Ack(CDS) << NOTHING
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) >> Ack(CDS)
    play.gone(CDS, "a") << Sent(CDS, removed=("a",)) >> Ack(CDS) << NOTHING


def test_equal_content_is_not_sent() -> None:
    # istio 60629: edits that mean nothing to a proxy are not pushed to it.
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play.put(CDS, "a") << NOTHING
    play.put(CDS, "a", version="2").put(CDS, "a") << NOTHING


def test_one_response_of_a_type_is_under_way_and_the_newest_follows() -> None:
    # consul 11924: what was not taken is replaced, and holds nobody up.
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"})
    for version in range(2, 100):
        play.put(CDS, "a", version=str(version)) << NOTHING
    play >> Ack(CDS) << Sent(CDS, {"a": "99"}) << NOTHING


def test_an_answer_to_another_response_says_nothing() -> None:
    play = Play().started().put(CDS, "a") << Sent(CDS, {"a": "1"})
    play.put(CDS, "a", version="2")
    play >> DeltaRequest(CDS, "0") << NOTHING >> DeltaRequest(CDS, "77", "no") << NOTHING
    play >> DeltaRequest(CDS, "") << NOTHING >> Ack(CDS) << Sent(CDS, {"a": "2"})


def test_a_request_may_answer_and_subscribe_at_once() -> None:
    play = Play().put(EDS, "a", "b")
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"})
    play >> DeltaRequest(EDS, play.nonces[EDS], subscribe=("b",)) << Sent(EDS, {"b": "1"})
    # A subscription without a nonce is none the less one; the answer to it comes after the ACK.
    play.put(EDS, "c") >> DeltaRequest(EDS, subscribe=("c",)) << NOTHING
    play >> Ack(EDS) << Sent(EDS, {"c": "1"})


def test_only_what_is_subscribed_to_is_sent() -> None:
    play = Play().put(EDS, "a", "b") >> DeltaRequest(EDS, subscribe=("a",))
    play << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    play.put(EDS, "b", version="2") << NOTHING
    assert play.world.wanted == {(EDS, "a")}


def test_an_absent_assignment_is_told_as_an_empty_one_and_sent_once_it_exists() -> None:
    # go-control-plane 488; without an answer the cluster would warm for 15 s.
    play = Play() >> DeltaRequest(EDS, subscribe=("orchard",)) << Sent(EDS, {"orchard": "absent"})
    play >> Ack(EDS) << NOTHING
    play.put(EDS, "orchard") << Sent(EDS, {"orchard": "1"}) >> Ack(EDS)


def test_an_assignment_that_vanishes_is_emptied() -> None:
    # Envoy ignores the removal of an assignment.
    play = Play().put(EDS, "a").put(CDS, "a").started_with_clusters("a")
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    play.gone(EDS, "a") << Sent(EDS, {"a": "absent"}) >> Ack(EDS) << NOTHING


def test_absent_routes_are_waited_for_in_silence() -> None:
    # A removal would make the listener that waits for them wait for ever.
    play = Play() >> DeltaRequest(RDS, subscribe=("web",)) << NOTHING
    play.put(RDS, "web") << Sent(RDS, {"web": "1"}) >> Ack(RDS)
    play.gone(RDS, "web") << NOTHING


def test_an_absent_cluster_or_listener_is_told_removed_once() -> None:
    play = Play() >> DeltaRequest(LDS, subscribe=("a",)) << Sent(LDS, removed=("a",))
    play >> Ack(LDS) << NOTHING
    play.put(LDS, "a") << Sent(LDS, {"a": "1"}) >> Ack(LDS)
    play.gone(LDS, "a") << Sent(LDS, removed=("a",)) >> Ack(LDS) << NOTHING
    play >> DeltaRequest(LDS, subscribe=("a",)) << Sent(LDS, removed=("a",))


def test_unsubscribing_ends_updates_and_a_new_subscription_begins_anew() -> None:
    play = Play().put(EDS, "a") >> DeltaRequest(EDS, subscribe=("a",))
    play << Sent(EDS, {"a": "1"}) >> Ack(EDS) >> DeltaRequest(EDS, unsubscribe=("a",))
    assert not play.world.wanted
    play.put(EDS, "a", version="2") << NOTHING
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "2"}) >> Ack(EDS)


def test_a_name_that_is_subscribed_to_again_is_answered_again() -> None:
    # It may have been thrown away; go-control-plane 431.
    play = Play().put(EDS, "a") >> DeltaRequest(EDS, subscribe=("a",))
    play << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS) << NOTHING


def test_what_was_unsubscribed_before_it_was_sent_is_not_sent() -> None:
    # go-control-plane 1498: an answer that was on its way to a subscription that is no more.
    play = Play().put(EDS, "a", "b") >> DeltaRequest(EDS, subscribe=("a",))
    play << Sent(EDS, {"a": "1"}) >> DeltaRequest(EDS, subscribe=("b",))
    play >> DeltaRequest(EDS, unsubscribe=("b",)) >> Ack(EDS) << NOTHING


def test_who_comes_back_is_told_differences_only() -> None:
    # consul 12174, in three parts.
    world = World()
    world.all[CDS] = {"same": thing(CDS, "same"), "new": thing(CDS, "new", "2")}
    held = {"same": "1", "new": "1", "gone": "1"}
    play = Play(world) >> DeltaRequest(CDS, initial=held) << Sent(CDS, {"new": "2"}) >> Ack(CDS)
    (
        play
        >> DeltaRequest(LDS)
        << Sent(LDS)
        >> Ack(LDS)
        >> DeltaRequest(RDS)
        << Sent(CDS, removed=("gone",))
    )
    play = Play(world) >> DeltaRequest(CDS) << Sent(CDS, {"same": "1", "new": "2"})
    play = Play(world) >> DeltaRequest(CDS, initial={"same": "1", "new": "2"}) << NOTHING


def test_who_comes_back_with_names_is_told_differences_only() -> None:
    play = Play().put(EDS, "a").put(EDS, "b", version="2")
    request = DeltaRequest(EDS, subscribe=("a", "b"), initial={"a": "1", "b": "1", "stray": "9"})
    play >> request << Sent(EDS, {"b": "2"}) >> Ack(EDS) << NOTHING
    play.put(EDS, "a", version="2") << Sent(EDS, {"a": "2"})


def test_who_comes_back_is_told_what_vanished_among_the_names_it_asks_for() -> None:
    play = Play() >> DeltaRequest(LDS, subscribe=("a",), initial={"a": "1"})
    play << Sent(LDS, removed=("a",)) >> Ack(LDS) << NOTHING


@pytest.mark.parametrize("first", [DeltaRequest(CDS), DeltaRequest(CDS, subscribe=("*",))])
def test_a_wildcard_is_no_names_at_first_or_a_star(first: DeltaRequest) -> None:
    play = Play().put(CDS, "a") >> first << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play >> DeltaRequest(CDS) << NOTHING
    play.put(CDS, "b") << Sent(CDS, {"b": "1"})


def test_no_names_at_first_means_all_for_clusters_and_listeners_alone() -> None:
    # Envoy opens with no names where it has none to ask for.
    play = Play().put(EDS, "a").put(RDS, "r") >> DeltaRequest(EDS) >> DeltaRequest(RDS) << NOTHING
    play >> DeltaRequest(EDS, subscribe=("*",)) << Sent(EDS, {"a": "1"})


def test_no_names_later_is_no_wildcard() -> None:
    play = Play().put(CDS, "a", "b") >> DeltaRequest(CDS, subscribe=("a",))
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS) >> DeltaRequest(CDS) << NOTHING


def test_a_star_can_be_added_to_names_and_taken_away() -> None:
    play = Play().put(CDS, "a", "b") >> DeltaRequest(CDS, subscribe=("a",))
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play >> DeltaRequest(CDS, subscribe=("*",)) << Sent(CDS, {"b": "1"}) >> Ack(CDS)
    play >> DeltaRequest(CDS, unsubscribe=("*",)) << NOTHING
    assert play.world.wanted == {(CDS, "a")}
    play.put(CDS, "b", version="2") << NOTHING
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"})


def test_a_name_besides_a_star_is_told_anew_when_it_is_given_up() -> None:
    play = Play().put(CDS, "a") >> DeltaRequest(CDS, subscribe=("*", "a", "b"))
    play << Sent(CDS, {"a": "1"}, removed=("b",)) >> Ack(CDS)
    play >> DeltaRequest(CDS, unsubscribe=("a", "b")) << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play << NOTHING


def test_an_unknown_type_gets_an_answer_and_hurts_nobody() -> None:
    # go-control-plane 1036
    play = Play().put(CDS, "a") >> DeltaRequest(OTHER, subscribe=("x",))
    play << Sent(OTHER, removed=("x",)) >> DeltaRequest("") << NOTHING
    play >> DeltaRequest(CDS) << Sent(CDS, {"a": "1"}) >> Ack(OTHER) << NOTHING


def test_a_resource_that_cannot_be_made_leaves_the_proxy_with_what_it_has() -> None:
    play = Play().put(CDS, "a").started_with_clusters("a")
    play.world.all[CDS]["a"] = UNKNOWN
    play.stream.touch(CDS, ("a",))
    play << NOTHING
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"})


def test_a_type_whose_names_are_open_is_asked_name_by_name() -> None:
    play = Play().put(LDS, "a")
    play.world.open.add(LDS)
    play >> DeltaRequest(LDS, subscribe=("a", "b")) << Sent(LDS, {"a": "1"}, removed=("b",))


def test_a_name_out_of_sight_does_not_exist() -> None:
    play = Play().put(EDS, "a") >> DeltaRequest(EDS, subscribe=("secret",))
    assert play.world.wanted == set()
    play << Sent(EDS, {"secret": "absent"})


def test_the_end_drops_everything() -> None:
    play = Play().put(CDS, "a", "b").put(EDS, "a").started_with_clusters("a", "b")
    play >> DeltaRequest(EDS, subscribe=("a", "b"))
    assert play.world.wanted == {(CDS, "a"), (CDS, "b"), (EDS, "a")}
    play.stream.close()
    assert play.world.wanted == set()


def test_what_no_proxy_says_ends_its_stream() -> None:
    with pytest.raises(PeerFault, match="name of"):
        Play() >> DeltaRequest(EDS, subscribe=("x" * (LONGEST + 1),))
    with pytest.raises(PeerFault, match="names of one type"):
        Play() >> DeltaRequest(EDS, subscribe=tuple(map(str, range(NAMES + 1))))
    with pytest.raises(PeerFault, match="versions"):
        Play() >> DeltaRequest(CDS, initial=dict.fromkeys(map(str, range(NAMES + 1)), "1"))
    play = Play()
    with pytest.raises(PeerFault, match="types"):
        [play >> DeltaRequest(f"type.googleapis.com/t.T{number}") for number in range(TYPES + 1)]


def test_whether_a_proxy_has_the_newest_of_a_resource() -> None:
    play = Play().put(EDS, "a")
    assert play.stream.has(EDS, "a")  # it does not use it
    play >> DeltaRequest(EDS, subscribe=("a",))
    assert not play.stream.has(EDS, "a")
    play << Sent(EDS, {"a": "1"})
    assert not play.stream.has(EDS, "a")
    play >> Ack(EDS)
    assert play.stream.has(EDS, "a")
    play.put(EDS, "a", version="2")
    assert not play.stream.has(EDS, "a")
    play << Sent(EDS, {"a": "2"}) >> Nack(EDS)
    assert play.stream.has(EDS, "a")  # it never will

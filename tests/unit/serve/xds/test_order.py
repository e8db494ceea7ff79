"""Make before break: what waits for what, and what comes with what."""

from __future__ import annotations

from isthmus.serve.xds.machine import PATIENCE, DeltaRequest
from isthmus.serve.xds.machine.stream import CALM
from tests.unit.serve.xds.play import CDS, EDS, LDS, NOTHING, RDS, Ack, Nack, Play, Sent, thing


def running() -> Play:
    """An Envoy with a listener whose route sends to cluster a."""
    play = Play().put(CDS, "a").put(EDS, "a").put(LDS, "in").put(RDS, "in", clusters=("a",))
    play >> DeltaRequest(CDS) << Sent(CDS, {"a": "1"})
    play >> DeltaRequest(EDS, subscribe=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS) >> Ack(CDS)
    play >> DeltaRequest(LDS) << Sent(LDS, {"in": "1"})
    play >> DeltaRequest(RDS, subscribe=("in",)) << Sent(RDS, {"in": "1"}) >> Ack(RDS) >> Ack(LDS)
    return play << NOTHING


def test_a_route_waits_until_its_cluster_is_accepted() -> None:
    play = running().change(
        [(RDS, thing(RDS, "in", "2", ("b",))), (CDS, thing(CDS, "b")), (EDS, thing(EDS, "b"))]
    )
    play << Sent(CDS, {"b": "1"}) << NOTHING
    play >> DeltaRequest(EDS, subscribe=("b",)) << Sent(EDS, {"b": "1"}) >> Ack(EDS) << NOTHING
    play >> Ack(CDS) << Sent(RDS, {"in": "2"}) >> Ack(RDS) << NOTHING


def test_a_cluster_stays_until_the_routes_that_left_it_are_accepted() -> None:
    play = running().change(
        [(RDS, thing(RDS, "in", "2", ("b",))), (CDS, thing(CDS, "b"))], [(CDS, "a"), (EDS, "a")]
    )
    play << Sent(CDS, {"b": "1"}) >> Ack(CDS) << Sent(RDS, {"in": "2"}) << NOTHING
    # Not even emptied: requests may still be under way to it.
    play >> Ack(RDS) << Sent(CDS, removed=("a",)) >> Ack(CDS) << NOTHING
    play >> DeltaRequest(EDS, unsubscribe=("a",)) << NOTHING


def test_a_cluster_stays_while_a_rejected_route_may_use_it() -> None:
    play = running().change([(RDS, thing(RDS, "in", "2"))], [(CDS, "a")])
    play << Sent(RDS, {"in": "2"}) >> Nack(RDS) << NOTHING
    play.put(RDS, "in", version="3") << Sent(RDS, {"in": "3"}) >> Ack(RDS)
    play << Sent(CDS, removed=("a",))


def test_a_cluster_that_comes_back_in_time_is_not_removed() -> None:
    play = running().change([(RDS, thing(RDS, "in", "2"))], [(CDS, "a")])
    play << Sent(RDS, {"in": "2"})
    play.put(CDS, "a") >> Ack(RDS) << NOTHING


def test_other_routes_do_not_wait() -> None:
    play = running().put(LDS, "out").put(RDS, "out") << Sent(LDS, {"out": "1"})
    play >> DeltaRequest(RDS, subscribe=("out",)) << Sent(RDS, {"out": "1"}) >> Ack(RDS) >> Ack(LDS)
    play.change([(RDS, thing(RDS, "in", "2", ("b",))), (CDS, thing(CDS, "b"))])
    play.put(RDS, "out", version="2", clusters=("a",))
    play << Sent(CDS, {"b": "1"}) << Sent(RDS, {"out": "2"}) >> Ack(RDS) << NOTHING
    play >> Ack(CDS) << Sent(RDS, {"in": "2"})


def test_a_route_that_does_not_tell_its_clusters_waits_for_all() -> None:
    play = running().put(CDS, "b").put(RDS, "in", version="2", clusters=None)
    play << Sent(CDS, {"b": "1"}) << NOTHING >> Ack(CDS) << Sent(RDS, {"in": "2"}) >> Ack(RDS)
    # And keeps them all.
    play.gone(CDS, "b") << NOTHING
    play.put(RDS, "in", version="3") << Sent(RDS, {"in": "3"}) << NOTHING >> Ack(RDS)
    play << Sent(CDS, removed=("b",))


def test_a_route_does_not_wait_for_a_cluster_that_does_not_exist() -> None:
    running().put(RDS, "in", version="2", clusters=("a", "nowhere")) << Sent(RDS, {"in": "2"})


def test_a_changed_cluster_is_followed_by_its_endpoints() -> None:
    # go-control-plane 1035 and 1001, consul 10379 and 15083: it would warm for 15 s.
    play = running().put(CDS, "a", version="2")
    play << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "1"}) >> Ack(EDS) >> Ack(CDS) << NOTHING


def test_a_cluster_changed_again_is_followed_by_its_endpoints_again() -> None:
    # consul 19866: both change, the answer is withheld, the cluster changes again.
    play = running().change([(CDS, thing(CDS, "a", "2")), (EDS, thing(EDS, "a", "2"))])
    play << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "2"})
    play.put(CDS, "a", version="3") << NOTHING >> Ack(CDS) << Sent(CDS, {"a": "3"}) << NOTHING
    play >> Ack(EDS) << Sent(EDS, {"a": "2"}) >> Ack(EDS) >> Ack(CDS) << NOTHING


def test_both_changed_clusters_get_endpoints_though_one_set_changed() -> None:
    # envoy 21425
    play = Play().put(CDS, "oak", "elm").put(EDS, "oak", "elm")
    play >> DeltaRequest(CDS) << Sent(CDS, {"elm": "1", "oak": "1"})
    play >> DeltaRequest(EDS, subscribe=("oak", "elm")) << Sent(EDS, {"elm": "1", "oak": "1"})
    play >> Ack(EDS) >> Ack(CDS)
    play.put(CDS, "oak", "elm", version="2").put(EDS, "oak", version="2")
    play << Sent(CDS, {"elm": "2", "oak": "2"}) << Sent(EDS, {"elm": "1", "oak": "2"})


def test_endpoints_that_were_told_to_vanish_follow_a_changed_cluster_as_empty() -> None:
    play = running().gone(EDS, "a") << Sent(EDS, {"a": "absent"}) >> Ack(EDS)
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "absent"})


def test_a_changed_listener_is_followed_by_its_routes() -> None:
    play = running().put(LDS, "in", version="2")
    play << Sent(LDS, {"in": "2"}) << Sent(RDS, {"in": "1"}) >> Ack(RDS) >> Ack(LDS) << NOTHING


def test_endpoints_alone_go_alone() -> None:
    running().put(EDS, "a", version="2") << Sent(EDS, {"a": "2"}) >> Ack(EDS) << NOTHING


def test_the_first_listeners_come_all_at_once() -> None:
    # Else an Envoy would call itself ready with a part of them.
    play = Play().put(CDS, "a").put(LDS, "plain").put(LDS, "tcp", clusters=("a",))
    play >> DeltaRequest(CDS) << Sent(CDS, {"a": "1"}) >> DeltaRequest(LDS) << NOTHING
    play >> Ack(CDS) << Sent(LDS, {"plain": "1", "tcp": "1"})


def test_a_listener_stays_until_the_one_in_its_place_can_come() -> None:
    play = running().change(
        [(CDS, thing(CDS, "b")), (LDS, thing(LDS, "tcp", clusters=("b",)))], [(LDS, "in")]
    )
    play << Sent(CDS, {"b": "1"}) << NOTHING
    play >> Ack(CDS) << Sent(LDS, {"tcp": "1"}, removed=("in",))


def test_an_aggregate_keeps_its_members() -> None:
    play = Play().put(CDS, "one", "two").put(CDS, "both", clusters=("one", "two"))
    play.put(RDS, "r", clusters=("both",)) >> DeltaRequest(CDS)
    play << Sent(CDS, {"both": "1", "one": "1", "two": "1"}) >> Ack(CDS)
    play >> DeltaRequest(RDS, subscribe=("r",)) << Sent(RDS, {"r": "1"}) >> Ack(RDS)
    play.change([(RDS, thing(RDS, "r", "2"))], [(CDS, "one"), (CDS, "two"), (CDS, "both")])
    play << Sent(RDS, {"r": "2"}) << NOTHING >> Ack(RDS)
    play << Sent(CDS, removed=("both", "one", "two"))


def test_an_aggregate_that_stays_gives_up_a_member_first() -> None:
    play = Play().put(CDS, "one", "two").put(CDS, "both", clusters=("one", "two"))
    play >> DeltaRequest(CDS) << Sent(CDS, {"both": "1", "one": "1", "two": "1"}) >> Ack(CDS)
    play.change([(CDS, thing(CDS, "both", "2", ("one",)))], [(CDS, "two")])
    play << Sent(CDS, {"both": "2"}) << NOTHING >> Ack(CDS) << Sent(CDS, removed=("two",))


def test_who_comes_back_loses_no_cluster_before_it_has_told_of_its_routes() -> None:
    play = Play().put(LDS, "in").put(RDS, "in", version="2")
    play >> DeltaRequest(CDS, initial={"a": "1"}) << NOTHING
    play >> DeltaRequest(LDS, initial={"in": "1"}) << NOTHING
    play >> DeltaRequest(RDS, subscribe=("in",), initial={"in": "1"}) << Sent(RDS, {"in": "2"})
    play << NOTHING >> Ack(RDS) << Sent(CDS, removed=("a",))


def test_who_comes_back_and_has_no_routes_loses_it_after_a_while() -> None:
    play = Play() >> DeltaRequest(CDS, initial={"a": "1"}) >> DeltaRequest(LDS) << Sent(LDS)
    play >> Ack(LDS) << NOTHING
    assert play.stream.due(play.now) == CALM
    play.now = CALM
    play << Sent(CDS, removed=("a",))


def test_who_comes_back_gets_endpoints_for_a_changed_cluster_though_it_has_them() -> None:
    play = Play().put(CDS, "a", version="2").put(EDS, "a")
    play >> DeltaRequest(CDS, initial={"a": "1"}) << Sent(CDS, {"a": "2"})
    play >> DeltaRequest(EDS, subscribe=("a",), initial={"a": "1"}) << Sent(EDS, {"a": "1"})


def test_no_answer_for_long_is_found_out() -> None:
    play = Play().put(CDS, "a")
    assert play.stream.due(0) is None
    play >> DeltaRequest(CDS) << Sent(CDS, {"a": "1"})
    assert play.stream.due(0) == PATIENCE
    assert play.stream.overdue(PATIENCE - 1) is None
    assert play.stream.overdue(PATIENCE) == CDS
    play >> Ack(CDS)
    assert play.stream.overdue(PATIENCE) is None


def test_a_cluster_stays_until_the_removal_of_its_listener_is_accepted() -> None:
    play = Play().put(CDS, "a").put(LDS, "tcp", clusters=("a",)) >> DeltaRequest(CDS)
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS) >> DeltaRequest(LDS) << Sent(LDS, {"tcp": "1"})
    play >> Ack(LDS)
    play.change(gone=[(CDS, "a"), (LDS, "tcp")]) << Sent(LDS, removed=("tcp",)) << NOTHING
    play >> Ack(LDS) << Sent(CDS, removed=("a",))


def test_a_cluster_that_comes_back_without_endpoints_is_emptied() -> None:
    play = running().change([(RDS, thing(RDS, "in", "2"))], [(CDS, "a"), (EDS, "a")])
    play << Sent(RDS, {"in": "2"}) << NOTHING
    play.put(CDS, "a") << Sent(EDS, {"a": "absent"}) >> Ack(EDS) >> Ack(RDS) << NOTHING

"""The state-of-the-world protocol, rule by rule."""

from __future__ import annotations

from isthmus.serve.xds.machine import SotwRequest
from tests.unit.serve.xds.play import (
    CDS,
    EDS,
    LDS,
    NOTHING,
    OTHER,
    RDS,
    Ack,
    Sent,
    SotwPlay,
    empty,
    thing,
)


def test_a_first_wildcard_request_is_answered_at_once_even_with_nothing() -> None:
    # go-control-plane 473
    SotwPlay() >> SotwRequest(CDS) << Sent(CDS) >> SotwRequest(LDS) << Sent(LDS) << NOTHING


def test_clusters_and_listeners_come_as_whole_sets() -> None:
    play = SotwPlay().put(CDS, "a", "b") >> SotwRequest(CDS) << Sent(CDS, {"a": "1", "b": "1"})
    play >> Ack(CDS) << NOTHING
    play.put(CDS, "b", version="2") << Sent(CDS, {"a": "1", "b": "2"}) >> Ack(CDS)
    play.gone(CDS, "a") << Sent(CDS, {"b": "2"}) >> Ack(CDS) << NOTHING


def test_endpoints_and_routes_come_alone() -> None:
    play = SotwPlay().put(EDS, "a", "b") >> SotwRequest(EDS, names=("a", "b"))
    play << Sent(EDS, {"a": "1", "b": "1"}) >> Ack(EDS)
    play.put(EDS, "b", version="2") << Sent(EDS, {"b": "2"}) >> Ack(EDS) << NOTHING
    SotwPlay().put(RDS, "r") >> SotwRequest(RDS, names=("r", "s")) << Sent(RDS, {"r": "1"})


def test_a_missing_assignment_is_told_as_an_empty_one() -> None:
    play = SotwPlay() >> SotwRequest(EDS, names=("tea",)) << Sent(EDS, empty("tea")) >> Ack(EDS)
    play.put(EDS, "tea") << Sent(EDS, {"tea": "1"}) >> Ack(EDS) << NOTHING


def test_a_name_given_up_and_taken_again_is_sent_again() -> None:
    # go-control-plane 431
    play = SotwPlay().put(EDS, "quill") >> SotwRequest(EDS, names=("quill",))
    play << Sent(EDS, {"quill": "1"}) >> Ack(EDS) << NOTHING
    play >> Ack(EDS, ()) << NOTHING >> Ack(EDS, ("quill",)) << Sent(EDS, {"quill": "1"})


def test_what_was_given_up_before_it_was_sent_is_not_sent() -> None:
    # go-control-plane 1498
    play = SotwPlay().put(EDS, "a", "s1") >> SotwRequest(EDS, names=("a",))
    play << Sent(EDS, {"a": "1"}) >> Ack(EDS, ("a", "s1")) >> Ack(EDS, ()) << NOTHING


def test_a_request_from_before_the_newest_response_is_ignored() -> None:
    play = SotwPlay().put(EDS, "a", "b") >> SotwRequest(EDS, names=("a",)) << Sent(EDS, {"a": "1"})
    play >> SotwRequest(EDS, "", None, ("a", "b")) << NOTHING
    play >> SotwRequest(EDS, play.nonces[EDS], None, ("a", "b")) << Sent(EDS, {"b": "1"})


def test_names_may_grow_before_the_first_answer() -> None:
    play = SotwPlay() >> SotwRequest(RDS, names=("r",)) << NOTHING
    play.put(RDS, "s") >> SotwRequest(RDS, names=("r", "s")) << Sent(RDS, {"s": "1"})


def test_a_nonce_of_another_stream_means_nothing_on_a_new_one() -> None:
    SotwPlay().put(CDS, "a") >> SotwRequest(CDS, "12") << Sent(CDS, {"a": "1"})


def test_listeners_can_be_asked_for_by_name() -> None:
    # As proxyless gRPC does.
    play = SotwPlay().put(LDS, "a", "b", "c") >> SotwRequest(LDS, names=("a",))
    play << Sent(LDS, {"a": "1"}) >> Ack(LDS, ("a", "b")) << Sent(LDS, {"a": "1", "b": "1"})
    play >> Ack(LDS, ("b",)) << NOTHING
    play.put(LDS, "a", version="2") << NOTHING
    play.put(LDS, "b", version="2") << Sent(LDS, {"b": "2"}) >> Ack(LDS)
    play.gone(LDS, "b") << Sent(LDS) >> Ack(LDS) << NOTHING


def test_an_absent_listener_is_told_as_a_set_without_it() -> None:
    SotwPlay() >> SotwRequest(LDS, names=("a",)) << Sent(LDS) >> Ack(LDS) << NOTHING


def test_no_names_after_names_mean_none() -> None:
    play = SotwPlay().put(CDS, "a") >> SotwRequest(CDS, names=("a",)) << Sent(CDS, {"a": "1"})
    play >> Ack(CDS, ()) << NOTHING
    play.put(CDS, "a", version="2") << NOTHING


def test_names_after_none_end_the_wildcard() -> None:
    play = SotwPlay().put(CDS, "a", "b") >> SotwRequest(CDS) << Sent(CDS, {"a": "1", "b": "1"})
    play >> Ack(CDS, ("a",)) << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play.put(CDS, "b", version="2") << NOTHING
    assert play.world.wanted == {(CDS, "a")}
    play >> Ack(CDS, ("*",)) << Sent(CDS, {"a": "1", "b": "2"})


def test_routes_of_a_client_that_asks_for_clusters_by_name_do_not_wait() -> None:
    # It learns the names from its routes, so waiting would never end.
    play = SotwPlay().put(RDS, "r", clusters=("a",)).put(CDS, "a").put(EDS, "a")
    play >> SotwRequest(RDS, names=("r",)) << Sent(RDS, {"r": "1"}) >> Ack(RDS)
    play >> SotwRequest(CDS, names=("a",)) << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play >> SotwRequest(EDS, names=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS)
    # The cluster stays until the route that left it is accepted.
    play.change([(RDS, thing(RDS, "r", "2"))], [(CDS, "a"), (EDS, "a")])
    play << Sent(RDS, {"r": "2"}) << NOTHING >> Ack(RDS) << Sent(CDS)


def test_a_leaving_cluster_stays_in_the_set() -> None:
    play = SotwPlay().put(CDS, "a").put(RDS, "r", clusters=("a",)) >> SotwRequest(CDS)
    play << Sent(CDS, {"a": "1"}) >> Ack(CDS)
    play >> SotwRequest(RDS, names=("r",)) << Sent(RDS, {"r": "1"}) >> Ack(RDS)
    play.change([(RDS, thing(RDS, "r", "2", ("b",))), (CDS, thing(CDS, "b"))], [(CDS, "a")])
    play << Sent(CDS, {"a": "1", "b": "1"}) << NOTHING >> Ack(CDS) << Sent(RDS, {"r": "2"})
    play >> Ack(RDS) << Sent(CDS, {"b": "1"})


def test_a_changed_cluster_is_followed_by_its_endpoints() -> None:
    # go-control-plane 1035
    play = SotwPlay().put(CDS, "a").put(EDS, "a") >> SotwRequest(CDS) << Sent(CDS, {"a": "1"})
    play >> SotwRequest(EDS, names=("a",)) << Sent(EDS, {"a": "1"}) >> Ack(EDS) >> Ack(CDS)
    play.put(CDS, "a", version="2") << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "1"})


def test_who_comes_back_and_asks_for_endpoints_first_gets_them_after_its_clusters_too() -> None:
    play = SotwPlay().put(CDS, "a", version="2").put(EDS, "a") >> SotwRequest(EDS, names=("a",))
    play << Sent(EDS, {"a": "1"}) >> Ack(EDS) >> SotwRequest(CDS)
    play << Sent(CDS, {"a": "2"}) << Sent(EDS, {"a": "1"})


def test_an_unknown_type_hurts_nobody() -> None:
    # go-control-plane 1036
    play = SotwPlay().put(CDS, "a") >> SotwRequest(OTHER, names=("x",)) >> SotwRequest("")
    play << NOTHING >> SotwRequest(CDS) << Sent(CDS, {"a": "1"})

from __future__ import annotations

from isthmus.agent.totals import KEPT, Totals

SERIES = 'envoy_isthmus_outbound_http{labels="a;b"}'
OTHER = 'envoy_isthmus_outbound_http{labels="a;c"}'


def test_counters_outlive_what_counted() -> None:
    totals = Totals()
    assert totals.absorb(0.0, f"{SERIES} 5\n{OTHER} 1") == f"{SERIES} 5.0\n{OTHER} 1.0"
    assert totals.absorb(10.0, f"{OTHER} 2") == f"{OTHER} 2.0\n{SERIES} 5.0"
    assert totals.absorb(20.0, f"{OTHER} 2") == f"{OTHER} 2.0\n{SERIES} 5.0"
    assert totals.absorb(30.0, f"{SERIES} 1") == f"{SERIES} 6.0\n{OTHER} 2.0"


def test_a_counter_that_fell_began_anew() -> None:
    totals = Totals()
    totals.absorb(0.0, f"{SERIES} 5")
    assert totals.absorb(1.0, f"{SERIES} 2") == f"{SERIES} 7.0"
    assert totals.absorb(2.0, f"{SERIES} 3") == f"{SERIES} 8.0"


def test_what_is_gone_for_long_is_forgotten() -> None:
    totals = Totals()
    totals.absorb(0.0, f"{SERIES} 5")
    assert totals.absorb(KEPT, "") == f"{SERIES} 5.0"
    assert totals.absorb(KEPT + 1, "") == ""
    totals.absorb(2 * KEPT, f"{SERIES} 5")
    totals.begin()
    assert totals.absorb(2 * KEPT + 1, "") == ""


def test_other_lines_stay_as_they_are() -> None:
    page = "# TYPE x counter\nenvoy_server_live{} 1\nenvoy_isthmus_x nonsense"
    totals = Totals()
    assert totals.absorb(0.0, page) == page
    assert totals.absorb(1.0, "") == ""

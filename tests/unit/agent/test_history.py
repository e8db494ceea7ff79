from __future__ import annotations

import random

from isthmus.agent.history import LARGEST, LONGEST, History


def test_the_newest_page_that_is_old_enough() -> None:
    kept = History()
    kept.begin(100.0)
    kept.keep(110.0, "one")
    kept.keep(120.0, "two")
    assert kept.before(125.0, 15.0) == (15.0, "one")
    assert kept.before(125.0, 5.0) == (5.0, "two")
    assert kept.before(125.0, 60.0) == (25.0, "")  # it counted nothing before it began


def test_a_proxy_that_starts_again_has_no_past() -> None:
    kept = History()
    assert kept.before(5.0, 1.0) == (0.0, "")
    kept.begin(10.0)
    kept.keep(20.0, "one")
    kept.begin(30.0)
    assert kept.before(40.0, 20.0) == (10.0, "")


def test_what_is_kept_is_bounded() -> None:
    kept = History()
    kept.begin(0.0)
    for at in range(0, 5000, 10):
        kept.keep(float(at), "x")
    assert kept.before(4990.0, 9999.0).age <= LONGEST + 10
    page = random.Random(1).randbytes(LARGEST // 2).hex()
    for at in range(5000, 5100, 10):
        kept.keep(float(at), page)
    assert kept.before(5090.0, 9999.0).age <= 10.0

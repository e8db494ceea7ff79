from __future__ import annotations

from datetime import UTC, datetime

import pytest

from isthmus.model.duration import format_duration, parse_duration
from isthmus.model.quantity import parse_quantity
from isthmus.model.times import (
    age,
    format_micro_time,
    format_seconds,
    format_time,
    from_seconds,
    human_duration,
    parse_seconds,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04:05z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5Z", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:30", datetime(2026, 1, 2, 0, 34, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05-01:00", datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_rfc_3339(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-01-02", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z",
     "2026-01-02T25:04:05Z",
     "2026-01-02T03:04:05", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05Z\n",
     "0001-01-01T00:00:00+01:00", "\u0662026-01-02T03:04:05Z"],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    assert parse_time(text) is None
    assert parse_seconds(text) is None


def test_times_are_written_in_utc() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    assert format_time(moment) == "2026-01-02T03:04:05Z"
    assert format_micro_time(moment) == "2026-01-02T03:04:05.000678Z"
    assert format_time(datetime(1, 2, 3, tzinfo=UTC)) == "0001-02-03T00:00:00Z"
    assert format_seconds(0) == "1970-01-01T00:00:00Z"
    assert parse_seconds("1970-01-01T00:01:00.5Z") == 60.5
    with pytest.raises(ValueError, match="outside the calendar"):
        from_seconds(1e18)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-10, "<invalid>"), (-2.5, "<invalid>"), (-1, "0s"), (0, "0s"), (1.9, "1s"), (119, "119s"),
        (120, "2m"), (125, "2m5s"), (599, "9m59s"), (600, "10m"), (659, "10m"), (10799, "179m"),
        (10800, "3h"), (10860, "3h1m"), (28799, "7h59m"), (28800, "8h"), (172_799, "47h"),
        (172_800, "2d"), (176_400, "2d1h"), (691_199, "7d23h"), (691_200, "8d"),
        (63_071_999, "729d"), (63_072_000, "2y"), (63_158_400, "2y1d"), (252_287_999, "7y364d"),
        (252_288_000, "8y"), (1e9, "31y"),
    ],
)  # fmt: skip
def test_ages_as_kubectl_says_them(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_an_age_is_seen_from_now() -> None:
    now = parse_seconds("2026-01-02T03:09:05Z")
    assert now is not None
    assert age("2026-01-02T03:04:05Z", now) == "5m"
    assert age("", now) == "<unknown>"
    assert age("whenever", now) == "<unknown>"


@pytest.mark.parametrize(
    ("text", "nanoseconds", "canonical"),
    [
        ("0", 0, "0s"), ("0s", 0, "0s"), ("1ns", 1, "1ns"), ("1500ns", 1500, "1.5µs"),
        ("2us", 2000, "2µs"), ("300ms", 300_000_000, "300ms"), ("1.5s", 1_500_000_000, "1.5s"),
        ("90s", 90_000_000_000, "1m30s"), ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1h30m5.25s", 5_405_250_000_000, "1h30m5.25s"), ("-1m", -60_000_000_000, "-1m0s"),
        ("+2s", 2_000_000_000, "2s"), (".5s", 500_000_000, "500ms"), ("1.s", 1_000_000_000, "1s"),
    ],
)  # fmt: skip
def test_go_durations(text: str, nanoseconds: int, canonical: str) -> None:
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == canonical
    assert parse_duration(canonical) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "1", "s", ".s", "1x", "1s ", "1 s", "--1s", "1e3s", "9" * 20 + "h", "3000000h"],
)
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("100m", 0.1), ("1.5Gi", 1.5 * 2**30), ("2k", 2000), ("1e3", 1000), ("1E", 1e18),
     ("1E2", 100), ("5.", 5), (".5", 0.5), ("-3", -3), ("+1Ki", 1024), ("250u", 0.00025),
     ("1n", 1e-9)],
)  # fmt: skip
def test_quantities(text: str, value: float) -> None:
    found = parse_quantity(text)
    assert found is not None
    assert float(found) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "m", "1 ", "1K", "0x1", "1e999", "1.2.3", "NaN", "\uff11"])
def test_what_is_no_quantity(text: str) -> None:
    assert parse_quantity(text) is None

"""Times as the API writes them (RFC 3339, always UTC) and ages as kubectl writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

UNKNOWN: Final = "<unknown>"
"""What kubectl shows for a time that is not set."""

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str) -> datetime | None:
    """The moment of an RFC 3339 text, in UTC with microseconds, or None if it is not one."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    *parts, fraction, zone = found.groups()
    micro = int((fraction or "0").ljust(9, "0")[:6])
    try:
        local = datetime(*(int(part) for part in parts), micro, tzinfo=UTC)  # type: ignore[misc, arg-type]
        return local - _offset(zone)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
    if zone in "Zz":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def parse_seconds(text: str) -> float | None:
    """Seconds since the epoch of an RFC 3339 text, or None."""
    moment = parse_time(text)
    return None if moment is None else (moment - _EPOCH).total_seconds()


def format_time(moment: datetime) -> str:
    """`2026-01-02T03:04:05Z`: metav1.Time, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def format_micro_time(moment: datetime) -> str:
    """`2026-01-02T03:04:05.000006Z`: metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def format_seconds(seconds: float) -> str:
    """The metav1.Time text of seconds since the epoch. ValueError outside the years 1 to 9999."""
    return format_time(from_seconds(seconds))


def from_seconds(seconds: float) -> datetime:
    """The moment `seconds` after the epoch. ValueError outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{seconds} seconds is outside the calendar") from None


def age(timestamp: str, now: float) -> str:
    """How long ago an RFC 3339 time was, as kubectl's AGE column says it, or `<unknown>`."""
    then = parse_seconds(timestamp) if timestamp else None
    return UNKNOWN if then is None else human_duration(now - then)


def human_duration(seconds: float) -> str:
    """`30s`, `5m30s`, `12m`, `7h10m`, `30h`, `3d4h`, `20d`, `2y10d`, `9y`: kubectl's durations.

    Two units while the larger one is small, then one. Up to a second in the future counts as 0s;
    further in the future is `<invalid>`.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 60 * 2:
        return f"{max(whole, 0)}s"
    minutes = whole // 60
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    hours = whole // 3600
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days, years = hours // 24, hours // 24 // 365
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if years < 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"

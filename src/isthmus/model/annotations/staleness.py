"""multicluster.isthmus.dev/staleness on a Link: what becomes of endpoints when its API is silent.

    keep                 they stay (the default)
    drain-after: 30s     they are left out once the API has been silent for so long
    drop                 they are left out as soon as the API is silent

Blanks around words and after the colon do not count; the duration is a whole number and one unit
(ms, s, m, h, d), more than 0. Whatever is said here, a cluster whose API is silent and whose data
plane does not answer either is dead, and its endpoints are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from isthmus.model.annotations import keys
from isthmus.model.annotations.grammar import Problem, Unfit, parse_duration, parsed

_DRAIN: Final = "drain-after"


class Staleness(NamedTuple):
    """`leave_after`: milliseconds of silence after which endpoints are left out; None: never."""

    leave_after: int | None = None


KEEP: Final = Staleness()
DROP: Final = Staleness(0)


def staleness(annotations: Mapping[str, str]) -> Staleness | Problem:
    """What a Link says; `keep` where it says nothing."""
    found = parsed(annotations, keys.STALENESS, _read)
    return KEEP if found is None else found


def _read(text: str) -> Staleness:
    word, colon, span = (part.strip() for part in text.partition(":"))
    match word, colon:
        case "keep", "":
            return KEEP
        case "drop", "":
            return DROP
        case "drain-after", ":":
            millis = parse_duration(span)
            if not millis:
                raise Unfit("drain-after must be more than 0; write drop for at once")
            return Staleness(millis)
    raise Unfit(f"must be keep, drop, or {_DRAIN}: and a duration, such as {_DRAIN}: 30s")

"""What the page draws for which answer, and what that means. The page itself has the same rules.

So a test, or a person without a browser, can ask the gui for `state/` and is told what the page
would show.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from isthmus.lab.faces.words import COLORS, SMILEYS, entity

CONFUSED: Final = entity(0x1F615)
UPSET: Final = entity(0x1F62C)
NEUTRAL: Final = entity(SMILEYS["Neutral"])
CURSING: Final = entity(SMILEYS["Cursing"])
KABOOM: Final = entity(SMILEYS["Kaboom"])
SLEEPING: Final = entity(SMILEYS["Sleeping"])
GRINNING: Final = entity(SMILEYS["Grinning"])

PATIENCE: Final = 4
"""Timeouts in a row during which a cell keeps what it shows."""


class Entry(NamedTuple):
    """One line of the key: what it looks like, and what it means."""

    key: str
    title: str
    meaning: str
    smiley: str
    color: str
    border: str
    faded: bool = False


LEGEND: Final = (
    Entry(
        "fine", "All is well", "Smiley and color answered: this is what they said.",
        GRINNING, COLORS["blue"], "grey",
    ),
    Entry(
        "smiley", "Smiley failed", "The color is real, the cursing stands for a smiley.",
        CURSING, COLORS["blue"], "purple",
    ),
    Entry(
        "color", "Color failed", "The smiley is real, the grey stands for a color.",
        GRINNING, COLORS["grey"], "purple",
    ),
    Entry(
        "late", "Too late", "Asleep: smiley gave no answer in time. Red: color gave none.",
        SLEEPING, COLORS["red"], "purple",
    ),
    Entry(
        "limited", "Overwhelmed", "Too many requests for smiley (the face) or color (yellow).",
        KABOOM, COLORS["yellow"], "purple",
    ),
    Entry(
        "face", "Face failed", "The face service failed, or cannot be reached.",
        CONFUSED, COLORS["purple"], "grey",
    ),
    Entry(
        "stuck", "Face is stuck", "Face answers 599: errors until it is left alone for 30 s.",
        NEUTRAL, COLORS["yellow"], "grey",
    ),
    Entry(
        "refused", "Refused", "Somebody on the way said no, such as 403 or 404.",
        UPSET, COLORS["purple"], "grey",
    ),
    Entry(
        "timeout", "Face timed out", "504 or 429 more than four times in a row.",
        SLEEPING, COLORS["red"], "grey", faded=True,
    ),
    Entry(
        "slow", "Slow", "No answer for two seconds: the cell fades until one comes.",
        "", "", "dashed",
    ),
)  # fmt: skip

BY_KEY: Final = {entry.key: entry for entry in LEGEND}

_MEANS: Final = (
    ("smiley", "smiley", {CURSING: "smiley", SLEEPING: "late", KABOOM: "limited"}),
    (
        "color",
        "color",
        {COLORS["grey"]: "color", COLORS["red"]: "late", COLORS["yellow"]: "limited"},
    ),
)


class Look(NamedTuple):
    """What a cell shows after an answer. `keys` are the lines of the key that say what it means.

    A timeout changes nothing (`smiley` is ""), until there were too many in a row.
    """

    keys: tuple[str, ...]
    smiley: str
    color: str
    border: str
    errors: tuple[str, ...] = ()


def look(status: int | None, body: bytes) -> Look:
    """The look of one answer; None is an answer that never came."""
    match status:
        case 200:
            return _told(body)
        case 504 | 429:
            return Look(("timeout",), "", "", "grey")
        case 599:
            return _as("stuck")
        case None:
            return _as("face")
        case number if 500 <= number < 600:
            return _as("face")
        case _:
            return _as("refused")


def _as(key: str) -> Look:
    entry = BY_KEY[key]
    return Look((key,), entry.smiley, entry.color, entry.border)


def _told(body: bytes) -> Look:
    try:
        read = json.loads(body)
        smiley, color = str(read["smiley"]), str(read["color"])
        errors = tuple(map(str, read.get("errors") or ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Look(("face",), CONFUSED, COLORS["purple"], "purple")
    keys = _keys({"smiley": smiley, "color": color}, errors) if errors else ("fine",)
    return Look(keys, smiley, color, "purple" if errors else "grey", errors)


def _keys(shown: dict[str, str], errors: tuple[str, ...]) -> tuple[str, ...]:
    """Who failed is named at the beginning of an error; how, by what stands for the answer."""
    found = [
        means.get(shown[part], key)
        for part, key, means in _MEANS
        if any(error.startswith(part) for error in errors)
    ]
    return tuple(dict.fromkeys(found)) or ("limited",)

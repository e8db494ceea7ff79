"""Smileys and colors by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SMILEYS: Final[Mapping[str, int]] = {
    "Grinning": 0x1F603,
    "Sleeping": 0x1F634,
    "Cursing": 0x1F92C,
    "Kaboom": 0x1F92F,
    "HeartEyes": 0x1F60D,
    "Neutral": 0x1F610,
    "RollingEyes": 0x1F644,
    "Screaming": 0x1F631,
    "Vomiting": 0x1F92E,
}
COLORS: Final[Mapping[str, str]] = {
    "grey": "#BBBBBB",
    "black": "#000000",
    "white": "#FFFFFF",
    "darkblue": "#4477AA",
    "blue": "#66CCEE",
    "green": "#228833",
    "yellow": "#CCBB44",
    "red": "#EE6677",
    "purple": "#AA3377",
}
"""A palette that people with any color vision can tell apart (Paul Tol's "bright")."""

_WRITTEN: Final = re.compile(r"(?:&#x|U\+)([0-9A-Fa-f]{1,6});?")


def smiley(name: str) -> str:
    """A smiley as an HTML entity: by its name, a code point, or itself; Neutral if it is none."""
    code = SMILEYS.get(name)
    if code is None:
        written = _WRITTEN.fullmatch(name)
        if written is not None and 0x20 < int(written[1], 16) <= 0x10FFFF:
            code = int(written[1], 16)
        elif len(name) == 1 and ord(name) > 0x2000:
            code = ord(name)
    return entity(SMILEYS["Neutral"] if code is None else code)


def entity(code: int) -> str:
    """`&#x1F603;`."""
    return f"&#x{code:X};"


def color(name: str) -> str:
    """A color as HTML has it: by its name, or as written if it begins with `#`; else yellow."""
    return name if name.startswith("#") else COLORS.get(name, COLORS["yellow"])

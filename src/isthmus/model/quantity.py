"""Quantities of resources: `100m`, `1.5Gi`, `2e3`. Text in, exact numbers out."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_TEXT: Final = re.compile(
    r"([+-]?)([0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(n|u|m|k|[MGTPE]i?|Ki|[eE][+-]?[0-9]{1,2})?",
    re.ASCII,
)

_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


def parse_quantity(text: str) -> Fraction | None:
    """The exact number that a quantity says, or None if it is not one."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    sign, digits, suffix = found[1], found[2], found[3] or ""
    factor = _SUFFIXES.get(suffix)
    if factor is None:
        factor = Fraction(10) ** int(suffix[1:])
    value = Fraction(digits if digits[-1] != "." else digits[:-1]) * factor
    return -value if sign == "-" else value

"""Numbers in names of resources."""

from __future__ import annotations


def read_port(text: str) -> int | None:
    """A number from 0 to 65535 as `str` writes it."""
    fits = text.isascii() and text.isdecimal() and len(text) <= 5 and str(int(text)) == text
    return int(text) if fits and int(text) <= 65535 else None

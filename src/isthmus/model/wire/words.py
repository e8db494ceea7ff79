"""What messages and fields are for, from words.txt. Read once, when somebody asks to be told."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

ANY = "*"
"""Whose fields mean the same in every message that does not say otherwise."""


@cache
def words() -> Mapping[tuple[str, str], str]:
    """(message, field) -> its words; of the message itself under the field ""."""
    found: dict[tuple[str, str], str] = {}
    text = files("isthmus.model.wire").joinpath("words.txt").read_text(encoding="utf-8")
    message = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, said = line.strip().partition("  ")
        if line.startswith(" "):
            found[message, name] = said
        else:
            message = name
            found[message, ""] = said
    return found


def about_message(message: str) -> str:
    """What a message is, or ""."""
    return words().get((message, ""), "")


def about_field(message: str, field: str) -> str:
    """What a field of a message is for, or ""."""
    held = words()
    return held.get((message, field)) or held.get((ANY, field), "")

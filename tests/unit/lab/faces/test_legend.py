"""What the page draws for which answer; and names of smileys and colors."""

from __future__ import annotations

import json

import pytest

from isthmus.lab.faces.legend import BY_KEY, CURSING, GRINNING, KABOOM, LEGEND, SLEEPING, Look, look
from isthmus.lab.faces.words import COLORS, color, smiley

BLUE, GREY, RED, YELLOW = (COLORS[name] for name in ("blue", "grey", "red", "yellow"))


def reply(face: str = GRINNING, shade: str = BLUE, *errors: str) -> bytes:
    return json.dumps({"smiley": face, "color": shade, "errors": errors}).encode()


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        (reply(), ("fine",)),
        (reply(CURSING), ("fine",)),  # a smiley may be told to curse
        (reply(CURSING, BLUE, "smiley: 500"), ("smiley",)),
        (reply(SLEEPING, BLUE, "smiley: late"), ("late",)),
        (reply(KABOOM, BLUE, "smiley: 429"), ("limited",)),
        (reply(GRINNING, GREY, "color: INTERNAL"), ("color",)),
        (reply(GRINNING, RED, "color: DEADLINE_EXCEEDED"), ("late",)),
        (reply(GRINNING, YELLOW, "color: RESOURCE_EXHAUSTED"), ("limited",)),
        (reply(CURSING, GREY, "smiley: 500", "color: INTERNAL"), ("smiley", "color")),
        (reply(SLEEPING, RED, "smiley: late", "color: late"), ("late",)),
        (reply(KABOOM, YELLOW, "Rate limited (5 RPS > max 1 RPS)"), ("limited",)),
    ],
)
def test_a_face(body: bytes, keys: tuple[str, ...]) -> None:
    found = look(200, body)
    assert found.keys == keys
    assert found.border == ("grey" if keys == ("fine",) else "purple")
    read = json.loads(body)
    assert (found.smiley, found.color) == (read["smiley"], read["color"])


@pytest.mark.parametrize(
    ("status", "key"),
    [
        (500, "face"),
        (503, "face"),
        (599, "stuck"),
        (None, "face"),
        (403, "refused"),
        (301, "refused"),
    ],
)
def test_no_face(status: int | None, key: str) -> None:
    entry = BY_KEY[key]
    assert look(status, b"why") == Look((key,), entry.smiley, entry.color, entry.border)


@pytest.mark.parametrize("status", [504, 429])
def test_a_timeout_changes_nothing_at_first(status: int) -> None:
    assert look(status, b"").smiley == ""
    assert look(status, b"").keys == ("timeout",)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'"x"', b"{" * 5000, b'{"smiley": "x"}', b"\xff"]
)
def test_a_face_that_cannot_be_read(body: bytes) -> None:
    found = look(200, body)
    assert (found.keys, found.border) == (("face",), "purple")


def test_every_line_of_the_key_looks_like_no_other() -> None:
    looks = {(entry.smiley, entry.color, entry.border, entry.faded) for entry in LEGEND}
    assert len(looks) == len(LEGEND) == len(BY_KEY)


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("Grinning", "&#x1F603;"),
        ("HeartEyes", "&#x1F60D;"),
        ("nobody", "&#x1F610;"),
        ("U+1F600", "&#x1F600;"),
        ("&#x1F600;", "&#x1F600;"),
        ("\U0001f600", "&#x1F600;"),
        ("U+FFFFFF", "&#x1F610;"),
        ("<", "&#x1F610;"),
    ],
)
def test_smileys(name: str, entity: str) -> None:
    assert smiley(name) == entity


def test_colors() -> None:
    assert [color(name) for name in ("blue", "#123456", "mauve")] == ["#66CCEE", "#123456", YELLOW]

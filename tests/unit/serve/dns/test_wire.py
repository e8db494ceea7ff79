"""Packets of people who do not keep to the rules."""

from __future__ import annotations

import struct

import pytest
from dns import flags, message, opcode

from isthmus.serve.dns.machine import wire
from isthmus.serve.dns.machine.wire import Bad, Edns, Frames, Question, Rcode, parse


def packet(
    question: bytes = b"\1a\0\0\1\0\1",
    *,
    flag_bits: int = 0x0100,
    counts: tuple[int, int, int, int] = (1, 0, 0, 0),
    rest: bytes = b"",
) -> bytes:
    return struct.pack(">HHHHHH", 7, flag_bits, *counts) + question + rest


OPT = b"\0" + struct.pack(">HHIH", 41, 4096, 0x8000, 0)


def test_a_question() -> None:
    query = message.make_query("Cart.Shop.Example", "AAAA", id=4711)
    found = parse(query.to_wire())
    assert isinstance(found, Question)
    assert (found.ident, found.text, found.rdtype, found.rdclass) == (
        4711,
        "cart.shop.example",
        28,
        1,
    )
    assert found.edns is None


def test_edns() -> None:
    found = parse(packet(counts=(1, 0, 0, 1), rest=OPT))
    assert isinstance(found, Question)
    assert found.edns == Edns(4096, 0, 0x8000)


def test_options_and_signatures_are_passed_over() -> None:
    options = b"\0" + struct.pack(">HHIH", 41, 1400, 0, 12) + b"\0\x0a\0\x08abcdefgh"
    signature = b"\1k\xc0\x0c" + struct.pack(">HHIH", 250, 255, 0, 3) + b"abc"
    found = parse(packet(counts=(1, 0, 0, 2), rest=options + signature))
    assert isinstance(found, Question)
    assert found.edns == Edns(1400, 0, 0)


def test_a_dot_stays_in_its_label() -> None:
    found = parse(packet(b"\3a.b\1\\\0\0\1\0\1"))
    assert isinstance(found, Question)
    assert found.text == "a\\.b.\\\\"


def test_the_root() -> None:
    found = parse(packet(b"\0\0\2\0\1"))
    assert isinstance(found, Question)
    assert found.text == ""


@pytest.mark.parametrize("raw", [b"", b"\0" * 11, packet(flag_bits=0x8180)])
def test_what_is_no_question_is_not_answered(raw: bytes) -> None:
    assert parse(raw) is None


@pytest.mark.parametrize("code", [opcode.NOTIFY, opcode.UPDATE, opcode.IQUERY, opcode.STATUS])
def test_other_operations_are_not_for_us(code: opcode.Opcode) -> None:
    raw = packet(flag_bits=int(code) << 11)
    bad = parse(raw)
    assert bad == Bad(7, int(code) << 11, Rcode.NOTIMP)
    assert isinstance(bad, Bad)
    answer = message.from_wire(wire.refusal(bad))
    assert answer.flags & flags.QR
    assert (answer.opcode(), answer.id) == (code, 7)


LONG = (b"\x3f" + b"a" * 63) * 4 + b"\0\0\1\0\1"


@pytest.mark.parametrize(
    "raw",
    [
        packet(counts=(0, 0, 0, 0)),
        packet(counts=(2, 0, 0, 0)),
        packet(counts=(1, 1, 0, 0)),
        packet(counts=(1, 0, 1, 0)),
        packet(counts=(1, 0, 0, 17)),
        packet(counts=(1, 0, 0, 65535)),
        packet(b""),
        packet(b"\5abc"),
        packet(b"\1a\0\0\1\0"),
        packet(b"\xc0\x0c\0\1\0\1"),  # a name that is itself
        packet(b"\1a\xc0\x0c\0\1\0\1"),
        packet(b"\x40a\0\0\1\0\1"),
        packet(LONG),
        packet(rest=b"more"),
        packet(counts=(1, 0, 0, 1)),
        packet(counts=(1, 0, 0, 1), rest=OPT[:-1]),
        packet(counts=(1, 0, 0, 1), rest=OPT[:-2] + b"\0\5"),
        packet(counts=(1, 0, 0, 2), rest=OPT * 2),
        packet(counts=(1, 0, 0, 1), rest=b"\1a" + OPT),
        packet(counts=(1, 0, 0, 1), rest=b"\x80" + OPT),
        packet(rest=b"x" * 5000),
    ],
)
def test_a_question_that_cannot_be_read(raw: bytes) -> None:
    assert parse(raw) == Bad(7, 0x0100, Rcode.FORMERR)


def test_the_longest_name_is_read() -> None:
    labels = (b"\x3f" + b"a" * 63) * 3 + b"\x3d" + b"b" * 61 + b"\0"
    assert len(labels) == 255
    assert isinstance(parse(packet(labels + b"\0\1\0\1")), Question)


# ------------------------------------------------------------------------------- frames


def test_frames_come_in_any_pieces() -> None:
    frames, got = Frames(), []
    stream = Frames.frame(b"one") + Frames.frame(b"two!")
    for at in range(len(stream)):
        frames.feed(stream[at : at + 1])
        got += list(frames.take())
    assert got == [b"one", b"two!"]
    assert not frames.broken


@pytest.mark.parametrize("head", [b"\0\0", b"\xff\xff", b"\x10\x01"])
def test_a_frame_that_is_empty_or_too_long(head: bytes) -> None:
    frames = Frames()
    frames.feed(Frames.frame(b"fine") + head + b"x" * 100)
    assert list(frames.take()) == [b"fine"]
    assert frames.broken
    frames.feed(Frames.frame(b"more"))
    assert list(frames.take()) == []

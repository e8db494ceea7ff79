"""Whatever comes in, nothing bad comes out; what comes out can be read by dnspython."""

from __future__ import annotations

from dns import exception, message
from hypothesis import given
from hypothesis import strategies as st

from isthmus.serve.dns.machine import Frames, Transport
from tests.support.dnsworld import SVC, Asker
from tests.support.meshworld import DOMAIN

ASKER = Asker()
TRANSPORTS = st.sampled_from(Transport)
LABELS = st.sampled_from(
    ["cart", "db", "many", "out", "near", "far", "shop", "svc", "pod", "_http", "_pg", "_tcp",
     "_udp",
     "db-1", "10-0-0-1", "color", "in-addr", "arpa", "10", "0", "none", "x" * 63, "a b", "ä"]
)  # fmt: skip
NAMES = st.builds(
    lambda labels, suffix: ".".join([*labels, *suffix]),
    st.lists(LABELS, max_size=4),
    st.sampled_from([[DOMAIN], SVC.split("."), ["in-addr", "arpa"], ["org"], []]),
)
KINDS = st.one_of(
    st.sampled_from(["A", "AAAA", "SRV", "PTR", "CNAME", "TXT", "SOA", "NS", "ANY", "HTTPS"]),
    st.integers(1, 65535).map(lambda number: f"TYPE{number}"),
)
SIZES = st.one_of(st.none(), st.integers(0, 65535))


@given(NAMES, KINDS, SIZES, TRANSPORTS)
def test_every_answer_can_be_read_and_fits(
    name: str, kind: str, payload: int | None, transport: Transport
) -> None:
    try:
        query = message.make_query(
            name, kind, use_edns=False if payload is None else 0, payload=payload or 0
        )
    except exception.DNSException:
        return
    raw = ASKER.raw(query.to_wire(), transport)
    assert raw is not None
    answer = message.from_wire(raw)
    assert query.is_response(answer)
    if transport is Transport.UDP:
        assert len(raw) <= max(512, min(payload or 0, 1232))


@given(st.binary(max_size=600), TRANSPORTS)
def test_noise_is_answered_with_a_refusal_or_not_at_all(noise: bytes, transport: Transport) -> None:
    raw = ASKER.raw(noise, transport)
    if raw is not None:
        assert raw[:2] == noise[:2]
        assert raw[2] & 0x80
        assert ASKER.raw(raw, transport) is None  # nor is an answer ever answered


@given(NAMES, KINDS, st.data())
def test_a_spoilt_question_does_no_harm(name: str, kind: str, data: st.DataObject) -> None:
    try:
        spoilt = bytearray(message.make_query(name, kind, use_edns=0).to_wire())
    except exception.DNSException:
        return
    for _ in range(data.draw(st.integers(1, 6))):
        spoilt[data.draw(st.integers(2, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(spoilt)))
    for packet in (bytes(spoilt), bytes(spoilt[:cut])):
        raw = ASKER.raw(packet, Transport.UDP)
        assert raw is None or len(raw) <= 1232


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8), st.data())
def test_frames_survive_any_cutting(messages: list[bytes], data: st.DataObject) -> None:
    stream, frames, got = b"".join(map(Frames.frame, messages)), Frames(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        frames.feed(stream[:size])
        stream = stream[size:]
        got += list(frames.take())
    assert got == messages

"""Short words for the steps of a decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from isthmus.ir.outbound import Detect, Grpc, Http1, Http2, Protocol, Tcp, Tls
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, Retry, Timeouts, ValueMatch


def protocol_word(protocol: Protocol) -> str:
    """What a port speaks."""
    match protocol:
        case Http1():
            return "HTTP/1"
        case Http2():
            return "HTTP/2"
        case Grpc():
            return "gRPC"
        case Tls():
            return "TLS"
        case Tcp():
            return "TCP"
        case Detect():
            return "whatever comes"
        case _:
            assert_never(protocol)


def match_words(match: HttpMatch | GrpcMatch) -> str:
    """`path prefix /v2, method GET, header x-user`; `everything` for an empty match."""
    return ", ".join(_parts(match)) or "everything"


def _parts(match: HttpMatch | GrpcMatch) -> Iterator[str]:
    match match:
        case HttpMatch():
            if match.path is not None:
                yield f"path {match.path.match.value} {match.path.value}"
            if match.method:
                yield f"method {' or '.join(match.method)}"
            yield from (f"query {_value(each)}" for each in match.query)
        case GrpcMatch():
            if match.service:
                yield f"service {match.service}"
            if match.method:
                yield f"method {match.method}"
        case _:
            assert_never(match)
    yield from (f"header {_value(each)}" for each in match.headers)


def _value(match: ValueMatch) -> str:
    negated = "not " if match.invert else ""
    if match.match in (Match.PRESENT, Match.ABSENT):
        return f"{match.name} {negated}{match.match.value}"
    return f"{match.name} {negated}{match.match.value} {match.value!r}"


def duration(millis: int) -> str:
    """`10 s`, `250 ms`."""
    return f"{millis // 1000} s" if millis % 1000 == 0 else f"{millis} ms"


def limits(timeouts: Timeouts, retry: Retry | None) -> Iterator[str]:
    """What a rule says about time and further attempts."""
    spans = {
        "request": timeouts.request,
        "attempt": timeouts.attempt,
        "response": timeouts.response,
        "idle": timeouts.idle,
    }
    said = [f"{name} {duration(span)}" for name, span in spans.items() if span is not None]
    if said:
        yield f"timeouts: {', '.join(said)}"
    if retry is not None:
        yield f"tried again {retry.limit} times at most"

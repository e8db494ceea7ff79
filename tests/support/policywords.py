"""An OutboundPolicy of linkerd's wire in the words of `outbound_words`.

So that one case can say what the mesh means and what clients are told. What the wire has no place
for is `UNSAID`, which is as anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.duration_pb2 import Duration

from isthmus.proto.linkerd import http_route_pb2 as http
from isthmus.proto.linkerd import http_types_pb2 as types
from isthmus.proto.linkerd import meta_pb2 as meta
from isthmus.proto.linkerd import outbound_pb2 as pb
from tests.support.meshworld import DOMAIN, socket

Words = dict[str, Any]


class Unsaid:
    """Equal to everything: the wire does not say."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


UNSAID = Unsaid()


def policy(found: pb.OutboundPolicy, asked: tuple[str, int] | None) -> Words:
    """The whole answer to a client that dialled `asked`."""
    kind = found.protocol.WhichOneof("kind") or ""
    said = getattr(found.protocol, kind)
    words: Words = {"parent": source(found.metadata), "protocol": kind, "accrual": accrual(said)}
    if kind != "detect":
        word = {"http1": "http", "http2": "http"}.get(kind, kind)
        return words | {word: [route(each, asked) for each in said.routes]}
    assert said.http1.routes == said.http2.routes
    assert said.http1.failure_accrual == said.http2.failure_accrual
    return words | {
        "timeout": millis(said.timeout),
        "http": [route(each, asked) for each in said.http1.routes],
        "opaque": [route(each, asked) for each in said.opaque.routes],
        "accrual": accrual(said.http1),
    }


def millis(said: Duration) -> int:
    return said.seconds * 1000 + said.nanos // 1_000_000


def accrual(said: Any) -> Words | None:  # noqa: ANN401 - messages of many kinds
    if "failure_accrual" not in said.DESCRIPTOR.fields_by_name:
        return None
    kind = said.failure_accrual.WhichOneof("kind")
    if kind is None:
        return None
    found = getattr(said.failure_accrual, kind)
    words: Words = {
        "kind": kind,
        "min": millis(found.backoff.min_backoff),
        "max": millis(found.backoff.max_backoff),
        "jitter": round(found.backoff.jitter_ratio, 3),
    }
    if kind == "consecutive_failures":
        return words | {"failures": found.max_failures}
    return words | {
        "failures": found.max_consecutive_failures,
        "threshold": round(found.success_rate_threshold, 3),
        "window": millis(found.decay),
        "requests": found.min_requests,
        "hints": found.backoff.respect_retry_after_hint,
    }


def source(said: meta.Metadata) -> str:
    """`Service orchard/cider:80`, or the word of a default."""
    if said.WhichOneof("kind") == "default":
        return said.default
    found = said.resource
    port = f":{found.port}" if found.port else ""
    return f"{found.kind} {found.namespace}/{found.name}{port}"


def route(said: Any, asked: tuple[str, int] | None) -> Words:  # noqa: ANN401 - four kinds of routes
    words: Words = {"route": source(said.metadata)}
    if said.metadata.WhichOneof("kind") == "resource":
        words["group"] = said.metadata.resource.group
    if isinstance(said, pb.HttpRoute | pb.GrpcRoute):
        rules = [_rule(each, asked) for each in said.rules]
        return words | {"hosts": [_host(each) for each in said.hosts], "rules": rules}
    if isinstance(said, pb.TlsRoute):
        words["hosts"] = [_host(each) for each in said.snis]
    (only,) = said.rules
    return words | {"filters": [_filter(each) for each in only.filters], **_sent(only, asked)}


def _rule(said: Any, asked: tuple[str, int] | None) -> Words:  # noqa: ANN401
    found = _timeouts(said)
    return {
        "matches": [_match(each) for each in said.matches],
        "filters": [_filter(each) for each in said.filters],
        "timeouts": found,
        "retry": _retry(said.retry) if said.HasField("retry") else None,
        **_sent(said, asked),
    }


def _timeouts(said: Any) -> Words | None:  # noqa: ANN401
    if not said.HasField("timeouts"):
        return None
    found = said.timeouts
    names = [name for name in ("request", "response", "idle") if found.HasField(name)]
    if isinstance(said, pb.HttpRoute.Rule):
        assert said.HasField("requestTimeout") == found.HasField("request")
        assert said.requestTimeout == found.request
    return {"attempt": UNSAID} | {name: millis(getattr(found, name)) for name in names}


def _retry(said: Any) -> Words:  # noqa: ANN401
    assert (said.backoff.jitter_ratio, said.max_request_bytes) == (1.0, 65536)
    codes = {"cancelled": 1, "deadine_exceeded": 4, "resource_exhausted": 8, "internal": 13}
    codes["unavailable"] = 14
    calls = isinstance(said, pb.GrpcRoute.Retry)
    ranges = [] if calls else [[each.start, each.end] for each in said.conditions.status_ranges]
    found = [code for name, code in codes.items() if calls and getattr(said.conditions, name)]
    return {
        "limit": said.max_retries,
        "statuses": UNSAID if calls else ranges,
        "grpc": found if calls else UNSAID,
        "timeout": millis(said.timeout) if said.HasField("timeout") else None,
        "backoff": [millis(said.backoff.min_backoff), millis(said.backoff.max_backoff)],
    }


# ------------------------------------------------------------------------------------ backends


def _sent(said: Any, asked: tuple[str, int] | None) -> Words:  # noqa: ANN401
    kind = said.backends.WhichOneof("kind")
    if kind == "empty":
        return {"backends": []}
    if kind == "first_available":
        return {"first": [_backend(each, asked) for each in said.backends.first_available.backends]}
    assert kind == "random_available", kind
    some = said.backends.random_available.backends
    return {"weighted": [_backend(e.backend, asked) | {"weight": e.weight} for e in some]}


def _backend(said: Any, asked: tuple[str, int] | None) -> Words:  # noqa: ANN401
    found = said.backend
    assert (found.queue.capacity, millis(found.queue.failfast_timeout)) == (100, 3000)
    words: Words = {"from": source(found.metadata)}
    filters = [_filter(each) for each in said.filters]
    match found.WhichOneof("kind"):
        case "balancer":
            words |= {"to": _name(found.balancer.discovery.dst.path), "load": _load(found.balancer)}
            return words | ({"filters": filters} if filters else {})
        case "forward":
            where = socket(found.forward.addr)
            return words | {"to": "where it was going" if where == asked else where}
        case _:
            (only,) = filters
            why = only.get("message", only.get("invalid"))
            status = only.get("fail", UNSAID)
            return words | {"refused": status, "grpc": only.get("grpc", UNSAID), "why": why}


def _name(path: str) -> str:
    host, _, port = path.rpartition(":")
    suffix = f".svc.{DOMAIN}"
    assert host.endswith(suffix), path
    return f"{host.removesuffix(suffix)}:{port}"


def _load(said: pb.Backend.BalanceP2c) -> Words:
    kind = said.WhichOneof("load") or ""
    found = getattr(said, kind)
    assert (millis(found.default_rtt), millis(found.decay)) == (30, 10_000)
    words: Words = {"kind": kind}
    if kind == "penalty_peak_ewma":
        words |= {"penalty": millis(found.penalty), "hint": millis(found.max_retry_after)}
    return words


# --------------------------------------------------------------------------- matches and filters


def _host(said: Any) -> str:  # noqa: ANN401 - of requests or server names
    if said.WhichOneof("match") == "exact":
        return str(said.exact)
    return ".".join(["*", *reversed(said.suffix.reverse_labels)])


def _match(said: Any) -> Words:  # noqa: ANN401
    headers = _values(said.headers)
    words: Words = {"headers": headers} if headers else {}
    if "rpc" in said.DESCRIPTOR.fields_by_name:
        assert said.HasField("rpc")  # or a proxy refuses the whole policy
        named = {"service": said.rpc.service, "method": said.rpc.method}
        return {key: value for key, value in named.items() if value} | words
    if said.HasField("path"):
        kind = said.path.WhichOneof("kind")
        words[kind] = getattr(said.path, kind)
    if said.query_params:
        words["query"] = _values(said.query_params)
    if said.HasField("method"):
        words["method"] = types.HttpMethod.Registered.Name(said.method.registered)
    return words


def _values(said: Iterable[Any]) -> Words:
    found: Words = {}
    for each in said:
        kind = each.WhichOneof("value")
        value = getattr(each, kind)
        text = value.decode() if isinstance(value, bytes) else value
        found[each.name] = text if kind == "exact" else {kind: text}
    return found


def _filter(said: Any) -> Words:  # noqa: ANN401
    kind = said.WhichOneof("kind")
    found = getattr(said, kind)
    match kind:
        case "failure_injector":
            http_one = isinstance(found, http.HttpFailureInjector)
            numbers = (found.status, UNSAID) if http_one else (UNSAID, found.code)
            return {"fail": numbers[0], "grpc": numbers[1], "message": found.message}
        case "request_header_modifier" | "response_header_modifier":
            return {kind.partition("_")[0]: _headers(found)}
        case "redirect":
            return {"redirect": _redirect(found)}
        case "forbidden":
            return {"forbid": UNSAID}
        case "invalid":
            return {"invalid": found.message}
        case _:
            raise AssertionError(said)


def _headers(said: Any) -> Words:  # noqa: ANN401
    found: Words = {
        name: {each.name: each.value.decode() for each in getattr(said, name).headers}
        for name in ("set", "add")
    }
    found["remove"] = list(said.remove)
    return {name: value for name, value in found.items() if value}


def _redirect(said: http.RequestRedirect) -> Words:
    scheme = types.Scheme.Registered.Name(said.scheme.registered).lower()
    path = said.path.WhichOneof("replace")
    return {
        "status": said.status,
        "scheme": scheme if said.HasField("scheme") else None,
        "host": said.host or None,
        "port": said.port or None,
        "path": {path: getattr(said.path, path)} if path else None,
    }

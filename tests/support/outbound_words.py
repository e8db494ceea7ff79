"""What clients are told to do, as short words: lists and mappings; a case names a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from isthmus.dialects.xds.hosts import domain
from isthmus.ir.names import Default, Origin, Source
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    GrpcRoute,
    GrpcRule,
    Http1,
    Http2,
    HttpRoute,
    HttpRule,
    Outbound,
    Spread,
    Tcp,
    TcpRoute,
    Tls,
    TlsRoute,
)
from isthmus.ir.rules import (
    Fail,
    Forbid,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    Redirect,
    Retry,
    Rewrite,
    Timeouts,
    ValueMatch,
)
from isthmus.ir.target import Backend, OriginalDst, Refuse, To

Words = dict[str, Any]
Route = HttpRoute | GrpcRoute | TlsRoute | TcpRoute


def policy(found: Outbound) -> Words:
    """An Outbound: its protocol, and the routes of each kind."""
    said: Words = {"parent": source(found.source)}
    match found.protocol:
        case Http1(routes=some):
            return said | {"protocol": "http1", "http": routes(some)}
        case Http2(routes=some):
            return said | {"protocol": "http2", "http": routes(some)}
        case Grpc(routes=calls):
            return said | {"protocol": "grpc", "grpc": routes(calls)}
        case Tls(routes=names):
            return said | {"protocol": "tls", "tls": routes(names)}
        case Tcp(routes=raw):
            return said | {"protocol": "opaque", "opaque": routes(raw)}
        case Detect(timeout=timeout, http=some, tcp=raw):
            both = {"http": routes(some), "opaque": routes(raw)}
            return said | {"protocol": "detect", "timeout": timeout, **both}
        case _:
            assert_never(found.protocol)


def source(found: Source) -> str:
    """`Service orchard/cider:80`, or the word of a default."""
    if isinstance(found, Default):
        return found.name
    port = f":{found.port}" if found.port else ""
    return f"{found.ref.kind} {found.ref.namespace}/{found.ref.name}{port}"


def routes(found: Sequence[Route]) -> list[Words]:
    """Routes in their order."""
    return [_route(each) for each in found]


def _route(found: Route) -> Words:
    said: Words = {"route": source(found.source)}
    if isinstance(found.source, Origin):
        said["group"] = found.source.ref.group
    if isinstance(found, HttpRoute | GrpcRoute):
        hosts = [domain(each) for each in found.hosts]
        return said | {"hosts": hosts, "rules": [_rule(each) for each in found.rules]}
    if isinstance(found, TlsRoute):
        said["hosts"] = [domain(each) for each in found.snis]
    return said | {"filters": [_filter(each) for each in found.filters], **_sending(found)}


def _rule(found: HttpRule | GrpcRule) -> Words:
    return {
        "matches": [_match(each) for each in found.matches],
        "filters": [_filter(each) for each in found.filters],
        "timeouts": _timeouts(found.timeouts),
        "retry": _retry(found.retry),
        **_sending(found),
    }


def _sending(found: HttpRule | GrpcRule | TlsRoute | TcpRoute) -> Words:
    if found.spread is Spread.NONE:
        return {"backends": []}
    return {found.spread.value: [_backend(each) for each in found.backends]}


def _backend(found: Backend) -> Words:
    said: Words = {"from": source(found.source), "weight": found.weight}
    match found:
        case To(target=target, filters=filters):
            said |= {"to": f"{target.id.service}.{target.id.namespace}:{target.id.port}"}
            return said | ({"filters": [_filter(each) for each in filters]} if filters else {})
        case OriginalDst():
            return said | {"to": "where it was going"}
        case Refuse(status=status, message=message):
            return said | {"refused": status, "why": message}
        case _:
            assert_never(found)


def _match(found: HttpMatch | GrpcMatch) -> Words:
    said: Words = {"headers": _values(found.headers)} if found.headers else {}
    if isinstance(found, GrpcMatch):
        named = {"service": found.service, "method": found.method}
        return {key: value for key, value in named.items() if value} | said
    if found.path is not None:
        said[found.path.match.value] = found.path.value
    if found.query:
        said["query"] = _values(found.query)
    if found.method:
        said["method"] = "|".join(found.method)
    return said


def _values(found: Sequence[ValueMatch]) -> Words:
    return {
        each.name: each.value if each.match is Match.EXACT else {each.match.value: each.value}
        for each in found
    }


def _filter(found: object) -> Words:
    match found:
        case HeaderChange():
            name = "response" if found.on_response else "request"
            kept = {"set": dict(found.set), "add": dict(found.add), "remove": list(found.remove)}
            return {name: {key: value for key, value in kept.items() if value}}
        case Redirect():
            path = {"full": found.path.full, "prefix": found.path.prefix} if found.path else None
            return {
                "redirect": {
                    "status": found.status,
                    "scheme": found.scheme,
                    "host": found.host,
                    "port": found.port,
                    "path": path,
                }
            }
        case Rewrite():
            path = {"full": found.path.full, "prefix": found.path.prefix} if found.path else None
            return {"rewrite": {"host": found.host, "path": path}}
        case Fail():
            return {"fail": found.status, "grpc": found.grpc, "message": found.message}
        case Forbid():
            return {"forbid": found.message}
        case Mirror():
            share = f"{found.numerator}/{found.denominator}"
            return {"mirror": f"{found.target.service}.{found.target.namespace}", "share": share}
        case _:
            raise AssertionError(found)


def _timeouts(found: Timeouts) -> Words | None:
    said = {
        name: value
        for name in ("request", "attempt", "response", "idle")
        if (value := getattr(found, name)) is not None
    }
    return said or None


def _retry(found: Retry | None) -> Words | None:
    if found is None:
        return None
    return {
        "limit": found.limit,
        "statuses": [list(each) for each in found.statuses],
        "grpc": list(found.grpc),
        "timeout": found.attempt_timeout,
    }


def differences(expected: Any, found: Any, path: str = "") -> list[str]:  # noqa: ANN401 - YAML
    """Where what is found is not as expected; mappings may hold more, lists may not."""
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping):
            return [f"{path}: {expected!r} expected, {found!r} found"]
        return [
            line
            for key, value in expected.items()
            for line in differences(value, found.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            line
            for at, pair in enumerate(zip(expected, found, strict=True))
            for line in differences(*pair, f"{path}[{at}]")
        ]
    return [] if expected == found else [f"{path}: {expected!r} expected, {found!r} found"]

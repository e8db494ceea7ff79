"""What a client's proxy does with a request or a connection towards one parent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, assert_never

import msgspec

from isthmus.ir.decide import filters
from isthmus.ir.decide.filters import Passed, Setting
from isthmus.ir.decide.terms import Close, Decision, Forward, Reply, ToOriginal, Trail, Verdict
from isthmus.ir.decide.words import duration, limits, match_words, protocol_word
from isthmus.ir.endpoint import Endpoint, EndpointSet, Health
from isthmus.ir.hosts import HostRank, canonical, host_rank, plain
from isthmus.ir.names import AnyHost, Source, TargetId
from isthmus.ir.outbound import (
    Detect,
    Grpc,
    GrpcRoute,
    Http1,
    Http2,
    HttpRoute,
    Outbound,
    Spread,
    Tcp,
    TcpRoute,
    Tls,
    TlsRoute,
)
from isthmus.ir.paths import normalise
from isthmus.ir.precedence import best_grpc, best_http
from isthmus.ir.request import HttpRequest, RawBytes, Request, TlsHello
from isthmus.ir.rules import Fail, Forbid, Match, PathMatch, RuleFilter
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, To
from isthmus.ir.target import Tls as TlsMode

Endpoints = Callable[[TargetId], EndpointSet]
"""Who is behind a target; asked only for targets that may be sent to."""

NOT_FOUND: Final = 5
UNAVAILABLE: Final = 14


class _Way(NamedTuple):
    """What stays the same on the way of one request."""

    source: Source
    endpoints: Endpoints
    chance: float
    trail: Trail


class _Sending(NamedTuple):
    """What a rule or route says about sending."""

    source: Source
    backends: tuple[Backend, ...]
    spread: Spread


def outbound(
    ir: Outbound, request: Request, endpoints: Endpoints, *, chance: float = 0.0
) -> Decision:
    """The way of one request. `chance` in [0, 1) is the throw of the dice, for weights and shares.

    Paths are normalised before they are compared, as they are inbound (decision 20): what leaves
    is judged in the form in which it will be read.
    """
    trail = Trail()
    trail.note(ir.source, f"port {ir.port} speaks {protocol_word(ir.protocol)}")
    way = _Way(ir.source, endpoints, chance, trail)
    return trail.end(_by_protocol(ir, request, way))


def _by_protocol(ir: Outbound, request: Request, way: _Way) -> Verdict:
    match ir.protocol:
        case Http1(routes=routes):
            return _declared(routes, request, way, 1)
        case Http2(routes=routes):
            return _declared(routes, request, way, 2)
        case Grpc(routes=routes):
            return _grpc(routes, request, way)
        case Tls(routes=routes):
            if isinstance(request, TlsHello):
                return _tls(routes, request, way)
            return _close(way, "only TLS is spoken here")
        case Tcp(routes=routes):
            return _tcp(routes, request, way)
        case Detect():
            return _detected(ir.protocol, request, way)
        case _:
            assert_never(ir.protocol)


def _detected(protocol: Detect, request: Request, way: _Way) -> Verdict:
    match request:
        case HttpRequest():
            return _http(protocol.http, request, way)
        case TlsHello() if protocol.tls:
            return _tls(protocol.tls, request, way)
        case TlsHello():
            return _tcp(protocol.tcp, request, way)
        case RawBytes():
            way.trail.note(way.source, f"no HTTP seen, after {duration(protocol.timeout)} at most")
            return _tcp(protocol.tcp, request, way)
        case _:
            assert_never(request)


def _close(way: _Way, message: str) -> Close:
    way.trail.note(way.source, message)
    return Close(way.source, message)


# ----------------------------------------------------------------------------------- HTTP, gRPC


def _declared(routes: Sequence[HttpRoute], request: Request, way: _Way, version: int) -> Verdict:
    if not isinstance(request, HttpRequest) or request.version != version:
        return _close(way, f"only HTTP/{version} is spoken here")
    return _http(routes, request, way)


def _normal(
    request: HttpRequest, routes: Sequence[HttpRoute | GrpcRoute], way: _Way
) -> HttpRequest | Reply:
    path = normalise(request.path)
    said = "the path has an encoded slash or a fragment, or is not absolute"
    if path is not None:
        if plain(request.authority) or not _hosts_decide(routes):
            return msgspec.structs.replace(request, path=path)
        said = "the host can be read in two ways, and hosts decide what may go"
    way.trail.note(way.source, said)
    grpc = any(isinstance(route, GrpcRoute) for route in routes)
    return Reply(200 if grpc else 400, way.source, filters.INTERNAL if grpc else None, said)


def _hosts_decide(routes: Sequence[HttpRoute | GrpcRoute]) -> bool:
    return any(not isinstance(host, AnyHost) for route in routes for host in route.hosts)


def _http(routes: Sequence[HttpRoute], request: HttpRequest, way: _Way) -> Verdict:
    normal = _normal(request, routes, way)
    if isinstance(normal, Reply):
        return normal
    found = best_http(((route, rule) for route in routes for rule in route.rules), normal)
    if found is None:
        way.trail.note(way.source, "no route matches")
        return Reply(404, way.source, message="no route matches")
    rule = found.rule
    way.trail.note(rule.source, f"matched: {match_words(found.match)}")
    for said in limits(rule.timeouts, rule.retry):
        way.trail.note(rule.source, said)
    setting = Setting(rule.source, _prefix(found.match.path), False, way.chance)
    passed = filters.run(rule.filters, Passed(normal), setting, way.trail)
    if isinstance(passed, Reply):
        return passed
    sending = _Sending(rule.source, rule.backends, rule.spread)
    return _send_request(sending, passed, setting, way)


def _grpc(routes: Sequence[GrpcRoute], request: Request, way: _Way) -> Verdict:
    if not isinstance(request, HttpRequest) or request.version != 2:
        return _close(way, "only gRPC is spoken here")
    normal = _normal(request, routes, way)
    if isinstance(normal, Reply):
        return normal
    found = best_grpc(((route, rule) for route in routes for rule in route.rules), normal)
    if found is None:
        way.trail.note(way.source, "no route matches")
        return Reply(200, way.source, NOT_FOUND, "no route matches")
    rule = found.rule
    way.trail.note(rule.source, f"matched: {match_words(found.match)}")
    for said in limits(rule.timeouts, rule.retry):
        way.trail.note(rule.source, said)
    setting = Setting(rule.source, None, True, way.chance)
    passed = filters.run(rule.filters, Passed(normal), setting, way.trail)
    if isinstance(passed, Reply):
        return passed
    sending = _Sending(rule.source, rule.backends, rule.spread)
    return _send_request(sending, passed, setting, way)


def _prefix(path: PathMatch | None) -> str | None:
    """The prefix that matched; no path condition is the prefix `/`."""
    if path is None:
        return "/"
    return path.value if path.match is Match.PREFIX and not path.ignore_case else None


def _send_request(sending: _Sending, passed: Passed, setting: Setting, way: _Way) -> Verdict:
    backend = _choose(sending, way)
    if backend is None:
        return _unavailable(setting, 500, "there is no backend with a weight")
    here = setting._replace(source=backend.source)
    match backend:
        case Refuse(status=status, message=message):
            way.trail.note(backend.source, f"refused: {message}")
            return _unavailable(here, status, message)
        case OriginalDst():
            behind = filters.run(backend.filters, passed, here, way.trail)
            if isinstance(behind, Reply):
                return behind
            way.trail.note(backend.source, "sent to the original destination")
            return ToOriginal(behind.request, backend.source, behind.response)
        case To():
            behind = filters.run(backend.filters, passed, here, way.trail)
            if isinstance(behind, Reply):
                return behind
            sent = _deliver(backend, behind.request, way)
            if sent is None:
                return _unavailable(here, 503, "no endpoint is ready")
            return msgspec.structs.replace(sent, response=behind.response)
        case _:
            assert_never(backend)


def _unavailable(setting: Setting, status: int, message: str) -> Reply:
    if setting.grpc:
        return Reply(200, setting.source, UNAVAILABLE, message)
    return Reply(status, setting.source, message=message)


# ------------------------------------------------------------------------------------- TLS, TCP


def _tls(routes: Sequence[TlsRoute], request: TlsHello, way: _Way) -> Verdict:
    name = canonical(request.sni)
    best: tuple[HostRank, TlsRoute] | None = None
    for route in routes:
        rank = host_rank(route.snis, name)
        if rank is not None and (best is None or rank > best[0]):
            best = rank, route
    if best is None:
        return _close(way, f"no route for the server name {name!r}")
    route = best[1]
    way.trail.note(route.source, f"matched: server name {name!r}")
    sending = _Sending(route.source, route.backends, route.spread)
    return _send_stream(sending, route.filters, request, way)


def _tcp(routes: Sequence[TcpRoute], request: Request, way: _Way) -> Verdict:
    if not routes:
        return _close(way, "no route")
    route = routes[0]
    way.trail.note(route.source, "matched: every connection")
    sending = _Sending(route.source, route.backends, route.spread)
    return _send_stream(sending, route.filters, request, way)


def _send_stream(
    sending: _Sending, rule_filters: Sequence[RuleFilter], request: Request, way: _Way
) -> Verdict:
    stopped = _stopped(rule_filters, sending.source, way)
    if stopped is not None:
        return stopped
    backend = _choose(sending, way)
    if backend is None:
        return Close(sending.source, "there is no backend with a weight")
    match backend:
        case Refuse(message=message):
            way.trail.note(backend.source, f"refused: {message}")
            return Close(backend.source, message)
        case OriginalDst():
            stopped = _stopped(backend.filters, backend.source, way)
            way.trail.note(backend.source, "sent to the original destination")
            return stopped or ToOriginal(request, backend.source)
        case To():
            stopped = _stopped(backend.filters, backend.source, way)
            sent = stopped or _deliver(backend, request, way)
            return sent or Close(backend.source, "no endpoint is ready")
        case _:
            assert_never(backend)


def _stopped(rule_filters: Sequence[RuleFilter], source: Source, way: _Way) -> Close | None:
    """Only what refuses has a meaning for whole connections."""
    for each in rule_filters:
        match each:
            case Forbid(message=message):
                way.trail.note(source, "forbidden")
                return Close(source, message or "forbidden")
            case Fail(message=message) if filters.hits(
                each.numerator, each.denominator, way.chance
            ):
                way.trail.note(source, "made to fail")
                return Close(source, message or "made to fail")
            case _:
                continue
    return None


# ------------------------------------------------------------------------------------- backends


def _choose(sending: _Sending, way: _Way) -> Backend | None:
    """One backend; None if there is none, or none with a weight."""
    match sending.spread:
        case Spread.NONE:
            chosen = None
        case Spread.FIRST:
            ready = (each for each in sending.backends if _is_ready(each, way))
            chosen = next(ready, sending.backends[0] if sending.backends else None)
        case Spread.WEIGHTED:
            chosen = _weighted(sending.backends, way)
        case _:
            assert_never(sending.spread)
    if chosen is None:
        way.trail.note(sending.source, "there is no backend with a weight")
    return chosen


def _weighted(backends: Sequence[Backend], way: _Way) -> Backend | None:
    weights = [max(each.weight, 0) for each in backends]
    total, passed = sum(weights), 0
    mark = filters.share_of(total, way.chance)
    last: Backend | None = None
    for backend, weight in zip(backends, weights, strict=True):
        if not weight:
            continue
        passed, last = passed + weight, backend
        if mark < passed:
            break
    if last is not None and len(backends) > 1:
        way.trail.note(last.source, f"chosen by weight: {last.weight} of {total}")
    return last


def _is_ready(backend: Backend, way: _Way) -> bool:
    match backend:
        case To():
            return any(_ready(each, way) for each in (backend.target, *backend.failover))
        case OriginalDst() | Refuse():
            return True
        case _:
            assert_never(backend)


def _ready(target: Target, way: _Way) -> tuple[Endpoint, ...]:
    """The endpoints that take new work. Mesh TLS with nobody to expect reaches nobody."""
    if target.tls is TlsMode.MESH and not target.peers:
        return ()
    found = way.endpoints(target.id).endpoints
    return tuple(each for each in found if each.health is Health.HEALTHY)


def _deliver(backend: To, request: Request, way: _Way) -> Forward | None:
    """To the first target that has an endpoint."""
    for count, target in enumerate((backend.target, *backend.failover)):
        ready = _ready(target, way)
        name = f"{target.id.service}.{target.id.namespace} in {target.id.cluster}"
        if ready:
            way.trail.note(backend.source, f"sent to {name}: {len(ready)} ready")
            return Forward(target, ready, request, backend.source, count)
        way.trail.note(backend.source, f"{name} has no endpoint that is ready")
    return None

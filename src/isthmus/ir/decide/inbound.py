"""What a server's proxy does with a client's request or connection: who may, and what then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple, assert_never

import msgspec

from isthmus.ir.decide import filters
from isthmus.ir.decide.filters import Passed, Setting
from isthmus.ir.decide.terms import Admit, Close, Decision, Reply, Trail, Verdict
from isthmus.ir.decide.words import match_words
from isthmus.ir.hosts import plain
from isthmus.ir.identity import satisfies
from isthmus.ir.inbound import (
    Anybody,
    Authentication,
    Authorization,
    Inbound,
    Network,
    Peers,
    RateLimit,
    Speech,
    TlsOnly,
    hosts_decide,
    paths_decide,
)
from isthmus.ir.names import Default, Source
from isthmus.ir.paths import has_parameters, normalise
from isthmus.ir.precedence import best_grpc, best_http
from isthmus.ir.request import HttpRequest, Peer, Request
from isthmus.ir.rules import Match, RuleFilter

NOT_FOUND: Final = 5

PROBE: Final = Default("probe")
"""The route of the kubelet's probes."""

LOOPBACK: Final = Authorization(
    Default("localhost"), (Network("127.0.0.1/32"), Network("::1/128")), Anybody()
)
"""What runs beside the server may always reach it, as it could without a proxy."""


class _Way(NamedTuple):
    """What stays the same on the way of one request."""

    ir: Inbound
    peer: Peer
    trail: Trail


class _Route(NamedTuple):
    """What the route that matched says; a port without routes has an empty one."""

    source: Source
    filters: tuple[RuleFilter, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    prefix: str | None = None


def inbound(ir: Inbound, peer: Peer, request: Request, *, chance: float = 0.0) -> Decision:
    """The way of one request into a workload. `chance` in [0, 1) is the throw of the dice.

    The order is the proxies': path, route, authorization, filters, rate limit. How much of a rate
    limit is used up is not known here; the steps say which allowance counts.
    """
    trail = Trail()
    trail.note(ir.source, f"port {ir.port} speaks {ir.speech.value}; {_peer_words(peer)}")
    return trail.end(_by_speech(_Way(ir, peer, trail), request, chance))


def _peer_words(peer: Peer) -> str:
    if not peer.tls:
        return f"{peer.address} without mesh TLS"
    return f"{peer.address} as {'nobody in particular' if peer.identity is None else 'a mesh peer'}"


def _by_speech(way: _Way, request: Request, chance: float) -> Verdict:
    if way.ir.strict and not way.peer.tls and not _is_local(way.peer):
        return _strict(way, request, chance)
    match way.ir.speech:
        case Speech.OPAQUE | Speech.TLS:
            return _connection(way, request)
        case Speech.DETECT:
            if isinstance(request, HttpRequest):
                return _http(way, request, chance)
            return _connection(way, request)
        case Speech.HTTP1 | Speech.HTTP2:
            version = 1 if way.ir.speech is Speech.HTTP1 else 2
            if isinstance(request, HttpRequest) and request.version == version:
                return _http(way, request, chance)
            return _close(way, f"only HTTP/{version} is spoken here")
        case Speech.GRPC:
            if isinstance(request, HttpRequest) and request.version == 2:
                return _grpc(way, request, chance)
            return _close(way, "only gRPC is spoken here")
        case _:
            assert_never(way.ir.speech)


def _strict(way: _Way, request: Request, chance: float) -> Verdict:
    """Without mesh TLS nothing is let in but the kubelet's probes, which have none."""
    probes = tuple(one for one in way.ir.http_routes if one.source == PROBE)
    if not probes or not isinstance(request, HttpRequest):
        return _close(way, "only mesh TLS is let in")
    only = msgspec.structs.replace(way.ir, http_routes=probes)
    return _http(way._replace(ir=only), request, chance)


def _close(way: _Way, message: str) -> Close:
    way.trail.note(way.ir.source, message)
    return Close(way.ir.source, message)


def _connection(way: _Way, request: Request) -> Verdict:
    by = _admitting(way.ir.authorizations, way)
    if by is None:
        return _close(way, "no authorization lets this client in")
    return Admit(request, by.source, by.audit)


# ----------------------------------------------------------------------------------- HTTP, gRPC


def _http(way: _Way, request: HttpRequest, chance: float) -> Verdict:
    path = normalise(request.path)
    unclear = _unclear(way.ir, request, path)
    if path is None or unclear:
        way.trail.note(way.ir.source, unclear)
        return Reply(400, way.ir.source, message=unclear)
    normal = msgspec.structs.replace(request, path=path)
    route = _Route(way.ir.source)
    if way.ir.http_routes:
        rules = ((route, rule) for route in way.ir.http_routes for rule in route.rules)
        found = best_http(rules, normal)
        if found is None:
            way.trail.note(way.ir.source, "no route matches")
            return Reply(404, way.ir.source, message="no route matches")
        way.trail.note(found.route.source, f"matched: {match_words(found.match)}")
        matched = found.match.path
        prefix = "/" if matched is None else None
        if matched is not None and matched.match is Match.PREFIX and not matched.ignore_case:
            prefix = matched.value
        route = _Route(found.route.source, found.rule.filters, found.route.authorizations, prefix)
    return _authorized(way, route, normal, Setting(route.source, route.prefix, False, chance))


def _unclear(ir: Inbound, request: HttpRequest, path: str | None) -> str:
    """What of a request the application may read otherwise than a proxy does; "" if nothing."""
    if path is None:
        return "the path has an encoded slash or a fragment, or is not absolute"
    if has_parameters(path) and paths_decide(ir.http_routes):
        return "the path has parameters, and paths decide who may in"
    if not plain(request.authority) and hosts_decide((*ir.http_routes, *ir.grpc_routes)):
        return "the host can be read in two ways, and hosts decide who may in"
    return ""


def _grpc(way: _Way, request: HttpRequest, chance: float) -> Verdict:
    path = normalise(request.path)
    unclear = _unclear(way.ir, request, path)
    if path is None or unclear:
        way.trail.note(way.ir.source, unclear)
        return Reply(200, way.ir.source, filters.INTERNAL, unclear)
    normal = msgspec.structs.replace(request, path=path)
    route = _Route(way.ir.source)
    if way.ir.grpc_routes:
        rules = ((route, rule) for route in way.ir.grpc_routes for rule in route.rules)
        found = best_grpc(rules, normal)
        if found is None:
            way.trail.note(way.ir.source, "no route matches")
            return Reply(200, way.ir.source, NOT_FOUND, "no route matches")
        way.trail.note(found.route.source, f"matched: {match_words(found.match)}")
        route = _Route(found.route.source, found.rule.filters, found.route.authorizations)
    return _authorized(way, route, normal, Setting(route.source, None, True, chance))


def _authorized(way: _Way, route: _Route, request: HttpRequest, setting: Setting) -> Verdict:
    by = _admitting((*route.authorizations, *way.ir.authorizations), way)
    if by is None:
        way.trail.note(route.source, "no authorization lets this client in")
        return filters.forbidden(setting, "no authorization lets this client in")
    passed = filters.run(route.filters, Passed(request), setting, way.trail)
    if isinstance(passed, Reply):
        return passed
    if way.ir.rate_limit is not None:
        for said in _allowances(way.ir.rate_limit, way.peer):
            way.trail.note(way.ir.rate_limit.source, said)
    return Admit(passed.request, by.source, by.audit, passed.response)


def _allowances(limit: RateLimit, peer: Peer) -> Iterable[str]:
    """The allowances that a request uses up, in the order in which they are asked."""
    if limit.total is not None:
        yield f"counts against {limit.total} requests a second of the port"
    for each in limit.overrides:
        if peer.identity is not None and any(
            satisfies(peer.identity, match) for match in each.identities
        ):
            yield f"counts against {each.per_second} requests a second of named clients"
            return
    if limit.each is not None:
        whose = "clients without identity" if peer.identity is None else "this client"
        yield f"counts against {limit.each} requests a second of {whose}"


# -------------------------------------------------------------------------------- authorization


def _admitting(authorizations: Sequence[Authorization], way: _Way) -> Authorization | None:
    """The authorization that lets the client in; one that only audits counts last."""
    ordered = (
        LOOPBACK,
        *(each for each in authorizations if not each.audit),
        *(each for each in authorizations if each.audit),
    )
    for each in ordered:
        if admits(each, way.peer):
            way.trail.note(each.source, "lets the client in, to audit" if each.audit else "lets in")
            return each
    return None


def admits(authorization: Authorization, peer: Peer) -> bool:
    """Whether the client comes from one of the networks and proves what is asked."""
    address = _address(peer.address)
    if address is None or not any(_contains(each, address) for each in authorization.networks):
        return False
    return _proves(authorization.authentication, peer)


def _proves(authentication: Authentication, peer: Peer) -> bool:
    match authentication:
        case Anybody():
            return True
        case TlsOnly():
            return peer.tls
        case Peers(identities=identities):
            identity = peer.identity
            if not peer.tls or identity is None:
                return False
            return any(satisfies(identity, each) for each in identities)
        case _:
            assert_never(authentication)


def _is_local(peer: Peer) -> bool:
    return admits(LOOPBACK, peer)


Address = IPv4Address | IPv6Address


def _address(text: str) -> Address | None:
    """An address; IPv4 in IPv6's clothes is IPv4, so that no network is missed or fooled."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _contains(network: Network, address: Address) -> bool:
    """A network or an exception that cannot be read contains the address in no way."""
    block = _block(network.cidr)
    if block is None or address not in block:
        return False
    holes = [_block(each) for each in network.excepts]
    return all(hole is not None and address not in hole for hole in holes)


def _block(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None

"""Matches and filters of routes on linkerd's wire, shared by what clients and servers are told.

What the wire cannot say is left out where nothing is lost by it, and answered for otherwise: a
match that cannot be said is None (a rule must never match more than is written), a filter that
cannot be said fails the requests that it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from isthmus.dialects.linkerd.address import duration
from isthmus.dialects.linkerd.profile import metadata as of_object
from isthmus.ir.names import AnyHost, Default, Exact, Host, Source, Suffix
from isthmus.ir.rules import (
    Fail,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    PathChange,
    PathMatch,
    Redirect,
    Timeouts,
    ValueMatch,
)
from isthmus.proto.linkerd import (
    grpc_route_pb2,
    http_route_pb2,
    http_types_pb2,
    meta_pb2,
    tls_route_pb2,
)

METHODS: Final = frozenset(http_types_pb2.HttpMethod.Registered.keys())


def metadata(source: Source) -> meta_pb2.Metadata:
    """Who wrote a part: an object and its port, or the name of a default."""
    if isinstance(source, Default):
        return meta_pb2.Metadata(default=source.name)
    return of_object(source.ref, source.port)


# ------------------------------------------------------------------------------------ hosts


def host_matches(hosts: Iterable[Host]) -> list[http_route_pb2.HostMatch]:
    """The hosts of a route; none where it is for all of them."""
    named = list(hosts)
    if any(isinstance(each, AnyHost) for each in named):
        return []
    return [_host(each) for each in named]


def _host(host: Host) -> http_route_pb2.HostMatch:
    match host:
        case Exact(name):
            return http_route_pb2.HostMatch(exact=name)
        case Suffix(labels):
            suffix = http_route_pb2.HostMatch.Suffix(reverse_labels=reversed(labels))
            return http_route_pb2.HostMatch(suffix=suffix)
        case AnyHost():
            return http_route_pb2.HostMatch()


def sni_matches(hosts: Iterable[Host]) -> list[tls_route_pb2.SniMatch]:
    """The server names of a route; none where it is for all of them."""
    named = list(hosts)
    if any(isinstance(each, AnyHost) for each in named):
        return []
    return [_sni(each) for each in named]


def _sni(host: Host) -> tls_route_pb2.SniMatch:
    match host:
        case Exact(name):
            return tls_route_pb2.SniMatch(exact=name)
        case Suffix(labels):
            suffix = tls_route_pb2.SniMatch.Suffix(reverse_labels=reversed(labels))
            return tls_route_pb2.SniMatch(suffix=suffix)
        case AnyHost():
            return tls_route_pb2.SniMatch()


# ---------------------------------------------------------------------------------- matches


def http_matches(said: HttpMatch) -> Iterator[http_route_pb2.HttpRouteMatch]:
    """One match per method; nothing where the wire cannot say it."""
    headers = [_header(each) for each in said.headers]
    query = [_parameter(each) for each in said.query]
    if None in headers or None in query:
        return
    for method in said.method or ("",):
        yield http_route_pb2.HttpRouteMatch(
            path=_path(said.path) if said.path is not None else None,
            headers=[each for each in headers if each is not None],
            query_params=[each for each in query if each is not None],
            method=_method(method) if method else None,
        )


def _path(said: PathMatch) -> http_route_pb2.PathMatch:
    match said.match:
        case Match.EXACT if not said.ignore_case:
            return http_route_pb2.PathMatch(exact=said.value)
        case Match.PREFIX if not said.ignore_case:
            return http_route_pb2.PathMatch(prefix=said.value)
        case Match.PREFIX:
            # By whole segments, as without regard to case.
            stem = re.escape(said.value.rstrip("/"))
            return http_route_pb2.PathMatch(regex=f"(?i){stem}(/.*)?")
        case _:
            pattern = said.value if said.match is Match.REGEX else re.escape(said.value)
            return http_route_pb2.PathMatch(regex=f"(?i){pattern}" if said.ignore_case else pattern)


def _method(name: str) -> http_types_pb2.HttpMethod:
    if name in METHODS:
        registered = http_types_pb2.HttpMethod.Registered.Value(name)
        return http_types_pb2.HttpMethod(registered=registered)
    return http_types_pb2.HttpMethod(unregistered=name)


def pattern(said: ValueMatch) -> str | None:
    """A test of a value as a regular expression for all of it; None if there is none."""
    case = "(?i)" if said.ignore_case else ""
    text = re.escape(said.value)
    match said.match:
        case _ if said.invert:
            return None
        case Match.ABSENT:
            return None
        case Match.PRESENT:
            return ".*"
        case Match.EXACT:
            return case + text
        case Match.PREFIX:
            return f"{case}{text}.*"
        case Match.SUFFIX:
            return f"{case}.*{text}"
        case Match.CONTAINS:
            return f"{case}.*{text}.*"
        case Match.REGEX:
            return case + said.value


def _plain(said: ValueMatch) -> bool:
    return said.match is Match.EXACT and not said.invert and not said.ignore_case


def _header(said: ValueMatch) -> http_route_pb2.HeaderMatch | None:
    if _plain(said):
        return http_route_pb2.HeaderMatch(name=said.name, exact=said.value.encode())
    regex = pattern(said)
    return http_route_pb2.HeaderMatch(name=said.name, regex=regex) if regex is not None else None


def _parameter(said: ValueMatch) -> http_route_pb2.QueryParamMatch | None:
    if _plain(said):
        return http_route_pb2.QueryParamMatch(name=said.name, exact=said.value)
    regex = pattern(said)
    if regex is None:
        return None
    return http_route_pb2.QueryParamMatch(name=said.name, regex=regex)


def grpc_match(said: GrpcMatch) -> grpc_route_pb2.GrpcRouteMatch | None:
    """A match of calls; the wire has no expressions for service and method.

    Service and method are always said: a proxy refuses the whole policy without them.
    """
    headers = [_header(each) for each in said.headers]
    if said.regex or None in headers:
        return None
    return grpc_route_pb2.GrpcRouteMatch(
        rpc=grpc_route_pb2.GrpcRpcMatch(service=said.service, method=said.method),
        headers=[each for each in headers if each is not None],
    )


# ---------------------------------------------------------------------------------- filters


def _headers(pairs: Iterable[tuple[str, str]]) -> http_types_pb2.Headers | None:
    made = [
        http_types_pb2.Headers.Header(name=name.lower(), value=value.encode())
        for name, value in pairs
    ]
    return http_types_pb2.Headers(headers=made) if made else None


def request_headers(said: HeaderChange) -> http_route_pb2.RequestHeaderModifier:
    """Changes of a request's headers."""
    removed = [name.lower() for name in said.remove]
    return http_route_pb2.RequestHeaderModifier(
        add=_headers(said.add), set=_headers(said.set), remove=removed
    )


def response_headers(said: HeaderChange) -> http_route_pb2.ResponseHeaderModifier:
    """Changes of a response's headers."""
    removed = [name.lower() for name in said.remove]
    return http_route_pb2.ResponseHeaderModifier(
        add=_headers(said.add), set=_headers(said.set), remove=removed
    )


def redirect(said: Redirect) -> http_route_pb2.RequestRedirect:
    """A redirection; what is unset is the request's."""
    return http_route_pb2.RequestRedirect(
        scheme=_scheme(said.scheme) if said.scheme else None,
        host=said.host or "",
        path=_path_modifier(said.path) if said.path is not None else None,
        port=said.port or 0,
        status=said.status,
    )


def _scheme(name: str) -> http_types_pb2.Scheme:
    registered = http_types_pb2.Scheme.Registered
    return http_types_pb2.Scheme(registered=registered.Value(name.upper()))


def _path_modifier(said: PathChange) -> http_route_pb2.PathModifier:
    if said.full is not None:
        return http_route_pb2.PathModifier(full=said.full)
    return http_route_pb2.PathModifier(prefix=said.prefix or "/")


def http_failure(said: Fail) -> http_route_pb2.HttpFailureInjector:
    """An HTTP answer for a share of requests."""
    return http_route_pb2.HttpFailureInjector(
        status=said.status, message=said.message, ratio=_ratio(said)
    )


def grpc_failure(said: Fail) -> grpc_route_pb2.GrpcFailureInjector:
    """A gRPC status for a share of calls."""
    return grpc_route_pb2.GrpcFailureInjector(
        code=said.grpc, message=said.message, ratio=_ratio(said)
    )


def _ratio(said: Fail) -> http_route_pb2.Ratio | None:
    """None means all."""
    if said.numerator == said.denominator:
        return None
    return http_route_pb2.Ratio(numerator=said.numerator, denominator=said.denominator)


def timeouts(said: Timeouts) -> http_route_pb2.Timeouts | None:
    """The limits of a rule, None where there are none."""
    if said.response is None and said.request is None and said.idle is None:
        return None
    return http_route_pb2.Timeouts(
        response=duration(said.response) if said.response is not None else None,
        request=duration(said.request) if said.request is not None else None,
        idle=duration(said.idle) if said.idle is not None else None,
    )

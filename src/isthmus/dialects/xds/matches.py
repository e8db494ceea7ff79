"""Matches of rules in Envoy's words."""

from __future__ import annotations

import re
from typing import Final, assert_never

from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.type.matcher.v3 import regex_pb2 as regex
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.wrappers_pb2 import BoolValue

from isthmus.ir.hosts import PLAIN
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch, ValueMatch

_SEGMENT = "[^/]+"

NOT_PLAIN: Final = pb.HeaderMatcher(
    name=":authority",
    string_match=string.StringMatcher(safe_regex=regex.RegexMatcher(regex=PLAIN)),
    invert_match=True,
)
"""Hosts of two readings, none at all left out. Envoy cuts off what stands behind the last colon."""


def http_match(match: HttpMatch) -> pb.RouteMatch:
    """An HTTP match; an empty one matches every request."""
    wire = pb.RouteMatch()
    _path(wire, match.path or PathMatch(Match.PREFIX, "/"))
    wire.headers.extend(map(header, match.headers))
    if match.method:
        wire.headers.append(_method(match.method))
    wire.query_parameters.extend(map(_query, match.query))
    return wire


def grpc_match(match: GrpcMatch) -> pb.RouteMatch:
    """A gRPC match: what is no gRPC does not match."""
    wire = pb.RouteMatch(grpc=pb.RouteMatch.GrpcRouteMatchOptions())
    if not match.service and not match.method:
        wire.prefix = "/"
    elif match.regex or not match.service:
        service = match.service if match.regex else ""
        method = match.method if match.regex else re.escape(match.method)
        pattern = f"/{_group(service)}/{_group(method)}"
        wire.safe_regex.CopyFrom(regex.RegexMatcher(regex=pattern))
    elif match.method:
        wire.path = f"/{match.service}/{match.method}"
    else:
        wire.prefix = f"/{match.service}/"
    wire.headers.extend(map(header, match.headers))
    return wire


def _group(pattern: str) -> str:
    return f"(?:{pattern})" if pattern else _SEGMENT


def _path(wire: pb.RouteMatch, said: PathMatch) -> None:
    if said.ignore_case:
        wire.case_sensitive.CopyFrom(BoolValue(value=False))
    match said.match:
        case Match.EXACT:
            wire.path = said.value
        case Match.PREFIX:
            base = said.value.rstrip("/")
            if base:
                wire.path_separated_prefix = base
            else:
                wire.prefix = "/"
        case _:
            front = "(?i)" if said.ignore_case else ""
            wire.safe_regex.CopyFrom(regex.RegexMatcher(regex=front + said.value))


def header(said: ValueMatch) -> pb.HeaderMatcher:
    """A condition on a header. One that is turned round still needs the header to be there."""
    wire = pb.HeaderMatcher(name=said.name, invert_match=said.invert)
    match said.match:
        case Match.PRESENT:
            wire.present_match = True
        case Match.ABSENT:
            wire.present_match = False
        case _:
            wire.string_match.CopyFrom(text(said))
    return wire


def _query(said: ValueMatch) -> pb.QueryParameterMatcher:
    wire = pb.QueryParameterMatcher(name=said.name)
    match said.match:
        case Match.PRESENT:
            wire.present_match = True
        case Match.ABSENT:
            wire.present_match = False
        case _:
            wire.string_match.CopyFrom(text(said))
    return wire


def _method(methods: tuple[str, ...]) -> pb.HeaderMatcher:
    if len(methods) == 1:
        return pb.HeaderMatcher(name=":method", string_match=string.StringMatcher(exact=methods[0]))
    pattern = "|".join(map(re.escape, methods))
    matcher = string.StringMatcher(safe_regex=regex.RegexMatcher(regex=pattern))
    return pb.HeaderMatcher(name=":method", string_match=matcher)


def text(said: ValueMatch) -> string.StringMatcher:
    """How a text is compared."""
    value, fold = said.value, said.ignore_case
    match said.match:
        case Match.EXACT:
            return string.StringMatcher(exact=value, ignore_case=fold)
        case Match.PREFIX:
            return string.StringMatcher(prefix=value, ignore_case=fold)
        case Match.SUFFIX:
            return string.StringMatcher(suffix=value, ignore_case=fold)
        case Match.CONTAINS:
            return string.StringMatcher(contains=value, ignore_case=fold)
        case Match.REGEX | Match.PRESENT | Match.ABSENT:
            front = "(?i)" if fold else ""
            return string.StringMatcher(safe_regex=regex.RegexMatcher(regex=front + value))
        case _:
            assert_never(said.match)

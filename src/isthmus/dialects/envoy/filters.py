"""Filters of rules in Envoy's words.

What cannot be told yet (a failure for a share of requests only, a mirror) is a fault of the dialect
(see `faults`), never left out silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.type.matcher.v3 import regex_pb2 as regex

from isthmus.ir.rules import (
    BackendFilter,
    Fail,
    Forbid,
    HeaderChange,
    Mirror,
    PathChange,
    Redirect,
    Rewrite,
    RuleFilter,
)

AnyFilter = RuleFilter | BackendFilter

_CODES: Final = {
    301: pb.RedirectAction.MOVED_PERMANENTLY,
    302: pb.RedirectAction.FOUND,
    303: pb.RedirectAction.SEE_OTHER,
    307: pb.RedirectAction.TEMPORARY_REDIRECT,
    308: pb.RedirectAction.PERMANENT_REDIRECT,
}


def reply(match: pb.RouteMatch, status: int, message: str) -> pb.Route:
    """An answer of the proxy itself; to gRPC it is a status of the same meaning."""
    action = pb.DirectResponseAction(status=status)
    if message:
        action.body.inline_string = message
    wire = pb.Route(match=match)
    wire.direct_response.CopyFrom(action)
    return wire


def answer(said: Iterable[AnyFilter], match: pb.RouteMatch) -> pb.Route | None:
    """What the first filter that answers by itself says; None if all let pass."""
    for one in said:
        match one:
            case Redirect():
                return _redirect(one, match)
            case Forbid(message=message):
                return reply(match, 403, message)
            case Fail(numerator=part, denominator=whole) if part >= whole:
                return reply(match, one.status, one.message)
            case Fail() | HeaderChange() | Rewrite() | Mirror():
                pass
            case _:
                assert_never(one)
    return None


def unsaid(said: Iterable[AnyFilter]) -> Iterator[str]:
    """The features among these that are not told to Envoy."""
    for one in said:
        if isinstance(one, Fail) and one.numerator < one.denominator:
            yield "failing a share of requests"
        if isinstance(one, Mirror):
            yield "mirroring requests"


def _redirect(said: Redirect, match: pb.RouteMatch) -> pb.Route:
    action = pb.RedirectAction(
        host_redirect=said.host or "",
        port_redirect=said.port or 0,
        response_code=_CODES.get(said.status, pb.RedirectAction.FOUND),
    )
    if said.scheme:
        action.scheme_redirect = said.scheme
    if said.path is not None and said.path.full is not None:
        action.path_redirect = said.path.full
    elif said.path is not None and said.path.prefix is not None:
        change = _prefix(said.path.prefix, match)
        if isinstance(change, str):
            action.prefix_rewrite = change
        else:
            action.regex_rewrite.CopyFrom(change)
    wire = pb.Route(match=match)
    wire.redirect.CopyFrom(action)
    return wire


def apply(wire: pb.Route, action: pb.RouteAction, said: Iterable[AnyFilter]) -> None:
    """What changes a request that is passed on, and its response."""
    change_headers(wire, said)
    for one in said:
        if isinstance(one, Rewrite):
            _rewrite(action, one, wire.match)


def _rewrite(action: pb.RouteAction, said: Rewrite, match: pb.RouteMatch) -> None:
    if said.host is not None:
        action.host_rewrite_literal = said.host
    if said.path is None:
        return
    if said.path.full is not None:
        action.regex_rewrite.CopyFrom(_all(said.path))
    elif said.path.prefix is not None:
        change = _prefix(said.path.prefix, match)
        if isinstance(change, str):
            action.prefix_rewrite = change
        else:
            action.regex_rewrite.CopyFrom(change)


def _all(change: PathChange) -> regex.RegexMatchAndSubstitute:
    return _substitute("^/.*$", change.full or "/")


def _prefix(new: str, match: pb.RouteMatch) -> str | regex.RegexMatchAndSubstitute:
    """The prefix that matched is replaced, the slash after it kept once."""
    old, base_path = match.path_separated_prefix, new.rstrip("/")
    if not old:
        return new if new.endswith("/") else f"{new}/"
    if base_path:
        return base_path
    # Without a path in front, what follows must bring its own slash.
    return _substitute(f"^{re.escape(old)}/*", "/")


def _substitute(pattern: str, text: str) -> regex.RegexMatchAndSubstitute:
    return regex.RegexMatchAndSubstitute(
        pattern=regex.RegexMatcher(regex=pattern), substitution=text.replace("\\", "\\\\")
    )


def change_headers(
    wire: pb.Route | pb.WeightedCluster.ClusterWeight, said: Iterable[AnyFilter]
) -> None:
    """Headers of the request and of the response. Envoy removes before it adds."""
    for one in said:
        if not isinstance(one, HeaderChange):
            continue
        adding, removing = (
            (wire.response_headers_to_add, wire.response_headers_to_remove)
            if one.on_response
            else (wire.request_headers_to_add, wire.request_headers_to_remove)
        )
        option = base.HeaderValueOption
        adding.extend(_value(*pair, option.OVERWRITE_IF_EXISTS_OR_ADD) for pair in one.set)
        adding.extend(_value(*pair, option.APPEND_IF_EXISTS_OR_ADD) for pair in one.add)
        removing.extend(one.remove)


def _value(
    name: str, value: str, action: base.HeaderValueOption.HeaderAppendAction.ValueType
) -> base.HeaderValueOption:
    """A header as written: a per cent sign is no format."""
    said = base.HeaderValue(key=name, value=value.replace("%", "%%"))
    return base.HeaderValueOption(header=said, append_action=action, keep_empty_value=True)

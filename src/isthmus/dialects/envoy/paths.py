"""Redirections, and changes of paths, in Envoy's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.type.matcher.v3 import regex_pb2 as regex
from envoy.type.matcher.v3 import string_pb2 as string

from isthmus.ir.rules import PathChange, Redirect

_CODES: Final = {
    301: pb.RedirectAction.MOVED_PERMANENTLY,
    302: pb.RedirectAction.FOUND,
    303: pb.RedirectAction.SEE_OTHER,
    307: pb.RedirectAction.TEMPORARY_REDIRECT,
    308: pb.RedirectAction.PERMANENT_REDIRECT,
}
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_ANY_PORT: Final = r".+:[0-9]{1,5}"


def is_prefix(match: pb.RouteMatch) -> bool:
    """Whether a match has a prefix that could be replaced."""
    return bool(match.path_separated_prefix) or match.prefix == "/"


def possible(change: PathChange | None, match: pb.RouteMatch) -> bool:
    """Whether a change has what it changes: a prefix is only replaced where one matched."""
    return change is None or change.prefix is None or is_prefix(match)


# ------------------------------------------------------------------------------- redirections


def redirects(said: Redirect, match: pb.RouteMatch, port: int) -> Iterator[pb.Route]:
    """The routes of a redirection; `port` is the one that was dialled, 0 if it is not known.

    Envoy takes the port of the request where none is told, and never leaves out one that is told.
    So what the port is to be depends on what stands in the authority: two routes tell it apart.
    """
    told = said.port if said.port is not None else _PORTS.get(said.scheme or "")
    silent = told == _PORTS[said.scheme or "http"]
    if told is not None and not silent:
        yield redirect(said, match, told)
    elif silent and said.host is None:
        yield redirect(said, _with_authority(match, _ANY_PORT), told or 0)
        yield redirect(said, match)
    else:
        if told is None and said.host is not None and port not in (0, _PORTS["http"]):
            yield redirect(said, _with_authority(match, rf".+:{port}"), port)
        yield redirect(said, match)


def _with_authority(match: pb.RouteMatch, pattern: str) -> pb.RouteMatch:
    wire = pb.RouteMatch()
    wire.CopyFrom(match)
    matcher = string.StringMatcher(safe_regex=regex.RegexMatcher(regex=pattern))
    wire.headers.append(pb.HeaderMatcher(name=":authority", string_match=matcher))
    return wire


def redirect(said: Redirect, match: pb.RouteMatch, port: int = 0) -> pb.Route:
    """A redirection; port 0 leaves it as it is in the request, or out where the host is told."""
    action = pb.RedirectAction(
        host_redirect=said.host or "",
        port_redirect=port,
        response_code=_CODES.get(said.status, pb.RedirectAction.FOUND),
    )
    if said.scheme:
        action.scheme_redirect = said.scheme
    if said.path is not None and said.path.full is not None:
        action.path_redirect = said.path.full
    elif said.path is not None and said.path.prefix is not None:
        change = new_prefix(said.path.prefix, match)
        if isinstance(change, str):
            action.prefix_rewrite = change
        else:
            action.regex_rewrite.CopyFrom(change)
    wire = pb.Route(match=match)
    wire.redirect.CopyFrom(action)
    return wire


# ------------------------------------------------------------------------------------- paths


def rewrite(action: pb.RouteAction, change: PathChange, match: pb.RouteMatch) -> None:
    """The path on its way to the backend."""
    if change.full is not None:
        action.regex_rewrite.CopyFrom(_substitute("^/.*$", change.full or "/"))
    elif change.prefix is not None:
        new = new_prefix(change.prefix, match)
        if isinstance(new, str):
            action.prefix_rewrite = new
        else:
            action.regex_rewrite.CopyFrom(new)


def new_prefix(new: str, match: pb.RouteMatch) -> str | regex.RegexMatchAndSubstitute:
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

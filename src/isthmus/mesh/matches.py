"""Rows of routes to the IR's hosts, matches and filters.

Admission lets only routes in that say what they mean; what was stored around it is read all the
same, part by part (decision 15). A match that cannot be understood matches nothing and is left out;
a filter that cannot be carried out answers in its place, since leaving it out would let requests
pass that it was to change. Each of these is a `Fault` besides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from isthmus.ir.hosts import canonical, parse_host
from isthmus.ir.names import Exact, Host, Value
from isthmus.ir.rules import (
    Fail,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    PathChange,
    PathMatch,
    Redirect,
    Rewrite,
    RuleFilter,
    ValueMatch,
)
from isthmus.ir.target import Target
from isthmus.model.gateway import Filter, GrpcRule, HttpRule
from isthmus.model.gateway import GrpcMatch as GrpcMatchRow
from isthmus.model.gateway import HttpMatch as HttpMatchRow
from isthmus.model.gateway.views import (
    GrpcMethod,
    HeaderModifier,
    HeaderValue,
    MirrorRef,
    PathModifier,
    RequestMirror,
    RequestRedirect,
    UrlRewrite,
)
from isthmus.model.gateway.views import PathMatch as PathRow
from isthmus.model.gateway.views import ValueMatch as ValueRow
from isthmus.model.names import control_characters
from isthmus.model.regex import regex_problems

INTERNAL: Final = 13
"""The gRPC code of a call that a filter stands in the way of."""

REDIRECTS: Final = (301, 302, 303, 307, 308)

NOWHERE: Final = Exact("nowhere.invalid")
"""A host that no request is for (RFC 6761)."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MOST: Final = 1024
"""Matches of one rule that are read; the schema allows 64."""

Mirrored = Callable[[MirrorRef], Target | None]
"""Where copies for a reference go; None if there is no such backend."""


class Fault(Value, frozen=True):
    """A part of a route that is not understood or cannot be done; `path` leads to it."""

    path: str
    message: str


class _Unfit(ValueError):
    """Why a part means nothing."""


T = TypeVar("T")
RowT = TypeVar("RowT")


def hosts(names: Iterable[str]) -> tuple[Host, ...]:
    """The hosts that a route is for, each once, as written; none means all.

    What is no host name is left out; if nothing else is there the route is for nobody, not for all.
    """
    given = tuple(names)
    found = tuple(dict.fromkeys(parse_host(each) for each in given if _is_host(each)))
    return found if found or not given else (NOWHERE,)


def host_faults(names: Iterable[str], path: str) -> Iterator[Fault]:
    """The host names that are left out; `path` is the list's."""
    for at, each in enumerate(names):
        if not _is_host(each):
            yield Fault(f"{path}[{at}]", f"{each[:64]!r} is no host name")


def _is_host(name: str) -> bool:
    folded = canonical(name)
    return folded == "*" or _HOST.fullmatch(folded.removeprefix("*.")) is not None


# ---------------------------------------------------------------------------------- matches


def http_matches(rule: HttpRule) -> tuple[HttpMatch, ...]:
    """What a rule matches. None at all: the rule is for no request, not for every one."""
    return _understood(rule.matches or (HttpMatchRow(),), _http_match)


def grpc_matches(rule: GrpcRule) -> tuple[GrpcMatch, ...]:
    """What a rule matches. None at all: the rule is for no call, not for every one."""
    return _understood(rule.matches or (GrpcMatchRow(),), _grpc_match)


def match_faults(rule: HttpRule | GrpcRule, path: str) -> Iterator[Fault]:
    """The matches that are left out; `path` is the rule's."""
    if isinstance(rule, HttpRule):
        yield from _faults(rule.matches, _http_match, f"{path}.matches")
    else:
        yield from _faults(rule.matches, _grpc_match, f"{path}.matches")


def _understood(rows: Sequence[RowT], read: Callable[[RowT], T]) -> tuple[T, ...]:
    found: list[T] = []
    for row in rows[:_MOST]:
        try:
            found.append(read(row))
        except _Unfit:  # told by `_faults`
            continue
    return tuple(dict.fromkeys(found))


def _faults(rows: Sequence[RowT], read: Callable[[RowT], T], path: str) -> Iterator[Fault]:
    for at, row in enumerate(rows[:_MOST]):
        try:
            read(row)
        except _Unfit as fault:
            yield Fault(f"{path}[{at}]", str(fault))
    if len(rows) > _MOST:
        yield Fault(path, f"only the first {_MOST} are read")


def _http_match(row: HttpMatchRow) -> HttpMatch:
    """No path is the prefix `/` (Gateway API: the default of the field)."""
    return HttpMatch(
        path=_path(row.path or PathRow()),
        headers=_values(row.headers, header=True),
        query=_values(row.query_params, header=False),
        method=(row.method,) if row.method else (),
    )


def _path(row: PathRow) -> PathMatch:
    match row.type:
        case "RegularExpression":
            return PathMatch(Match.REGEX, _regex(row.value))
        case "Exact" | "PathPrefix":
            if not row.value.startswith("/") or _strange(row.value):
                raise _Unfit(f"{row.value[:64]!r} is no path")
            how = Match.EXACT if row.type == "Exact" else Match.PREFIX
            return PathMatch(how, row.value)
        case _:
            raise _Unfit(f"unknown type of path match {row.type[:64]!r}")


def _strange(path: str) -> bool:
    """What stands in no path: a query, a fragment, blanks, control characters."""
    return control_characters(path) or any(mark in path for mark in "?# ")


def _values(rows: Iterable[ValueRow], *, header: bool) -> tuple[ValueMatch, ...]:
    """Of entries for one name the first counts (Gateway API); names of headers have no case."""
    found: dict[str, ValueMatch] = {}
    for row in rows:
        if not _TOKEN.fullmatch(row.name):
            raise _Unfit(f"{row.name[:64]!r} is no name of a header or parameter")
        name = row.name.lower() if header else row.name
        found.setdefault(name, _value(name, row))
    return tuple(found.values())


def _value(name: str, row: ValueRow) -> ValueMatch:
    match row.type:
        case "Exact":
            if control_characters(row.value.replace("\t", "")):
                raise _Unfit(f"the value for {name} has control characters")
            return ValueMatch(name, Match.EXACT, row.value)
        case "RegularExpression":
            return ValueMatch(name, Match.REGEX, _regex(row.value))
        case _:
            raise _Unfit(f"unknown type of match {row.type[:64]!r}")


def _regex(pattern: str) -> str:
    problems = regex_problems(pattern) if pattern else ("is empty",)
    if problems:
        raise _Unfit(f"regular expression {pattern[:64]!r}: {problems[0]}")
    return pattern


def _grpc_match(row: GrpcMatchRow) -> GrpcMatch:
    method = row.method or GrpcMethod()
    headers = _values(row.headers, header=True)
    match method.type:
        case "Exact":
            if "/" in method.service + method.method or _strange(method.service + method.method):
                raise _Unfit("names of services and methods are words, joined by dots")
            return GrpcMatch(method.service.removeprefix("."), method.method, headers=headers)
        case "RegularExpression":
            service, name = (
                _regex(each) if each else "" for each in (method.service, method.method)
            )
            return GrpcMatch(service, name, regex=True, headers=headers)
        case _:
            raise _Unfit(f"unknown type of method match {method.type[:64]!r}")


# ---------------------------------------------------------------------------------- filters


def no_mirrors(_ref: MirrorRef) -> None:
    """For places that no copies are made at."""


def rule_filters(
    filters: Iterable[Filter], mirrored: Mirrored = no_mirrors
) -> tuple[RuleFilter, ...]:
    """The filters of a rule. One that cannot be done answers 500 to what it was for.

    A mirror without a backend is dropped (Gateway API), not answered for.
    """
    return tuple(filter(None, (_filter(each, mirrored) for each in filters)))


def filter_faults(
    filters: Iterable[Filter], path: str, mirrored: Mirrored = no_mirrors
) -> Iterator[Fault]:
    """The filters that cannot be done; `path` is the list's. Missing backends are not told here."""
    for at, each in enumerate(filters):
        found = _filter(each, mirrored)
        if isinstance(found, Fail):
            yield Fault(f"{path}[{at}]", found.message)


def _filter(row: Filter, mirrored: Mirrored) -> RuleFilter | None:
    try:
        return _understood_filter(row, mirrored)
    except _Unfit as fault:
        return Fail(500, INTERNAL, str(fault))


def _understood_filter(row: Filter, mirrored: Mirrored) -> RuleFilter | None:
    match row.type:
        case "RequestHeaderModifier":
            return _headers(row.request_header_modifier, on_response=False)
        case "ResponseHeaderModifier":
            return _headers(row.response_header_modifier, on_response=True)
        case "RequestRedirect":
            return _redirect(row.request_redirect or RequestRedirect())
        case "URLRewrite":
            rewrite = row.url_rewrite or UrlRewrite()
            return Rewrite(_host(rewrite.hostname), _path_change(rewrite.path))
        case "RequestMirror":
            return _mirror(row.request_mirror or RequestMirror(), mirrored)
        case _:
            raise _Unfit(f"unsupported filter {row.type[:64]}")


def _headers(row: HeaderModifier | None, *, on_response: bool) -> HeaderChange:
    said = row or HeaderModifier()
    for name in said.remove:
        _header_name(name)
    return HeaderChange(on_response, _pairs(said.set), _pairs(said.add), said.remove)


def _pairs(rows: Iterable[HeaderValue]) -> tuple[tuple[str, str], ...]:
    """Of entries for one name the first counts (Gateway API)."""
    found: dict[str, tuple[str, str]] = {}
    for row in rows:
        if control_characters(row.value.replace("\t", "")):
            raise _Unfit(f"the value for {row.name[:64]} has control characters")
        found.setdefault(_header_name(row.name), (row.name, row.value))
    return tuple(found.values())


def _header_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise _Unfit(f"{name[:64]!r} is no name of a header")
    return name.lower()


def _redirect(row: RequestRedirect) -> Redirect:
    if row.status_code not in REDIRECTS:
        raise _Unfit(f"{row.status_code} is no status of a redirect")
    if row.scheme not in (None, "http", "https"):
        raise _Unfit(f"unknown scheme {row.scheme[:64]!r}")
    if row.port is not None and not 1 <= row.port <= 65535:
        raise _Unfit(f"{row.port} is no port")
    host, path = _host(row.hostname), _path_change(row.path)
    return Redirect(row.status_code, row.scheme, host, path, row.port)


def _host(name: str | None) -> str | None:
    if name is not None and not _HOST.fullmatch(name):
        raise _Unfit(f"{name[:64]!r} is no host name")
    return name


def _path_change(row: PathModifier | None) -> PathChange | None:
    match row:
        case None:
            return None
        case PathModifier(type="ReplaceFullPath"):
            return PathChange(full=_new_path(row.replace_full_path))
        case PathModifier(type="ReplacePrefixMatch"):
            return PathChange(prefix=_new_path(row.replace_prefix_match))
        case _:
            raise _Unfit(f"unknown type of path change {row.type[:64]!r}")


def _new_path(text: str | None) -> str:
    """Nothing is the root."""
    path = text or "/"
    if not path.startswith("/") or _strange(path):
        raise _Unfit(f"{path[:64]!r} is no path")
    return path


def _mirror(row: RequestMirror, mirrored: Mirrored) -> Mirror | None:
    target = mirrored(row.backend_ref)
    if target is None:
        return None
    part, whole = 100 if row.percent is None else row.percent, 100
    if row.fraction is not None:
        part, whole = row.fraction.numerator, row.fraction.denominator
    return Mirror(target.id, part, whole, target.trust_domain)

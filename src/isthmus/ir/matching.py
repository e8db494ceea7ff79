"""Whether a request fits a match. Total: an expression that does not compile fits nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, assert_never

import re2

from isthmus.ir.paths import covers, split_query
from isthmus.ir.request import HttpRequest
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch, ValueMatch


def _options(*, ignore_case: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = 2 << 20
    return options


_OPTIONS: Final = {each: _options(ignore_case=each) for each in (False, True)}


@lru_cache(maxsize=512)
def _compiled(pattern: str, ignore_case: bool) -> Any:  # noqa: ANN401, FBT001 - re2 has no types
    try:
        return re2.compile(pattern, _OPTIONS[ignore_case])
    except (re2.error, UnicodeEncodeError):
        return None


def full_match(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether an RE2 expression matches all of the text."""
    compiled = _compiled(pattern, ignore_case)
    try:
        return compiled is not None and compiled.fullmatch(text) is not None
    except UnicodeEncodeError:  # a lone surrogate, which no wire carries
        return False


def _text_fits(how: Match, wanted: str, value: str, *, ignore_case: bool) -> bool:
    if how is Match.REGEX:
        return full_match(wanted, value, ignore_case=ignore_case)
    if ignore_case:
        wanted, value = wanted.lower(), value.lower()
    match how:
        case Match.EXACT:
            return value == wanted
        case Match.PREFIX:
            return value.startswith(wanted)
        case Match.SUFFIX:
            return value.endswith(wanted)
        case Match.CONTAINS:
            return wanted in value
        case Match.PRESENT:
            return True
        case Match.ABSENT:
            return False
        case _:
            assert_never(how)


def value_fits(match: ValueMatch, value: str | None) -> bool:
    """Whether a header's or parameter's value fits; None = it is not there.

    What is not there fits PRESENT and ABSENT alone, as in Envoy.
    """
    match match.match:
        case Match.PRESENT:
            fits = value is not None
        case Match.ABSENT:
            fits = value is None
        case _ if value is None:
            return False
        case _:
            fits = _text_fits(match.match, match.value, value, ignore_case=match.ignore_case)
    return fits != match.invert


def path_fits(match: PathMatch, path: str) -> bool:
    """Whether a path without query fits."""
    if match.match is Match.PREFIX:
        lower = match.ignore_case
        return covers(match.value.lower(), path.lower()) if lower else covers(match.value, path)
    return _text_fits(match.match, match.value, path, ignore_case=match.ignore_case)


def http_fits(match: HttpMatch, request: HttpRequest) -> bool:
    """Whether everything that the match sets holds of the request."""
    path, query = split_query(request.path)
    if match.path is not None and not path_fits(match.path, path):
        return False
    if match.method and request.method not in match.method:
        return False
    return _headers_fit(match.headers, request) and _query_fits(match.query, query)


def grpc_fits(match: GrpcMatch, request: HttpRequest) -> bool:
    """Whether a call fits: a POST whose path is /service/method."""
    if request.method != "POST":
        return False
    parts = split_query(request.path)[0].split("/")
    service, method = parts[1:] if len(parts) == 3 else ("", "")
    wanted = ((match.service.removeprefix("."), service), (match.method, method))
    if match.regex:
        wanted = ((match.service, service), (match.method, method))
    for said, value in wanted:
        how = Match.REGEX if match.regex else Match.EXACT
        if said and not _text_fits(how, said, value, ignore_case=False):
            return False
    return _headers_fit(match.headers, request)


def _headers_fit(matches: Iterable[ValueMatch], request: HttpRequest) -> bool:
    return all(value_fits(each, request.header(each.name)) for each in matches)


def _query_fits(matches: Iterable[ValueMatch], query: str) -> bool:
    values: dict[str, str] = {}
    for pair in query.removeprefix("?").split("&"):
        name, _, value = pair.partition("=")
        values.setdefault(name, value)
    if not query.removeprefix("?"):
        values.clear()
    return all(value_fits(each, values.get(each.name)) for each in matches)

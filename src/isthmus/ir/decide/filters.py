"""Filters of rules and backends, in order, each seeing what the one before made of the request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, assert_never

import msgspec

from isthmus.ir.decide.terms import Reply, Trail
from isthmus.ir.hosts import split_authority
from isthmus.ir.names import Source
from isthmus.ir.paths import changed
from isthmus.ir.request import HttpRequest
from isthmus.ir.rules import (
    Fail,
    Forbid,
    HeaderChange,
    Mirror,
    Redirect,
    Rewrite,
    RuleFilter,
)

_PORTS: Final = {"http": 80, "https": 443}

_GRAIN: Final = 1 << 53

PERMISSION_DENIED: Final = 7
INTERNAL: Final = 13


class Setting(NamedTuple):
    """Where filters stand: whose they are, the prefix that matched, gRPC or not, the dice.

    `chance` is between 0 and 1 and stands for every throw of this request.
    """

    source: Source
    prefix: str | None
    grpc: bool
    chance: float


class Passed(NamedTuple):
    """The request behind all filters, and the changes that wait for its response."""

    request: HttpRequest
    response: tuple[HeaderChange, ...] = ()


def run(
    filters: Iterable[RuleFilter], passed: Passed, setting: Setting, trail: Trail
) -> Passed | Reply:
    """What the filters make of a request, or what the proxy answers in their name."""
    for each in filters:
        step = _step(each, passed, setting, trail)
        if isinstance(step, Reply):
            return step
        passed = step
    return passed


def _step(each: RuleFilter, passed: Passed, setting: Setting, trail: Trail) -> Passed | Reply:
    match each:
        case HeaderChange():
            trail.note(setting.source, f"headers: {_changes(each)}")
            if each.on_response:
                return passed._replace(response=(*passed.response, each))
            return passed._replace(request=change_headers(each, passed.request))
        case Redirect():
            return _redirect(each, passed.request, setting, trail)
        case Rewrite():
            return _rewrite(each, passed, setting, trail)
        case Fail():
            return _fail(each, setting, trail) or passed
        case Forbid(message=message):
            trail.note(setting.source, "forbidden")
            return forbidden(setting, message)
        case Mirror(target=target):
            if hits(each.numerator, each.denominator, setting.chance):
                trail.note(setting.source, f"copied to {target.service}.{target.namespace}")
            return passed
        case _:
            assert_never(each)


def hits(numerator: int, denominator: int, chance: float) -> bool:
    """Whether the dice say so: a numerator below 1 is never, else a denominator below 1 always."""
    return numerator > 0 and (denominator <= 0 or share_of(denominator, chance) < numerator)


def share_of(total: int, chance: float) -> int:
    """The part of a whole number that a throw marks, rounded down; exact for any size.

    A throw outside [0, 1], or one that is no number, is the nearest end.
    """
    return int(min(1.0, max(0.0, chance)) * _GRAIN) * total // _GRAIN


def forbidden(setting: Setting, message: str) -> Reply:
    """403, or PERMISSION_DENIED."""
    said = message or "forbidden"
    if setting.grpc:
        return Reply(200, setting.source, PERMISSION_DENIED, said)
    return Reply(403, setting.source, message=said)


def change_headers(change: HeaderChange, request: HttpRequest) -> HttpRequest:
    """The request after set, add and remove, in this order."""
    gone = {name.lower() for name, _ in change.set}
    headers = [pair for pair in request.headers if pair[0].lower() not in gone]
    headers += [*change.set, *change.add]
    removed = {name.lower() for name in change.remove}
    kept = tuple(pair for pair in headers if pair[0].lower() not in removed)
    return msgspec.structs.replace(request, headers=kept)


def _changes(change: HeaderChange) -> str:
    parts = [
        *(f"set {name}" for name, _ in change.set),
        *(f"add {name}" for name, _ in change.add),
        *(f"remove {name}" for name in change.remove),
    ]
    return ("of the response " if change.on_response else "") + (", ".join(parts) or "none")


def _fail(fail: Fail, setting: Setting, trail: Trail) -> Reply | None:
    if not hits(fail.numerator, fail.denominator, setting.chance):
        return None
    trail.note(setting.source, f"made to fail: {fail.message or fail.status}")
    if setting.grpc:
        return Reply(200, setting.source, fail.grpc, fail.message)
    return Reply(fail.status, setting.source, message=fail.message)


def _no_prefix(setting: Setting, trail: Trail) -> Reply:
    said = "a prefix is to be replaced where none matched"
    trail.note(setting.source, said)
    if setting.grpc:
        return Reply(200, setting.source, INTERNAL, said)
    return Reply(500, setting.source, message=said)


def _rewrite(rewrite: Rewrite, passed: Passed, setting: Setting, trail: Trail) -> Passed | Reply:
    request = passed.request
    path = changed(rewrite.path, request.path, setting.prefix)
    if path is None:
        return _no_prefix(setting, trail)
    authority = request.authority if rewrite.host is None else rewrite.host
    trail.note(setting.source, f"rewritten to {authority}{path}")
    made = msgspec.structs.replace(request, authority=authority, path=path)
    return passed._replace(request=made)


def _redirect(redirect: Redirect, request: HttpRequest, setting: Setting, trail: Trail) -> Reply:
    where = location(redirect, request, setting.prefix)
    if where is None:
        return _no_prefix(setting, trail)
    trail.note(setting.source, f"redirected to {where}")
    return Reply(redirect.status, setting.source, location=where)


def location(redirect: Redirect, request: HttpRequest, prefix: str | None) -> str | None:
    """Where a redirection leads (Gateway API, HTTPRequestRedirectFilter).

    The port is the redirection's own; else that of the scheme, if the redirection names one; else
    the request's. A port that the scheme implies is left out. None if a prefix is to be replaced
    where none matched.
    """
    path = changed(redirect.path, request.path, prefix)
    if path is None:
        return None
    scheme = redirect.scheme or request.scheme
    host, asked = split_authority(request.authority)
    port = redirect.port
    if port is None:
        port = _PORTS.get(redirect.scheme) if redirect.scheme else asked
    host = redirect.host or host
    shown = f"[{host}]" if ":" in host else host
    tail = "" if port is None or port == _PORTS.get(scheme) else f":{port}"
    return f"{scheme}://{shown}{tail}{path}"

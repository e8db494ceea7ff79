"""What filters must keep to (Gateway API v1.6, the validation rules of its schemas)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, strings, text
from isthmus.model.faults import invalid, not_supported
from isthmus.model.gateway.http_schema import FILTER_FIELDS
from isthmus.model.names import control_characters
from isthmus.model.rules import broken

HTTP_ONCE: Final = (
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestRedirect",
    "URLRewrite",
    "CORS",
)
GRPC_ONCE: Final = ("RequestHeaderModifier", "ResponseHeaderModifier")
"""Types that may stand only once in a list."""

REDIRECT_CODES: Final = (301, 302, 303, 307, 308)

_MODIFIERS: Final = ("requestHeaderModifier", "responseHeaderModifier")
_PREFIX_RULES: Final = {"requestRedirect": "RequestRedirect", "urlRewrite": "URLRewrite"}


def filter_faults(
    filters: Sequence[Mapping[str, Any]],
    path: str,
    *,
    once: Collection[str] = HTTP_ONCE,
    codes: Collection[int] = REDIRECT_CODES,
) -> Iterator[Cause]:
    """Faults of a list of filters at `path`."""
    for index, each in enumerate(filters):
        here = f"{path}[{index}]"
        yield from _body_faults(each, here)
        for name in _MODIFIERS:
            yield from _modifier_faults(mapping(each, name), f"{here}.{name}")
        for name in _PREFIX_RULES:
            yield from _path_faults(mapping(each, f"{name}.path"), f"{here}.{name}.path")
        yield from _redirect_faults(mapping(each, "requestRedirect"), here, codes)
        yield from _mirror_faults(mapping(each, "requestMirror"), f"{here}.requestMirror")
        yield from _cors_faults(mapping(each, "cors"), f"{here}.cors")
    yield from _repeated(filters, path, once)


def _body_faults(each: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Exactly the object of the filter's own type is there."""
    for kind, name in FILTER_FIELDS.items():
        given, mine = get(each, name) is not None, text(each, "type") == kind
        if given and not mine:
            rule = f"filter.{name} must be nil if the filter.type is not {kind}"
            yield broken(path, each, rule)
        elif mine and not given:
            yield broken(path, each, f"filter.{name} must be specified for {kind} filter.type")


def _repeated(
    filters: Sequence[Mapping[str, Any]], path: str, once: Collection[str]
) -> Iterator[Cause]:
    counts = Counter(text(each, "type") for each in filters)
    for kind in once:
        if counts[kind] > 1:
            yield broken(path, filters, f"{kind} filter cannot be repeated")
    if counts["RequestRedirect"] and counts["URLRewrite"]:
        both = "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite"
        yield broken(path, filters, f"{both}, but not both")


def _modifier_faults(modifier: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Headers that cannot be sent. Names are told by the schema."""
    for name in ("set", "add"):
        for index, each in enumerate(items(modifier, name)):
            value = text(each, "value")
            if control_characters(value.replace("\t", "")):
                where = f"{path}.{name}[{index}].value"
                yield invalid(where, value, "may not contain control characters")
    for index, header in enumerate(strings(modifier, "remove")):
        if not header or control_characters(header) or " " in header or ":" in header:
            yield invalid(f"{path}.remove[{index}]", header, "is no header's name")


def _path_faults(change: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for kind, name in (
        ("ReplaceFullPath", "replaceFullPath"),
        ("ReplacePrefixMatch", "replacePrefixMatch"),
    ):
        value, mine = get(change, name), text(change, "type") == kind
        if mine and value is None:
            yield broken(path, change, f"{name} must be specified when type is set to '{kind}'")
        elif value is not None and not mine:
            yield broken(path, change, f"type must be '{kind}' when {name} is set")
        if isinstance(value, str) and value and not value.startswith("/"):
            yield invalid(f"{path}.{name}", value, "must be an absolute path and start with '/'")
        if isinstance(value, str) and control_characters(value):
            yield invalid(f"{path}.{name}", value, "may not contain control characters")


def _redirect_faults(
    redirect: Mapping[str, Any], path: str, codes: Collection[int]
) -> Iterator[Cause]:
    code = get(redirect, "statusCode")
    if isinstance(code, int) and code not in codes:
        yield not_supported(f"{path}.requestRedirect.statusCode", code, map(str, codes))


def _mirror_faults(mirror: Mapping[str, Any], path: str) -> Iterator[Cause]:
    fraction = mapping(mirror, "fraction")
    if get(mirror, "percent") is not None and get(mirror, "fraction") is not None:
        rule = "Only one of percent or fraction may be specified in HTTPRequestMirrorFilter"
        yield broken(path, mirror, rule)
    top, bottom = fraction.get("numerator"), fraction.get("denominator", 100)
    if isinstance(top, int) and isinstance(bottom, int) and top > bottom:
        rule = "numerator must be less than or equal to denominator"
        yield broken(f"{path}.fraction", fraction, rule)


def _cors_faults(cors: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in ("allowOrigins", "allowMethods", "allowHeaders"):
        given = strings(cors, name)
        if "*" in given and len(given) > 1:
            rule = f"{name} cannot contain '*' alongside other values"
            yield broken(f"{path}.{name}", given, rule)
    for index, origin in enumerate(strings(cors, "allowOrigins")):
        if not _is_origin(origin):
            says = "must be '*' or SCHEME://HOST, with an optional port and leading '*.'"
            yield invalid(f"{path}.allowOrigins[{index}]", origin, says)


def _is_origin(text_: str) -> bool:
    scheme, found, rest = text_.partition("://")
    if text_ == "*":
        return True
    host, _, port = rest.partition(":")
    named = host.removeprefix("*.").replace("-", "a").replace(".", "a")
    fits = bool(found) and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()
    return fits and (host == "*" or named.isalnum()) and (not port or port.isdecimal())


def prefix_faults(
    filters: Sequence[Mapping[str, Any]], path: str, *, prefixed: bool, within: str = ""
) -> Iterator[Cause]:
    """The fault of replacing a prefix in a rule that does not match by exactly one prefix."""
    for each in filters:
        for name, kind in _PREFIX_RULES.items():
            if text(each, f"{name}.path.type") == "ReplacePrefixMatch" and not prefixed:
                rule = (
                    f"{'W' if not within else within + 'w'}hen using {kind} filter with"
                    " path.replacePrefixMatch, exactly one PathPrefix match must be specified"
                )
                yield broken(path, filters, rule)

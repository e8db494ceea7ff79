"""What filters must keep to besides their rules in CEL (Gateway API v1.6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.document import get, items, mapping, strings, text
from isthmus.model.faults import invalid, not_supported
from isthmus.model.names import control_characters

REDIRECT_CODES: Final = (301, 302, 303, 307, 308)

_MODIFIERS: Final = ("requestHeaderModifier", "responseHeaderModifier")


def filter_faults(
    filters: Sequence[Mapping[str, Any]], path: str, *, codes: Collection[int] = REDIRECT_CODES
) -> Iterator[Cause]:
    """Faults of a list of filters at `path`."""
    for index, each in enumerate(filters):
        here = f"{path}[{index}]"
        for name in _MODIFIERS:
            yield from _modifier_faults(mapping(each, name), f"{here}.{name}")
        for name in ("requestRedirect", "urlRewrite"):
            yield from _path_faults(mapping(each, f"{name}.path"), f"{here}.{name}.path")
        yield from _redirect_faults(mapping(each, "requestRedirect"), here, codes)
        yield from _cors_faults(mapping(each, "cors"), f"{here}.cors")


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
    for name in ("replaceFullPath", "replacePrefixMatch"):
        value = get(change, name)
        if isinstance(value, str) and control_characters(value):
            yield invalid(f"{path}.{name}", value, "may not contain control characters")


def _redirect_faults(
    redirect: Mapping[str, Any], path: str, codes: Collection[int]
) -> Iterator[Cause]:
    code = get(redirect, "statusCode")
    if isinstance(code, int) and code not in codes:
        yield not_supported(f"{path}.requestRedirect.statusCode", code, map(str, codes))


def _cors_faults(cors: Mapping[str, Any], path: str) -> Iterator[Cause]:
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

"""The `format` of strings in schemas: those that Kubernetes checks; others say nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import urlsplit

from isthmus.model.names import parse_cidr, parse_ip, subdomain_problems
from isthmus.model.regex import regex_problems
from isthmus.model.times import parse_time
from isthmus.model.walk import is_base64

_UUID: Final = "[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_MAC: Final = re.compile(r"([0-9a-f]{2}[:-]){5,7}[0-9a-f]{2}|([0-9a-f]{4}\.){2,3}[0-9a-f]{4}")
_DURATION: Final = re.compile(
    r"[+-]?(?:\d{1,18}(?:\.\d{0,9})?\s*(?:ns|us|µs|ms|s|m|h|d|w)\s*)+|0", re.ASCII
)
_COLOR: Final = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})")
_RGB: Final = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)", re.ASCII)
_CARD: Final = re.compile(r"[0-9 -]{13,23}")
_SSN: Final = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}", re.ASCII)
_USER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_ISBN: Final = re.compile(r"[0-9]{9}[0-9X]|[0-9]{13}")


def _matcher(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text.lower()) is not None


def _date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _email(text: str) -> bool:
    user, _, domain = text.rpartition("@")
    return (
        len(user) <= 64
        and _USER.fullmatch(user) is not None
        and not subdomain_problems(domain.lower())
    )


def _uri(text: str) -> bool:
    try:
        found = urlsplit(text)
    except ValueError:
        return False
    return bool(found.scheme) or text.startswith("/")


def _isbn(length: int) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        digits = text.replace("-", "").replace(" ", "")
        if len(digits) != length or not _ISBN.fullmatch(digits):
            return False
        values = [10 if each == "X" else int(each) for each in digits]
        if length == 10:
            return sum(value * (10 - at) for at, value in enumerate(values)) % 11 == 0
        return sum(value * (3 if at % 2 else 1) for at, value in enumerate(values)) % 10 == 0

    return fits


def _rgb(text: str) -> bool:
    found = _RGB.fullmatch(text.lower())
    return found is not None and all(int(each) < 256 for each in found.groups())


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matcher("[0-9a-f]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": lambda text: not subdomain_problems(text.lower()),
    "ipv4": lambda text: isinstance(parse_ip(text), IPv4Address),
    "ipv6": lambda text: isinstance(parse_ip(text), IPv6Address),
    "cidr": lambda text: parse_cidr(text) is not None,
    "mac": lambda text: _MAC.fullmatch(text.lower()) is not None,
    "uuid": _matcher(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matcher(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matcher(_UUID % ("4", "[89ab]")),
    "uuid5": _matcher(_UUID % ("5", "[89ab]")),
    "isbn": lambda text: _isbn(10)(text) or _isbn(13)(text),
    "isbn10": _isbn(10),
    "isbn13": _isbn(13),
    "creditcard": lambda text: _CARD.fullmatch(text) is not None,
    "ssn": lambda text: _SSN.fullmatch(text) is not None,
    "hexcolor": lambda text: _COLOR.fullmatch(text.lower()) is not None,
    "rgbcolor": _rgb,
    "byte": is_base64,
    "password": lambda _: True,
    "date": _date,
    "duration": lambda text: len(text) <= 200 and _DURATION.fullmatch(text) is not None,
    "datetime": lambda text: parse_time(text) is not None,
    "date-time": lambda text: parse_time(text) is not None,
    "regex": lambda text: not regex_problems(text),
}
"""By name: whether a text fits."""

"""Kubernetes' libraries of values: quantities, addresses, URLs, versions, named formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from isthmus.model import names
from isthmus.model.crd.cel.library.core import whole
from isthmus.model.crd.cel.library.table import function, method
from isthmus.model.crd.cel.types import (
    BOOL,
    CIDR,
    DOUBLE,
    FORMAT,
    INT,
    IP,
    LIST,
    QUANTITY,
    SEMVER,
    STRING,
    URL,
    CelType,
    list_of,
    optional_of,
)
from isthmus.model.crd.cel.values import NONE, CelError, Opaque, Optional
from isthmus.model.crd.formats import FORMATS
from isthmus.model.names import parse_cidr, parse_ip
from isthmus.model.quantity import parse_quantity

# ------------------------------------------------------------------------------------ quantities


def _quantity(text: str) -> Fraction | None:
    return parse_quantity(text) if len(text) <= 100 else None


def _held_quantity(value: Fraction) -> Opaque:
    return Opaque(QUANTITY.name, value)


@function("quantity", STRING, gives=QUANTITY)
def _quantity_of(text: str) -> Opaque:
    value = _quantity(text)
    if value is None:
        raise CelError("quantities must match the regular expression of resource.Quantity")
    return _held_quantity(value)


function("isQuantity", STRING, gives=BOOL)(lambda a: _quantity(a) is not None)
method("sign", QUANTITY, gives=INT)(lambda a: (a.value > 0) - (a.value < 0))
method("isInteger", QUANTITY, gives=BOOL)(
    lambda a: a.value.denominator == 1 and -(2**63) <= a.value < 2**63
)
method("asApproximateFloat", QUANTITY, gives=DOUBLE)(lambda a: float(a.value))
method("add", QUANTITY, QUANTITY, gives=QUANTITY)(lambda a, b: _held_quantity(a.value + b.value))
method("sub", QUANTITY, QUANTITY, gives=QUANTITY)(lambda a, b: _held_quantity(a.value - b.value))
method("add", QUANTITY, INT, gives=QUANTITY)(lambda a, b: _held_quantity(a.value + b))
method("sub", QUANTITY, INT, gives=QUANTITY)(lambda a, b: _held_quantity(a.value - b))


@method("asInteger", QUANTITY, gives=INT)
def _as_integer(quantity: Opaque) -> int:
    if quantity.value.denominator != 1:
        raise CelError("cannot convert value to integer")
    return whole(int(quantity.value))


for _type in (QUANTITY, SEMVER):
    method("isLessThan", _type, _type, gives=BOOL)(lambda a, b: a.value < b.value)
    method("isGreaterThan", _type, _type, gives=BOOL)(lambda a, b: a.value > b.value)
    method("compareTo", _type, _type, gives=INT)(
        lambda a, b: (a.value > b.value) - (a.value < b.value)
    )

# -------------------------------------------------------------------------------------- versions

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})"
    r"(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)


def _semver(text: str) -> tuple[Any, ...] | None:
    """A version in an order that Python compares: a pre-release comes before its release."""
    found = _SEMVER.fullmatch(text) if len(text) <= 256 else None
    if found is None:
        return None
    major, minor, patch, pre = found.groups()
    parts = tuple((0, int(each), "") if each.isdecimal() else (1, 0, each)
                  for each in (pre or "").split(".") if pre)  # fmt: skip
    return int(major), int(minor), int(patch), not pre, parts


@function("semver", STRING, gives=SEMVER)
def _semver_of(text: str) -> Opaque:
    value = _semver(text)
    if value is None:
        raise CelError(f"{text[:64]!r} is no semantic version")
    return Opaque(SEMVER.name, value)


function("isSemver", STRING, gives=BOOL)(lambda a: _semver(a) is not None)
for _at, _name in enumerate(("major", "minor", "patch")):
    method(_name, SEMVER, gives=INT)(lambda a, at=_at: a.value[at])

# ------------------------------------------------------------------------------------- addresses

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _address(text: str) -> Address | None:
    """An address without zone; IPv4 in IPv6 is refused, as Kubernetes does."""
    found = parse_ip(text) if len(text) <= 64 and "%" not in text else None
    return None if isinstance(found, IPv6Address) and found.ipv4_mapped else found


@function("ip", STRING, gives=IP)
def _ip(text: str) -> Opaque:
    found = _address(text)
    if found is None:
        raise CelError(f"IP Address {text[:64]!r} parse error during conversion from string")
    return Opaque(IP.name, found)


function("isIP", STRING, gives=BOOL)(lambda a: _address(a) is not None)
function("string", IP, gives=CelType("string", limit=45))(lambda a: str(a.value))
method("family", IP, gives=INT)(lambda a: a.value.version)
method("isUnspecified", IP, gives=BOOL)(lambda a: a.value.is_unspecified)
method("isLoopback", IP, gives=BOOL)(lambda a: a.value.is_loopback)


def _link_local(address: Address, *, multicast: bool) -> bool:
    if not multicast:
        return address.is_link_local
    if isinstance(address, IPv4Address):
        return address in IPv4Network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


def _global_unicast(address: Address) -> bool:
    broadcast = address == IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (special or address.is_link_local or broadcast)


method("isLinkLocalMulticast", IP, gives=BOOL)(lambda a: _link_local(a.value, multicast=True))
method("isLinkLocalUnicast", IP, gives=BOOL)(lambda a: _link_local(a.value, multicast=False))
method("isGlobalUnicast", IP, gives=BOOL)(lambda a: _global_unicast(a.value))


@function("ip.isCanonical", STRING, gives=BOOL)
def _is_canonical(text: str) -> bool:
    return str(_ip(text).value) == text


class _Block:
    """A CIDR as written: the address keeps its host bits."""

    def __init__(self, text: str) -> None:
        network = parse_cidr(text) if len(text) <= 80 else None
        address = _address(text.partition("/")[0])
        if network is None or address is None:
            raise CelError(
                f"network address parse error during conversion from string: {text[:80]!r}"
            )
        self.network: Network = network
        self.address: Address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Block) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.address}/{self.network.prefixlen}"

    def holds(self, inner: Address | Network) -> bool:
        """Whether the address, or all of the network, lies inside."""
        if inner.version != self.network.version:
            return False
        if isinstance(inner, IPv4Address | IPv6Address):
            return inner in self.network
        return self.network.prefixlen <= inner.prefixlen and inner.network_address in self.network


def _is_cidr(text: str) -> bool:
    try:
        _Block(text)
    except CelError:
        return False
    return True


function("isCIDR", STRING, gives=BOOL)(_is_cidr)
function("cidr", STRING, gives=CIDR)(lambda a: Opaque(CIDR.name, _Block(a)))
function("string", CIDR, gives=CelType("string", limit=49))(lambda a: str(a.value))
method("prefixLength", CIDR, gives=INT)(lambda a: a.value.network.prefixlen)
method("ip", CIDR, gives=IP)(lambda a: Opaque(IP.name, a.value.address))
method("masked", CIDR, gives=CIDR)(lambda a: Opaque(CIDR.name, _Block(str(a.value.network))))
method("containsIP", CIDR, IP, gives=BOOL)(lambda a, b: a.value.holds(b.value))
method("containsIP", CIDR, STRING, gives=BOOL)(lambda a, b: a.value.holds(_ip(b).value))
method("containsCIDR", CIDR, CIDR, gives=BOOL)(lambda a, b: a.value.holds(b.value.network))
method("containsCIDR", CIDR, STRING, gives=BOOL)(lambda a, b: a.value.holds(_Block(b).network))

# ------------------------------------------------------------------------------------------ URLs


def _url(text: str) -> SplitResult | None:
    """An absolute URL or an absolute path (Go: url.ParseRequestURI), or None."""
    if len(text) > 65_536 or not text.isprintable() or " " in text:
        return None
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        return None
    absolute = found.scheme and (found.netloc or found.path.startswith("/"))
    return found if absolute or text.startswith("/") else None


@function("url", STRING, gives=URL)
def _url_of(text: str) -> Opaque:
    found = _url(text)
    if found is None:
        raise CelError(f"URL parse error during conversion from string: {text[:80]!r}")
    return Opaque(URL.name, found)


function("isURL", STRING, gives=BOOL)(lambda a: _url(a) is not None)
method("getScheme", URL, gives=STRING)(lambda a: a.value.scheme)
method("getHost", URL, gives=STRING)(lambda a: a.value.netloc.rpartition("@")[2])
method("getHostname", URL, gives=STRING)(lambda a: a.value.hostname or "")
method("getPort", URL, gives=STRING)(lambda a: "" if a.value.port is None else str(a.value.port))
method("getEscapedPath", URL, gives=STRING)(lambda a: a.value.path)


@method("getQuery", URL, gives=CelType("map", item=list_of(STRING)))
def _query(url: Opaque) -> dict[str, list[str]]:
    try:
        return parse_qs(url.value.query, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise CelError("a query of more than 1000 fields") from None


# --------------------------------------------------------------------------------- named formats


def _by_format(name: str) -> Callable[[str], Sequence[str]]:
    check = FORMATS[name]
    return lambda text: () if check(text) else (f"must be of format {name}",)


_NAMED: Final[dict[str, Callable[[str], Sequence[str]]]] = {
    "dns1123Label": names.label_problems,
    "dns1123Subdomain": names.subdomain_problems,
    "dns1035Label": names.label_1035_problems,
    "dns1123LabelPrefix": lambda a: names.label_problems(f"{a}a" if a.endswith("-") else a),
    "dns1123SubdomainPrefix": lambda a: names.subdomain_problems(f"{a}a" if a.endswith("-") else a),
    "dns1035LabelPrefix": lambda a: names.label_1035_problems(f"{a}a" if a.endswith("-") else a),
    "qualifiedName": names.qualified_problems,
    "labelValue": names.label_value_problems,
    "uri": lambda a: () if _url(a) else ("must be a URI",),
    "uuid": _by_format("uuid"),
    "byte": _by_format("byte"),
    "date": _by_format("date"),
    "datetime": _by_format("date-time"),
}
for _name in _NAMED:
    function(f"format.{_name}", gives=FORMAT)(lambda name=_name: Opaque(FORMAT.name, name))


@function("format.named", STRING, gives=optional_of(FORMAT))
def _named(name: str) -> Optional:
    return Optional(True, Opaque(FORMAT.name, name)) if name in _NAMED else NONE


@method("validate", FORMAT, STRING, gives=optional_of(LIST))
def _validate(named: Opaque, text: str) -> Optional:
    problems = list(_NAMED[named.value](text))
    return Optional(True, problems) if problems else NONE

"""Host names: reading them, and which of several conditions fits one best."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, assert_never

from isthmus.ir.names import AnyHost, Exact, Host, Suffix


class HostRank(NamedTuple):
    """How good a fit is: exact beats suffix beats any; then the longer name (Gateway API)."""

    kind: int
    length: int


ANY_HOST = HostRank(0, 0)

PLAIN: Final = r"(?:[-_0-9A-Za-z]+(?:\.[-_0-9A-Za-z]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?"
"""Authorities that everybody reads alike, as an expression (of RE2 too): a name or an address, and
a port. With a user in front, two ports, two names, empty labels or encoded letters, the server
behind a proxy may take another part of it for the host."""

_PLAIN: Final = re.compile(PLAIN)


def parse_host(text: str) -> Host:
    """`a.b` exactly, `*.a.b` with at least one more label, `*` or "" for any."""
    name = canonical(text)
    if name in ("", "*"):
        return AnyHost()
    return Suffix(tuple(name[2:].split("."))) if name.startswith("*.") else Exact(name)


def canonical(name: str) -> str:
    """Lower case (ASCII only) without one trailing dot."""
    folded = "".join(mark.lower() if mark.isascii() else mark for mark in name)
    return folded.removesuffix(".")


def host_of(authority: str) -> str:
    """The host of `host:port` or `[v6]:port`, canonical, brackets off."""
    host, _ = split_authority(authority)
    return canonical(host)


def plain(authority: str) -> bool:
    """Whether an authority has one reading; none at all has."""
    return not authority or _PLAIN.fullmatch(authority) is not None


def split_authority(authority: str) -> tuple[str, int | None]:
    """Host and port of an authority; what is no port is None. User information is left out."""
    rest = authority.rpartition("@")[2]
    if rest.startswith("["):
        host, _, tail = rest[1:].partition("]")
        return host, _port(tail.removeprefix(":"))
    host, colon, port = rest.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535
    return int(text) if fits else None


def host_rank(hosts: Iterable[Host], name: str) -> HostRank | None:
    """The rank of the best condition that fits a canonical name; None if none does.

    No conditions at all fit every name, below all others.
    """
    conditions = tuple(hosts) or (AnyHost(),)
    ranks = (_rank(each, name) for each in conditions)
    return max((rank for rank in ranks if rank is not None), default=None)


def _rank(host: Host, name: str) -> HostRank | None:
    match host:
        case AnyHost():
            return ANY_HOST
        case Exact(name=wanted):
            return HostRank(2, len(wanted)) if canonical(wanted) == name else None
        case Suffix(labels=suffix):
            labels = tuple(name.split("."))
            fits = (
                len(labels) > len(suffix)
                and all(labels)
                and labels[len(labels) - len(suffix) :] == tuple(map(canonical, suffix))
            )
            return HostRank(1, len(".".join(suffix))) if fits else None
        case _:
            assert_never(host)

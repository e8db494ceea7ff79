"""What this machine is called from elsewhere: its addresses and its name.

A listener on all addresses (0.0.0.0 or ::) is reached at any of them, so its certificate must
answer to them. The kernel's tables say what they are; the standard library does not.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path

IPV4 = Path("/proc/net/fib_trie")
IPV6 = Path("/proc/net/if_inet6")

MOST = 64
"""Names of one certificate: a machine may have thousands of addresses."""

_NAME = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")


def everywhere(host: str) -> bool:
    """Whether the host of a listener stands for every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def own() -> tuple[str, ...]:
    """The host name, if it is a DNS name, and the addresses; loopback and link-local ones left out.

    As they are now: a server that is given another address is started again to answer to it.
    """
    name = socket.gethostname()
    found: set[ipaddress.IPv4Address | ipaddress.IPv6Address] = set()
    found |= _addresses4(_read(IPV4))
    found |= _addresses6(_read(IPV6))
    useful = [each for each in found if not (each.is_loopback or each.is_link_local)]
    shown = sorted(map(str, useful))[: MOST - 1]
    return (name, *shown) if _NAME.fullmatch(name) else tuple(shown)


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _addresses4(lines: list[str]) -> set[ipaddress.IPv4Address]:
    """Of the routing trie: the leaves that are routes to this machine itself."""
    found, leaf = set(), ""
    for line in lines:
        words = line.split()
        if words[:1] == ["|--"]:
            leaf = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            found.add(ipaddress.IPv4Address(leaf))
    return found


def _addresses6(lines: list[str]) -> set[ipaddress.IPv6Address]:
    """Of the list of addresses: the first word of each line, 32 hexadecimal digits."""
    return {ipaddress.IPv6Address(int(line.split()[0], 16)) for line in lines if line.strip()}

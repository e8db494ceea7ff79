"""How the text of one setting is read. Each reader raises `ValueError` with a clear half-line."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple, TypeVar

Network = IPv4Network | IPv6Network
Choice = TypeVar("Choice", bound=StrEnum)

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes wants it
CLUSTER = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")  # Consul's datacenters may have _
CONTEXT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,252}")
NO_NETWORK = ip_network("0.0.0.0/32")
NAME_LIMIT = 253  # characters of a DNS name without its last dot
HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")

SWITCHES = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


class PortRange(NamedTuple):
    """Ports from `first` to `last`, both included."""

    first: int
    last: int


class HostPort(NamedTuple):
    """Where to listen or connect; `host` is a name or an address, without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HostAddress(NamedTuple):
    """A name, in small letters, and one of its addresses."""

    name: str
    ip: str


def cluster_name(text: str) -> str:
    """A name of a cluster: a DNS label, in which `_` may stand too."""
    if not CLUSTER.fullmatch(text):
        raise ValueError(f"{text!r} is not a cluster name (a-z, 0-9, - and _, at most 63)")
    return text


def context_name(text: str) -> str:
    """A name of a kubeconfig's context, as the tools that make them write it."""
    if not CONTEXT.fullmatch(text):
        raise ValueError(f"{text!r} is not a context name")
    return text


def label(text: str) -> str:
    """A DNS label, such as a namespace."""
    if not LABEL.fullmatch(text):
        raise ValueError(f"{text!r} is not a DNS label (a-z, 0-9 and -, at most 63)")
    return text


def dns_name(text: str) -> str:
    """A DNS name; a final dot is dropped."""
    name = text.removesuffix(".")
    if len(name) > NAME_LIMIT or not all(LABEL.fullmatch(part) for part in name.split(".")):
        raise ValueError(f"{text!r} is not a DNS name")
    return name


def network(text: str) -> Network:
    """A CIDR whose host bits are zero."""
    if "/" not in text:
        raise ValueError(f"{text!r} is not a network; write it as ADDRESS/BITS")
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(str(error)) from None


def port_range(text: str) -> PortRange:
    """`443` or `4000-4999`."""
    first, dash, last = text.partition("-")
    ports = PortRange(port(first), port(last if dash else first))
    if ports.first > ports.last:
        raise ValueError(f"{text!r} ends before it begins")
    return ports


def port(text: str, *, lowest: int = 1) -> int:
    """A port in decimal digits."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise ValueError(f"{text!r} is not a port")
    number = int(digits)
    if not lowest <= number <= 65535:
        raise ValueError(f"{text!r} is not a port from {lowest} to 65535")
    return number


def host_port(text: str, *, lowest: int = 0) -> HostPort:
    """`HOST:PORT`; an IPv6 address stands in brackets."""
    host, colon, digits = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        address = network(f"{host[1:-1]}/128").network_address
        return HostPort(str(address), port(digits, lowest=lowest))
    if not HOST.fullmatch(host):
        raise ValueError(f"{text!r} is not HOST:PORT (an IPv6 address stands in brackets)")
    return HostPort(host, port(digits, lowest=lowest))


def host_address(text: str) -> HostAddress:
    """`NAME=ADDRESS`."""
    name, equals, ip = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not NAME=ADDRESS")
    try:
        return HostAddress(dns_name(name.lower()), str(ip_address(ip)))
    except ValueError as error:
        raise ValueError(str(error)) from None


def switch(text: str) -> bool:
    """A yes or a no."""
    try:
        return SWITCHES[text.lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither true nor false") from None


def choice(kind: type[Choice], text: str) -> Choice:
    """One of the words of an enumeration."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not one of {', '.join(kind)}") from None


def path(text: str, home: str | None) -> Path:
    """A file or folder; `~` at the start is the user's home."""
    if not text:
        raise ValueError("the name of a file or folder is empty")
    if text == "~" or text.startswith("~/"):
        if not home:
            raise ValueError(f"{text!r} needs HOME, which is not set")
        return Path(home) / text[2:]
    return Path(text)

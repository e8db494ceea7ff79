"""Texts that clients send: authorities (`host:port`) and context tokens. Nothing here raises.

Hosts are IP addresses or names under `svc.<cluster domain>`: `<service>.<namespace>.svc...`, or
`<instance>.<service>.<namespace>.svc...` for one endpoint of a service by its host name.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, Final

import msgspec

from isthmus.model.names import parse_ip


class ServiceName(msgspec.Struct, frozen=True):
    """A Service of the cluster that was asked."""

    namespace: str
    service: str


class InstanceName(msgspec.Struct, frozen=True):
    """The endpoint of a Service that has this host name (a pod of a StatefulSet)."""

    namespace: str
    service: str
    instance: str


class IpName(msgspec.Struct, frozen=True):
    """An address, as canonical text."""

    ip: str


Name = ServiceName | InstanceName | IpName


class Authority(msgspec.Struct, frozen=True):
    """What a client asks for. `host` is the text it wrote."""

    name: Name
    port: int
    host: str


class BadAuthority(msgspec.Struct, frozen=True):
    """No `host:port`."""

    cause: str


class BadHost(msgspec.Struct, frozen=True):
    """The host is neither an address nor a name of this cluster."""

    host: str
    cause: str


class Token(msgspec.Struct, frozen=True):
    """Where a client says it runs; "" for what is unknown. A hint, never a proof."""

    namespace: str = ""
    node: str = ""
    pod: str = ""


DEFAULT_PORT: Final = 80
NO_TOKEN: Final = Token()
_LONGEST_TOKEN: Final = 4096
_LONGEST_NAME: Final = 253
_LONGEST_IP: Final = 45
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


def parse_authority(path: str, cluster_domain: str) -> Authority | BadAuthority | BadHost:
    """The meaning of `host` or `host:port`; without any colon the port is 80."""
    split = _split(path)
    if isinstance(split, BadAuthority):
        return split
    host, text = split
    port = _port(text)
    if port is None:
        return BadAuthority(f"invalid port {text[:64]!r}")
    name = _name(host, cluster_domain)
    return name if isinstance(name, BadHost) else Authority(name, port, host)


def _split(path: str) -> tuple[str, str] | BadAuthority:
    """Host and port. IPv6 addresses stand in brackets, as in URLs (RFC 3986, section 3.2.2)."""
    if ":" not in path:
        return path, str(DEFAULT_PORT)
    if path.startswith("["):
        host, closed, rest = path[1:].partition("]")
        if not closed:
            return BadAuthority("missing ']' in address")
        if not rest.startswith(":"):
            return BadAuthority("missing port in address")
        port = rest[1:]
    else:
        host, _, port = path.rpartition(":")
        if ":" in host:
            return BadAuthority("too many colons in address")
    if ":" in port:
        return BadAuthority("too many colons in address")
    if "[" in host + port or "]" in host + port:
        return BadAuthority("unexpected bracket in address")
    return host, port


def _port(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        return None
    port = int(text)
    return port if 1 <= port <= 65535 else None


def _name(host: str, cluster_domain: str) -> Name | BadHost:
    ip = canonical_ip(host)
    if ip is not None:
        return IpName(ip)
    suffix = f".svc.{cluster_domain}"
    if len(host) > _LONGEST_NAME or not host.endswith(suffix):
        return BadHost(host, f"not a name under svc.{cluster_domain}")
    labels = host[: -len(suffix)].split(".")
    match labels:
        case [service, namespace] if service and namespace:
            return ServiceName(namespace, service)
        case [instance, service, namespace] if instance and service and namespace:
            return InstanceName(namespace, service, instance)
    return BadHost(host, f"expected <service>.<namespace>.svc.{cluster_domain}")


def canonical_ip(text: str) -> str | None:
    """The one text of an address (an IPv4 address inside IPv6 is that address), or None."""
    return _canonical(text) if len(text) <= _LONGEST_IP else None


@lru_cache(maxsize=1 << 14)
def _canonical(text: str) -> str | None:
    """Remembered: the same few addresses are read again whenever anything beside them changes."""
    ip = parse_ip(text)
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return None if ip is None else str(ip)


def parse_token(text: str) -> Token:
    """What a context token says; a bad one says nothing.

    A JSON object with `ns`, `nodeName` and `pod` (in any case, other keys ignored), or `ns:<text>`,
    the form of old injectors.
    """
    if not text or len(text) > _LONGEST_TOKEN:
        return NO_TOKEN
    try:
        said = {key.lower(): value for key, value in _DECODER.decode(text).items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return _old_token(text)
    found = [said.get(key) or "" for key in ("ns", "nodename", "pod")]
    return Token(*found) if all(isinstance(each, str) for each in found) else NO_TOKEN


def _old_token(text: str) -> Token:
    match text.strip().split(":"):
        case ["ns", namespace]:
            return Token(namespace)
    return NO_TOKEN

"""Grammars of names: DNS labels and subdomains, label keys and values, addresses, ports.

Each `*_problems` function says what is wrong with a text, in the words of Kubernetes' API
machinery; an empty tuple means that it is fine. Comparisons are of parsed values, never of
prefixes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Problems = tuple[str, ...]
Grammar = Callable[[str], Problems]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_PORT_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

_LABEL_RE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN_RE: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)
_LABEL_1035_RE: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED_RE: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY_RE: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PORT_NAME_RE: Final = re.compile(r"[-a-z0-9]+")
_ENV_NAME_RE: Final = re.compile(r"[^=\x00-\x1f\x7f]+")


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _regex(says: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}'" for example in examples)
    example = f"e.g. {shown}, " if examples else ""
    return f"{says} ({example}regex used for validation is '{pattern}')"


def label_problems(text: str) -> Problems:
    """RFC 1123 label, at most 63 bytes: names of namespaces, containers."""
    found: list[str] = []
    if _bytes(text) > 63:
        found.append(_too_long(63))
    if not _LABEL_RE.fullmatch(text):
        says = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
            " and must start and end with an alphanumeric character"
        )
        found.append(_regex(says, _LABEL, "my-name", "123-abc"))
    return tuple(found)


def subdomain_problems(text: str) -> Problems:
    """RFC 1123 subdomain, at most 253 bytes: names of most objects."""
    found: list[str] = []
    if _bytes(text) > 253:
        found.append(_too_long(253))
    if not _SUBDOMAIN_RE.fullmatch(text):
        says = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
            " '-' or '.', and must start and end with an alphanumeric character"
        )
        found.append(_regex(says, _SUBDOMAIN, "example.com"))
    return tuple(found)


def label_1035_problems(text: str) -> Problems:
    """RFC 1035 label, at most 63 bytes: names of Services, which DNS must carry."""
    found: list[str] = []
    if _bytes(text) > 63:
        found.append(_too_long(63))
    if not _LABEL_1035_RE.fullmatch(text):
        says = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with"
            " an alphabetic character, and end with an alphanumeric character"
        )
        found.append(_regex(says, _LABEL_1035, "my-name", "abc-123"))
    return tuple(found)


def path_segment_problems(text: str) -> Problems:
    """What may stand as one segment of a URL path: names of RBAC objects."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    found = [f"may not contain '{mark}'" for mark in "/%" if mark in text]
    if control_characters(text):
        found.append("may not contain control characters")
    if _bytes(text) > 253:
        found.append(_too_long(253))
    return tuple(found)


def qualified_problems(text: str) -> Problems:
    """`name` or `prefix/name`: label keys, annotation keys, finalizers, condition types."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        says = (
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must"
            " start and end with an alphanumeric character"
        )
        shown = _regex(says, _QUALIFIED, "MyName", "my.name", "123-abc")
        return (
            f"{shown} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found.extend(f"prefix part {problem}" for problem in subdomain_problems(prefix))
    if not name:
        found.append("name part must be non-empty")
    elif _bytes(name) > 63:
        found.append(f"name part {_too_long(63)}")
    if not _QUALIFIED_RE.fullmatch(name):
        says = (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and"
            " end with an alphanumeric character"
        )
        found.append(_regex(says, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return tuple(found)


def label_value_problems(text: str) -> Problems:
    """The value of a label: at most 63 bytes; may be empty."""
    found: list[str] = []
    if _bytes(text) > 63:
        found.append(_too_long(63))
    if text and not _QUALIFIED_RE.fullmatch(text):
        says = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_'"
            " or '.', and must start and end with an alphanumeric character"
        )
        pattern = f"({_QUALIFIED})?"
        found.append(_regex(says, pattern, "MyValue", "my_value", "12345"))
    return tuple(found)


def config_key_problems(text: str) -> Problems:
    """A key of a ConfigMap or Secret, which may become a file's name."""
    found: list[str] = []
    if _bytes(text) > 253:
        found.append(_too_long(253))
    if not _CONFIG_KEY_RE.fullmatch(text):
        says = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(_regex(says, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


def port_name_problems(text: str) -> Problems:
    """IANA service name: names of container ports, and targetPorts that are text."""
    found: list[str] = []
    if _bytes(text) > 15:
        found.append("must be no more than 15 characters")
    if not _PORT_NAME_RE.fullmatch(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any(mark.isascii() and mark.isalpha() for mark in text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def env_name_problems(text: str) -> Problems:
    """The name of an environment variable: printable, without `=`."""
    if _ENV_NAME_RE.fullmatch(text):
        return ()
    return ("environment variable names must be printable characters other than '='",)


def port_problems(port: int) -> Problems:
    """A TCP or UDP port that something can listen on."""
    return () if 1 <= port <= 65535 else ("must be between 1 and 65535, inclusive",)


def ip_problems(text: str) -> Problems:
    """An IPv4 or IPv6 address; no zones, no leading zeros, no ports."""
    if parse_ip(text) is None:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    return ()


def cidr_problems(text: str) -> Problems:
    """An IPv4 or IPv6 network, `10.0.0.0/8`."""
    if parse_cidr(text) is None:
        return ("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",)
    return ()


def parse_ip(text: str) -> IPv4Address | IPv6Address | None:
    """The address, or None. Zones (`fe80::1%eth0`) are none."""
    if "%" in text or not text.isascii():
        return None
    try:
        return IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return None


def is_elsewhere(text: str) -> bool:
    """Whether an address can be another machine's: who says it leads nobody to themselves.

    Not loopback, link-local, multicast, reserved, or no address at all; an IPv4 address inside IPv6
    is that address.
    """
    found = parse_ip(text)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found is not None and not (
        found.is_loopback
        or found.is_link_local
        or found.is_multicast
        or found.is_unspecified
        or found.is_reserved
    )


def parse_cidr(text: str) -> IPv4Network | IPv6Network | None:
    """The network an address with prefix length lies in, or None; host bits are passed over."""
    address, slash, length = text.partition("/")
    if not slash or parse_ip(address) is None or not (length.isascii() and length.isdecimal()):
        return None
    if len(length) > 3 or (len(length) > 1 and length[0] == "0"):
        return None
    try:
        return (IPv6Network if ":" in address else IPv4Network)(text, strict=False)
    except ValueError:
        return None


def control_characters(text: str) -> bool:
    """Whether C0 or C1 control characters, or DEL, stand in the text."""
    return any(mark < " " or "\x7f" <= mark <= "\x9f" for mark in text)

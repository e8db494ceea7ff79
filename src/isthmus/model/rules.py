"""Checks that several of the mesh's own kinds share, in the words of Kubernetes' validators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from isthmus.errors import Cause
from isthmus.model.document import get, json_type, text
from isthmus.model.faults import invalid
from isthmus.model.names import parse_cidr, parse_ip

Net = IPv4Network | IPv6Network


def broken(path: str, value: object, rule: str) -> Cause:
    """A rule over several fields does not hold; as validation rules of custom resources tell it."""
    return invalid(path, json_type(value), rule)


def exactly_one(value: object, path: str, *names: str) -> Iterator[Cause]:
    """The fault of a `oneOf`: not exactly one of these fields of the object at `path` is given."""
    given = [name for name in names if get(value, name) is not None]
    if len(given) != 1:
        found = f"Found {len(given)} valid alternatives" if given else "Found none valid"
        says = f'"{path}" must validate one and only one schema (oneOf). {found}: '
        yield invalid(path, "", f"{says}give exactly one of {', '.join(names)}")


def is_kind(reference: object, group: str, kind: str) -> bool:
    """Whether a reference names this kind; case is passed over, and `core` is the core group."""
    named = text(reference, "group").lower()
    return ("" if named == "core" else named) == group and text(
        reference, "kind"
    ).lower() == kind.lower()


def shown_kind(reference: object) -> str:
    """`Server.policy.linkerd.io`, `Namespace`: a reference's kind for messages."""
    return ".".join(filter(None, (text(reference, "kind"), text(reference, "group"))))


def parse_network(said: str) -> Net | None:
    """The network of a CIDR or of a single address, or None."""
    address = parse_ip(said)
    if address is not None:
        return parse_cidr(f"{said}/{address.max_prefixlen}")
    return parse_cidr(said)


def network_faults(networks: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    """Faults of a list of `{cidr, except}`: what is no block, exceptions outside or all of it."""
    for index, each in enumerate(networks):
        here = f"{path}[{index}]"
        cidr = text(each, "cidr")
        block = parse_network(cidr)
        if block is None:
            yield invalid(f"{here}.cidr", cidr, _NO_BLOCK)
        excepts = get(each, "except")
        for at, said in enumerate(excepts if isinstance(excepts, list) else ()):
            yield from _except_faults(block, said, f"{here}.except[{at}]")


_NO_BLOCK = "must be an IP address or a CIDR block, (e.g. 10.9.8.7 or 10.9.8.0/24)"


def _except_faults(block: Net | None, said: object, path: str) -> Iterable[Cause]:
    hole = parse_network(said) if isinstance(said, str) else None
    if hole is None:
        return (invalid(path, said, _NO_BLOCK),)
    if block is None:
        return ()
    if covers(hole, block):
        return (invalid(path, said, f"excepts all of {block}, which would match nothing"),)
    if not covers(block, hole):
        return (invalid(path, said, f"must lie inside {block}"),)
    return ()


def covers(outer: Net, inner: Net) -> bool:
    """Whether every address of `inner` is in `outer`."""
    match outer, inner:
        case (IPv4Network(), IPv4Network()) | (IPv6Network(), IPv6Network()):
            return outer.prefixlen <= inner.prefixlen and inner.network_address in outer
        case _:
            return False

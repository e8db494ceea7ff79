"""Endpoints into slices: at most 100 in each, every endpoint stays where it is. Pure.

A slice holds endpoints of one address type that share their ports. When ports change, a slice is
changed in place, so that its readers see the new ports and never an absence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from isthmus.model.discovery import Endpoint, EndpointPort, EndpointSlice

MOST = 100
"""Endpoints per slice (Kubernetes: --max-endpoints-per-slice)."""

Ports = tuple[EndpointPort, ...]


class Group(NamedTuple):
    """What may share a slice."""

    family: str
    ports: Ports


class Content(NamedTuple):
    """What one slice should hold. `name` is "" for a slice to be created."""

    name: str
    group: Group
    endpoints: tuple[Endpoint, ...]


class Packed(NamedTuple):
    """Every slice that should be, and the names of those that should not."""

    slices: tuple[Content, ...]
    surplus: tuple[str, ...]


def identity(endpoint: Endpoint) -> tuple[str, str]:
    """What makes an endpoint the same one after it changed."""
    target = endpoint.target_ref
    return endpoint.addresses[0] if endpoint.addresses else "", target.uid if target else ""


def pack(groups: Mapping[Group, Sequence[Endpoint]], held: Mapping[str, EndpointSlice]) -> Packed:
    """Place every endpoint. A group without endpoints gets one empty slice."""
    own: dict[Group, dict[str, EndpointSlice]] = {group: {} for group in groups}
    free: list[tuple[str, str]] = []
    for name, one in sorted(held.items()):
        group = Group(one.address_type, one.ports)
        if group in own:
            own[group][name] = one
        else:
            free.append((one.address_type, name))
    slices: list[Content] = []
    for group in sorted(groups, key=_order):
        spare = iter([name for family, name in free if family == group.family])
        placed = [
            Content(name or next(spare, ""), group, content)
            for name, content in _place(own[group], groups[group])
        ]
        taken = {content.name for content in placed}
        free = [(family, name) for family, name in free if name not in taken]
        slices += placed
    used = {content.name for content in slices}
    return Packed(tuple(slices), tuple(sorted(held.keys() - used)))


def _order(group: Group) -> tuple[str, tuple[tuple[str, str, int, str], ...]]:
    ports = ((port.name, port.protocol, port.port or 0, port.app_protocol) for port in group.ports)
    return group.family, tuple(ports)


def _place(
    own: Mapping[str, EndpointSlice], endpoints: Sequence[Endpoint]
) -> list[tuple[str, tuple[Endpoint, ...]]]:
    """(slice, content) of one group; "" for one that is not there yet."""
    if not endpoints:
        # One empty slice says "none", which is not the same as "not known yet".
        return [(next(iter(own), ""), ())]
    kept, rest = _keep(own, endpoints)
    # New endpoints go to the fullest slice with room, so that half-empty ones may run dry.
    for name in sorted(kept, key=lambda one: (-len(kept[one]), one)):
        room = MOST - len(kept[name])
        kept[name] += rest[:room]
        rest = rest[room:]
    placed = [(name, tuple(content)) for name, content in kept.items() if content]
    while rest:
        placed.append(("", tuple(rest[:MOST])))
        rest = rest[MOST:]
    return placed


def _keep(
    own: Mapping[str, EndpointSlice], endpoints: Sequence[Endpoint]
) -> tuple[dict[str, list[Endpoint]], list[Endpoint]]:
    """Slices with what stays in them, in its place, and the endpoints that have none yet."""
    wanted: dict[tuple[str, str], Endpoint] = {}
    for endpoint in endpoints:
        wanted.setdefault(identity(endpoint), endpoint)
    kept: dict[str, list[Endpoint]] = {}
    for name, one in own.items():
        staying = [wanted.pop(identity(endpoint), None) for endpoint in one.endpoints[:MOST]]
        kept[name] = [endpoint for endpoint in staying if endpoint is not None]
    return kept, list(wanted.values())

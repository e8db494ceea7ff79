"""What linkerd2-proxy cannot be told, or does not understand: conditions, never silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.names import Default, Origin, Source
from isthmus.ir.profile import All, Any, Condition, Method, Not, PathRegex, Profile, Status
from isthmus.mesh.queries import (
    GATEWAY_PROTOCOL,
    ObjectKey,
    ProfileKey,
    Protocol,
    gateway_protocol,
    mirrored,
    profile,
)

DIALECT: Final = "linkerd"

_SHORTEST: Final = 1_000
_LONGEST: Final = 60_000
"""Milliseconds of a retry budget's ttl that proxies accept; with any other one they never retry."""


@query
def faults(db: View, key: ProfileKey) -> tuple[Unsupported, ...]:
    """What of a profile a linkerd2-proxy will not do as it is written."""
    said = profile(db, key)
    source: Source = Origin(said.profile) if said.profile is not None else Default("profile")
    return (
        *_budget(said, source),
        *_classes(said, source),
        *_overrides(said, source),
        *_gateway(db, said),
    )


def _gateway(db: View, said: Profile) -> Iterator[Unsupported]:
    """A proxy tells gateways in its transport header what it means; ours go by server name."""
    parent = said.parent
    if parent is None:
        return
    mirror = mirrored(db, ObjectKey(parent.cluster, parent.namespace, parent.name))
    if mirror is not None and gateway_protocol(db, mirror.service.cluster) is Protocol.SNI:
        detail = f"the gateway of {mirror.service.cluster} is no linkerd2-proxy"
        origin = Origin(parent, port=said.parent_port)
        yield Unsupported(origin, GATEWAY_PROTOCOL, DIALECT, detail)


def _budget(said: Profile, source: Source) -> Iterator[Unsupported]:
    if not said.refused and not _SHORTEST <= said.budget.ttl <= _LONGEST:
        detail = "a retry budget's ttl must be 1s to 60s, or nothing is tried again"
        yield Unsupported(source, "RetryBudget", DIALECT, detail)


def _classes(said: Profile, source: Source) -> Iterator[Unsupported]:
    """A proxy that is told a bound of 0 drops the whole response class."""
    for route in said.routes:
        if any(_open(each.condition) for each in route.classes):
            detail = f"route {route.name!r}: a status range needs both bounds"
            yield Unsupported(source, "StatusRange", DIALECT, detail)


def _open(said: Condition) -> bool:
    match said:
        case All(of) | Any(of):
            return any(_open(each) for each in of)
        case Not(of):
            return _open(of)
        case Status(low, high):
            return not low or not high
        case PathRegex() | Method():
            return False


def _overrides(said: Profile, source: Source) -> Iterator[Unsupported]:
    """Weights of 0 are dropped; if none is left, the overrides have no effect at all."""
    if said.overrides and not any(each.weight for each in said.overrides):
        yield Unsupported(source, "DstOverrides", DIALECT, "no override weighs more than 0")

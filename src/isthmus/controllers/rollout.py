"""How many pods each ReplicaSet of a Deployment should have: the arithmetic of a rollout. Pure.

Kubernetes' rules: in a rolling update there are never more than replicas + maxSurge pods, and
scaling down never leaves fewer than replicas - maxUnavailable available.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from isthmus.model.apps.deployment import DeploymentSpec

QUARTER = "25%"


class Bounds(NamedTuple):
    """How far a rollout may leave the wanted number of pods, in pods."""

    surge: int
    unavailable: int


class Held(NamedTuple):
    """One ReplicaSet in numbers: wanted (spec.replicas), present and available (status)."""

    name: str
    wanted: int
    present: int
    available: int


class Targets(NamedTuple):
    """spec.replicas of the new ReplicaSet, and of old ones by name where it should differ."""

    new: int
    old: dict[str, int]


def bounds(spec: DeploymentSpec) -> Bounds:
    """Surge rounds up and unavailable down; both 0 would stand still, so one may be missing."""
    if spec.strategy.type == "Recreate":
        return Bounds(0, spec.replicas)
    rolling = spec.strategy.rolling_update
    most = rolling.max_surge if rolling else None
    least = rolling.max_unavailable if rolling else None
    surge = share(QUARTER if most is None else most, spec.replicas, up=True)
    unavailable = share(QUARTER if least is None else least, spec.replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return Bounds(surge, min(unavailable, spec.replicas))


def share(value: int | str, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of`; 0 for text that is neither."""
    if isinstance(value, int):
        return max(value, 0)
    digits = value.removesuffix("%")
    if not digits.isdecimal() or digits == value or len(digits) > 9:
        return 0
    part = of * int(digits) / 100
    return math.ceil(part) if up else math.floor(part)


def rolling(replicas: int, limits: Bounds, new: Held, old: Sequence[Held]) -> Targets:
    """One move of a rolling update: up as far as surge allows, else down as availability allows.

    `new.wanted` is 0 for a ReplicaSet that is to be created. `old` is ordered, oldest first.
    """
    total = new.wanted + sum(one.wanted for one in old)
    if new.wanted != replicas:
        room = replicas + limits.surge - total
        up = new.wanted + max(0, min(room, replicas - new.wanted))
        target = min(up, replicas)
        if target != new.wanted:
            return Targets(target, {})
    return Targets(new.wanted, _shrink(replicas, limits, new, old, total))


def _shrink(
    replicas: int, limits: Bounds, new: Held, old: Sequence[Held], total: int
) -> dict[str, int]:
    least = replicas - limits.unavailable
    spare = total - least - max(0, new.wanted - new.available)
    targets: dict[str, int] = {}
    # First what serves nobody.
    for one in old:
        idle = min(max(0, one.wanted - one.available), max(0, spare))
        if idle:
            targets[one.name] = one.wanted - idle
            spare -= idle
    # Then what is available beyond the least that must be.
    spare = min(spare, new.available + sum(one.available for one in old) - least)
    for one in old:
        left = targets.get(one.name, one.wanted)
        down = min(left, max(0, spare))
        if down:
            targets[one.name] = left - down
            spare -= down
    return targets


def recreating(replicas: int, new: Held, old: Sequence[Held], *, old_pods: bool) -> Targets:
    """Recreate: nothing new before the last old pod is gone."""
    stopped = {one.name: 0 for one in old if one.wanted}
    return Targets(new.wanted if stopped or old_pods else replicas, stopped)


def paused(replicas: int, new: Held | None, old: Sequence[Held], limits: Bounds) -> Targets:
    """A paused Deployment only follows its replicas, each ReplicaSet in proportion."""
    every = [*old, *([new] if new else [])]
    active = [one for one in every if one.wanted] or every[-1:]
    if len(active) == 1:
        sizes = {active[0].name: replicas}
    elif not active or sum(one.wanted for one in active) in range(
        replicas, replicas + limits.surge + 1
    ):
        sizes = {}
    else:
        sizes = _proportional(replicas, active)
    kept = {one.name: sizes.get(one.name, one.wanted) for one in every}
    grown = kept.pop(new.name) if new else 0
    return Targets(grown, {one.name: kept[one.name] for one in old if kept[one.name] != one.wanted})


def _proportional(replicas: int, active: Sequence[Held]) -> dict[str, int]:
    """Largest remainder: shares of `replicas` as the sizes are to each other."""
    total = sum(one.wanted for one in active)
    sizes = {one.name: one.wanted * replicas // total for one in active}
    left = replicas - sum(sizes.values())
    order = sorted(active, key=lambda one: (-(one.wanted * replicas % total), one.name))
    for one in order[:left]:
        sizes[one.name] += 1
    return sizes

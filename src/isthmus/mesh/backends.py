"""Backends: what requests for a Service's port are spread over.

A plain Service is one target. A mirror through a gateway is the Service behind it. A federated one
is the union of its members' endpoints, unless annotations give its members shares.
"""

from __future__ import annotations

from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Origin, Ref
from isthmus.ir.target import Target, To
from isthmus.mesh.federation import Portion, portions
from isthmus.mesh.mirrors import mirrored
from isthmus.mesh.targets import THROUGH, target, target_id
from isthmus.model.key import ObjectKey

_MOST: Final = 8
"""Targets that a share may fall back to."""


@query
def service_backends(db: View, service: ObjectKey, port: int) -> tuple[To, ...]:
    """Where requests for a Service's port go: at least one; weights count among themselves only."""
    source = Origin(Ref(service.cluster, "", "Service", service.namespace, service.name), port=port)
    groups = portions(db, service)
    if not groups:
        return (To(_whole(db, service, port), source),)
    return tuple(
        To(
            _part(db, service, port, portion),
            source,
            portion.weight,
            tuple(_part(db, service, port, other) for other in _others(groups, at)),
        )
        for at, portion in enumerate(groups[0])
    )


def _whole(db: View, service: ObjectKey, port: int) -> Target:
    mirror = mirrored(db, service)
    if mirror is not None:
        return target(db, target_id(mirror.service, port, THROUGH, mirror.host))
    return target(db, target_id(service, port))


def _part(db: View, service: ObjectKey, port: int, portion: Portion) -> Target:
    return target(db, target_id(service, port, subset=portion.subset))


def _others(groups: tuple[tuple[Portion, ...], ...], at: int) -> list[Portion]:
    """Where a portion's share goes while it has nobody: to its own group first, then down the line.

    Each begins with another one, so that not all shares fall on the same.
    """
    own, *later = groups
    found = [*own[at + 1 :], *own[:at]]
    for group in later:
        turn = at % len(group)
        found += [*group[turn:], *group[:turn]]
    return found[:_MOST]

"""Members: the Services of several clusters that one federated Service stands for.

Members are grouped by name and namespace, nothing else. The first is the source of the federated
Service's ports and metadata: the local one, else that of the oldest Link (decision 7).
"""

from __future__ import annotations

from typing import NamedTuple

from isthmus.engine import View, query
from isthmus.mesh.exports import (
    FEDERATED,
    FEDERATED_SUFFIX,
    MEMBER,
    Target,
    is_federated,
    is_member,
    synced,
    targets,
)
from isthmus.mesh.services import Federated, discovery
from isthmus.mesh.tables import SERVICES
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey

HEADLESS = "None"
MAX_LABEL = 63
"""Characters of a Service's name (RFC 1035 label)."""


class Member(NamedTuple):
    """A Service that joined. `target` is None for the local one.

    `known` is False where its cluster was not heard of since the start: it stays what it was.
    """

    service: ObjectKey
    target: Target | None
    known: bool

    @property
    def text(self) -> str:
        """As the annotation of the federated Service names a remote member."""
        return f"{self.service.name}@{self.service.cluster}"


def federated_key(local: str, member: ObjectKey) -> ObjectKey:
    """The federated Service that a Service would be a member of."""
    return ObjectKey(local, member.namespace, f"{member.name}{FEDERATED_SUFFIX}")


def unfit(row: Service) -> str:
    """Why a Service can neither be mirrored nor join; "" if it can."""
    if row.spec.type == "ExternalName":
        return "A Service of type ExternalName has no endpoints"
    return "" if row.spec.ports else "object spec has no exposed ports"


def cannot_join(row: Service) -> str:
    """Why a Service cannot be a member; "" if it can."""
    if row.spec.cluster_ip == HEADLESS:
        return "Headless service cannot join federated service"
    if len(row.metadata.name) + len(FEDERATED_SUFFIX) > MAX_LABEL:
        return f"{row.metadata.name}{FEDERATED_SUFFIX} is too long for the name of a Service"
    return unfit(row)


def joins(db: View, service: ObjectKey) -> bool:
    """Whether a Service that asks to be a member can be one."""
    row = SERVICES.get(db, service)
    return row is not None and not cannot_join(row)


@query
def members(db: View, federated: ObjectKey) -> tuple[Member, ...]:
    """The members of a federated Service, the source of its ports first.

    A cluster that is linked and not synced since the start may have members that nothing tells of:
    those that the Service names stay (decision 18). All others leave with their label, their
    Service or their Link.
    """
    name = federated.name.removesuffix(FEDERATED_SUFFIX)
    if not name or name == federated.name:
        return ()
    own = federated._replace(name=name)
    found = [Member(own, None, known=True)] if _local(db, own) else []
    for target in targets(db, federated.cluster):
        remote = own._replace(cluster=target.cluster)
        if not synced(db, target.cluster):
            if remote in _named(db, federated):
                found.append(Member(remote, target, known=False))
        elif is_member(db, target.link, remote) and joins(db, remote):
            found.append(Member(remote, target, known=True))
    return tuple(found)


def _local(db: View, own: ObjectKey) -> bool:
    row = SERVICES.get(db, own)
    labelled = row is not None and row.metadata.labels.get(FEDERATED) == MEMBER
    return labelled and joins(db, own)


def _named(db: View, federated: ObjectKey) -> tuple[ObjectKey, ...]:
    """What our own Service says already."""
    row = SERVICES.get(db, federated)
    if row is None or not is_federated(row):
        return ()
    found = discovery(db, federated)
    return found.members if isinstance(found, Federated) else ()

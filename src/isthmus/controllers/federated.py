"""Federated Services: `<service>-federated` stands for its members in several clusters.

The Service says in annotations who they are, and the mesh takes the union of their endpoints. Its
ports and the metadata that it copies are those of its first member (decision 7); what people put on
it stays. A Service of that name that is not ours is never touched, but told in its conditions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.controllers.conditions import Says, update
from isthmus.controllers.copied import Keys, copies, metadata
from isthmus.controllers.listing import merged
from isthmus.controllers.pods import lives
from isthmus.controllers.standins import RESOURCE, write
from isthmus.controllers.steps import Delete, Plan
from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.exports import (
    CONTESTED,
    FEDERATIONS,
    LOCAL_MEMBERS,
    MIRRORED,
    NAME_CONDITION,
    is_federated,
    members_in,
    targets,
)
from isthmus.mesh.federation import share_problems
from isthmus.mesh.links import LINKS
from isthmus.mesh.members import Member, federated_key, members
from isthmus.mesh.services import LOCAL_MEMBER, REMOTE_CLUSTER
from isthmus.mesh.tables import SERVICES
from isthmus.model.core import Service
from isthmus.model.core.service import ServicePort
from isthmus.model.key import ObjectKey

PORTS_AGREE: Final = "multicluster.isthmus.dev/PortsAgree"
SHARES: Final = "multicluster.isthmus.dev/SharesUnderstood"
SHOWN: Final = 8
"""Members or problems that a message names; it tells how many more there are."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name of a namespace that a federated Service has, or should have."""
    if not where.namespace:
        return ()
    return merged(names(db, where), FEDERATIONS.get(db, where), CONTESTED.get(db, where))


@query
def names(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name of a namespace that a federated Service should have."""
    found = {
        federated_key(where.cluster, member)
        for target in targets(db, where.cluster)
        for member in members_in(db, target.link, where.namespace)
    }
    found.update(federated_key(where.cluster, one) for one in LOCAL_MEMBERS.get(db, where))
    return tuple(sorted(found))


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The difference between a federated Service as it should be and as it is."""
    held, found = SERVICES.get(db, key), members(db, key)
    if held is not None and held.metadata.deletion_timestamp:
        return ()
    if held is not None and not is_federated(held):
        return _foreign(key, held, found)
    if not found:
        return () if held is None or not made(held) else (_death(key, held),)
    if not lives(db, key):
        return ()
    said = _conditions(db, key, found, held) if held is not None else ()
    return (*_service(db, key, held, found), *said)


def made(row: Service) -> bool:
    """Whether a federated Service has, or had, members: one of a person may not be told yet."""
    return bool({LOCAL_MEMBER, REMOTE_CLUSTER} & row.metadata.annotations.keys())


def _death(key: ObjectKey, held: Service) -> Delete:
    return Delete(RESOURCE, key.namespace, key.name, held.metadata.uid)


# -------------------------------------------------------------------------------- the Service


def _service(db: View, key: ObjectKey, held: Service | None, found: tuple[Member, ...]) -> Plan:
    marked, source = marks(found), found[0]
    if source.known:
        row = SERVICES.get(db, source.service)
        ports = row.spec.ports if row is not None else ()
        patch = metadata(held, marked, copied(db, source))
        return write(key, held, patch, ports)
    if held is None:  # cannot be: nothing names a member that is not known
        return ()
    now = held.metadata.annotations
    notes = {name: now.get(name) for name in (LOCAL_MEMBER, REMOTE_CLUSTER)}
    changed = {
        name: marked.annotations.get(name)
        for name, text in notes.items()
        if text != marked.annotations.get(name)
    }
    return write(key, held, {"annotations": changed} if changed else {}, held.spec.ports)


def marks(found: tuple[Member, ...]) -> Keys:
    """What says that a Service is federated, and who its members are."""
    local = [one.service.name for one in found if one.target is None]
    remote = [one.text for one in found if one.target is not None]
    notes = {LOCAL_MEMBER: local[0]} if local else {}
    return Keys({MIRRORED: "true"}, notes | ({REMOTE_CLUSTER: ",".join(remote)} if remote else {}))


def copied(db: View, source: Member) -> Keys:
    """What the federated Service takes over from its first member."""
    row = SERVICES.get(db, source.service)
    link = LINKS.get(db, source.target.link) if source.target is not None else None
    if row is None:
        return Keys({}, {})
    if link is None:
        return copies(row.metadata, (), ())
    return copies(row.metadata, link.spec.excluded_labels, link.spec.excluded_annotations)


# --------------------------------------------------------------------------------- conditions


def _foreign(key: ObjectKey, held: Service, found: tuple[Member, ...]) -> Plan:
    """A Service of a person with the name that members want: it stays, and says so."""
    told = listed([_who(one) for one in found])
    text = f"members want this name: {told}; the Service is not ours and stays as it is"
    wanted = (Says(NAME_CONDITION, False, "NameTaken", text),) if found else ()
    return update(RESOURCE, key, held, held.status.conditions, wanted, (NAME_CONDITION,))


def _conditions(db: View, key: ObjectKey, found: tuple[Member, ...], held: Service) -> Plan:
    gaps = disagreements(db, key)
    told = listed([f"{each.member}: {each.why}" for each in gaps])
    wanted = [Says(PORTS_AGREE, False, "PortConflict", told) if gaps else _agree(found)]
    if problems := share_problems(db, key):
        told = listed([each.warning for each in problems])
        wanted.append(Says(SHARES, False, "Invalid", told))
    ours = (NAME_CONDITION, PORTS_AGREE, SHARES)
    return update(RESOURCE, key, held, held.status.conditions, tuple(wanted), ours)


def _agree(found: tuple[Member, ...]) -> Says:
    text = f"ports are those of {_who(found[0])}, which all members have"
    return Says(PORTS_AGREE, True, "PortsAgree", text)


def _who(one: Member) -> str:
    return one.text if one.target is not None else f"{one.service.name} of this cluster"


def listed(told: list[str]) -> str:
    """The first of several; how many more there are."""
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "; ".join(told[:SHOWN]) + more


class Disagreement(NamedTuple):
    """A member whose ports are not those of the federated Service."""

    service: ObjectKey
    member: str
    why: str


@query
def disagreements(db: View, federated: ObjectKey) -> tuple[Disagreement, ...]:
    """Members whose ports contradict those of the first: theirs are not reachable as they are."""
    found = [one for one in members(db, federated) if one.known]
    if not found:
        return ()
    rule = _ports(db, found[0])
    return tuple(
        Disagreement(one.service, _who(one), why)
        for one in found[1:]
        if (why := _why(rule, _ports(db, one)))
    )


def _ports(db: View, one: Member) -> dict[tuple[int, str], ServicePort]:
    row = SERVICES.get(db, one.service)
    return {(each.port, each.protocol): each for each in row.spec.ports} if row is not None else {}


def _why(rule: dict[tuple[int, str], ServicePort], own: dict[tuple[int, str], ServicePort]) -> str:
    lacks, more = sorted(rule.keys() - own.keys()), sorted(own.keys() - rule.keys())
    parts = [f"lacks {_numbers(lacks)}"] if lacks else []
    parts += [f"has {_numbers(more)}, which the federated Service has not"] if more else []
    return " and ".join(parts)


def _numbers(ports: list[tuple[int, str]]) -> str:
    return ", ".join(f"{number}/{protocol}" for number, protocol in ports)

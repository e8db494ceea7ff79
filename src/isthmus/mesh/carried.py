"""Policies that are carried to the clusters of the Services that they are for.

A policy for a mirror or a federated Service has nothing to decide in its own cluster: requests
arrive elsewhere. Told to (`carry`), it counts at the members. A member takes it over itself, with
the rights that it has in its own cluster: nobody writes from outside. Three must agree: who wrote
the policy, the member's Service, and the member's Link to the policy's cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from isthmus.engine import Index, View, query
from isthmus.ir.inbound import Authorization
from isthmus.mesh.authorization import authorization_policy
from isthmus.mesh.candidates import MIRROR_CLUSTER, REMOTE_NAME
from isthmus.mesh.census import Place
from isthmus.mesh.clusters import is_local
from isthmus.mesh.exports import FEDERATED, FEDERATED_SUFFIX, MEMBER, in_charge, synced, targets
from isthmus.mesh.links import LINKS
from isthmus.mesh.members import members
from isthmus.mesh.mirrors import mirrored
from isthmus.mesh.policy_tables import AUTHORIZATION_POLICIES, kind_name
from isthmus.mesh.services import REMOTE_CLUSTER, REMOTE_SERVICE, Remote, discovery
from isthmus.mesh.standing import Standing, policy_standing
from isthmus.mesh.tables import SERVICES, place
from isthmus.model.annotations.keys import ACCEPT_POLICIES, CARRIED_UID, CARRY
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey
from isthmus.model.policy import AuthorizationPolicy

SERVICE: Final = kind_name("", "Service")
_MOST: Final = 64
"""Clusters that a Service can name."""


class Uid(NamedTuple):
    """An object by its uid, as one cluster tells of it."""

    cluster: str
    uid: str


class Taken(StrEnum):
    """What became of a carried policy at one member."""

    ENFORCED = "enforced"
    REFUSED = "refused"
    PENDING = "pending"


class Fate(NamedTuple):
    """What became of a carried policy at one member, and why."""

    cluster: str
    service: ObjectKey
    taken: Taken
    why: str = ""


def asks(row: AuthorizationPolicy) -> bool:
    """Whether a policy is to be carried."""
    ref = row.spec.target_ref
    said = row.metadata.annotations.get(CARRY, "").strip()
    return said == "true" and kind_name(ref.group, ref.kind) == SERVICE


def _asking(key: ObjectKey, row: AuthorizationPolicy) -> Iterable[Place]:
    return (place(key),) if asks(row) else ()


def _origin(key: ObjectKey, row: AuthorizationPolicy) -> Iterable[Uid]:
    uid = row.metadata.annotations.get(CARRIED_UID, "")
    return (Uid(key.cluster, uid),) if uid else ()


CARRIED: Index[ObjectKey, AuthorizationPolicy, Place] = Index(
    "carried_policies", AUTHORIZATION_POLICIES, _asking
)
"""Policies that are to be carried, by namespace."""
COPIES: Index[ObjectKey, AuthorizationPolicy, Uid] = Index(
    "copies_of_policies", AUTHORIZATION_POLICIES, _origin
)
"""What carried policies became, by the policy's uid."""


# --------------------------------------------------------------------------- at the member


@query
def accepted_clusters(db: View, service: ObjectKey) -> tuple[str, ...]:
    """The clusters whose policies count at a Service of ours: our own, and those we accept."""
    row = SERVICES.get(db, service)
    said = row.metadata.annotations.get(ACCEPT_POLICIES, "") if row is not None else ""
    named = names(said)
    linked = (each.cluster for each in targets(db, service.cluster)) if named else ()
    found = [each for each in linked if {"*", each} & named and _open(db, service.cluster, each)]
    return (service.cluster, *found)


def names(said: str) -> frozenset[str]:
    """The clusters that an annotation lists; `*` stands for all."""
    return frozenset(filter(None, (each.strip() for each in said.split(",", _MOST)[:_MOST])))


@query
def _open(db: View, local: str, name: str) -> bool:
    """Whether the Link to a cluster lets its policies in."""
    key = in_charge(db, local, name)
    row = LINKS.get(db, key) if key is not None else None
    return row is not None and row.metadata.annotations.get(ACCEPT_POLICIES, "").strip() == "true"


@query
def policies_for(db: View, service: ObjectKey) -> tuple[ObjectKey, ...]:
    """The carried policies that count at a Service of ours, by cluster and name."""
    return tuple(
        policy
        for home in accepted_clusters(db, service)
        for policy in CARRIED.get(db, Place(home, service.namespace))
        if means(db, policy, service)
    )


@query
def unheard(db: View, service: ObjectKey) -> tuple[str, ...]:
    """The accepted clusters of which nothing is known yet: what came from them stays."""
    others = accepted_clusters(db, service)[1:]
    return tuple(each for each in others if not synced(db, each))


@query
def means(db: View, policy: ObjectKey, service: ObjectKey) -> bool:
    """Whether the Service that a policy is for stands, in its cluster, for one of ours."""
    row = AUTHORIZATION_POLICIES.get(db, policy)
    if row is None:
        return False
    target = policy._replace(name=row.spec.target_ref.name)
    own = SERVICES.get(db, service)
    member = own is not None and own.metadata.labels.get(FEDERATED) == MEMBER
    if member and target.name == f"{service.name}{FEDERATED_SUFFIX}":
        return True
    there = SERVICES.get(db, target)
    if there is None or is_local(db, policy.cluster):
        return False
    return _mirrors(there, service)


def _mirrors(row: Service, service: ObjectKey) -> bool:
    """Whether a Service of a linked cluster says that it stands for one of ours."""
    notes, labels = row.metadata.annotations, row.metadata.labels
    if REMOTE_CLUSTER in labels:
        said = (labels[REMOTE_CLUSTER], labels.get(REMOTE_SERVICE, ""))
        return said == (service.cluster, service.name)
    parts = notes.get(REMOTE_NAME, "").split(".")[:3]
    ours = labels.get(MIRROR_CLUSTER) == service.cluster
    return ours and parts == [service.name, service.namespace, "svc"]


# ------------------------------------------------------------------ at the policy's cluster


@query
def stands_for(db: View, target: ObjectKey) -> tuple[ObjectKey, ...]:
    """The Services that a mirror or federated Service of ours stands for."""
    mirror, found = mirrored(db, target), discovery(db, target)
    if mirror is not None:
        return (mirror.service,)
    if isinstance(found, Remote):
        return (found.service,) if found.service is not None else ()
    return tuple(each.service for each in members(db, target))


@query
def fates(db: View, policy: ObjectKey) -> tuple[Fate, ...]:
    """What became of a carried policy, member by member."""
    row = AUTHORIZATION_POLICIES.get(db, policy)
    if row is None or not asks(row):
        return ()
    target = policy._replace(name=row.spec.target_ref.name)
    return tuple(_fate(db, policy, row.metadata.uid, each) for each in stands_for(db, target))


def _fate(db: View, policy: ObjectKey, uid: str, service: ObjectKey) -> Fate:
    home, where = service.cluster, f"{service.namespace}/{service.name}"
    own = home == policy.cluster
    if not own and not synced(db, home):
        return Fate(home, service, Taken.PENDING, "nothing was heard of the cluster yet")
    row = SERVICES.get(db, service)
    said = row.metadata.annotations.get(ACCEPT_POLICIES, "") if row is not None else ""
    if not own and not {"*", policy.cluster} & names(said):
        why = f"Service {where} does not accept policies of {policy.cluster}"
        return Fate(home, service, Taken.REFUSED, f"{why} (annotation {ACCEPT_POLICIES})")
    granted = authorization_policy(db, policy).authorization
    if granted is None:
        return Fate(home, service, Taken.PENDING, "it grants nothing, so that nobody is let in")
    copies = COPIES.get(db, Uid(home, uid))
    if not copies:
        why = "nothing was seen of it: the cluster needs a Link to this one that accepts policies"
        return Fate(home, service, Taken.PENDING, f"{why}, and to let this one read its policies")
    return _by_copies(db, service, granted, copies)


def _by_copies(
    db: View, service: ObjectKey, granted: Authorization, copies: Iterable[ObjectKey]
) -> Fate:
    home = service.cluster
    for copy in copies:
        held = authorization_policy(db, copy).authorization
        if held is None or _proof(held) != _proof(granted):
            return Fate(home, service, Taken.PENDING, "an older version of it counts")
        standing = policy_standing(db, copy)
        if standing is Standing.SHADOWED:
            why = "older Servers of its own describe the ports, and they decide"
            return Fate(home, service, Taken.REFUSED, why)
        if standing is not Standing.IN_FORCE:
            return Fate(home, service, Taken.PENDING, "no workload is there")
    return Fate(home, service, Taken.ENFORCED)


def _proof(one: Authorization) -> tuple[object, ...]:
    return (one.networks, one.authentication)

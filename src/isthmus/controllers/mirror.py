"""Mirrors: Services here that stand for Services of linked clusters (`<service>-<cluster>`).

One plan per name of a mirror: the Service, its Endpoints where clients go through the gateway, and
the mirrors of single hosts where the remote Service is headless. What is ours is told by labels,
never by a name. A mirror goes when its Service, the label or the Link goes; never because a cluster
cannot be heard.
"""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.controllers import hostmirrors
from isthmus.controllers.copied import Keys, copies, metadata
from isthmus.controllers.gateways import Subject, gateway, remove, serves, through_gateway
from isthmus.controllers.listing import merged
from isthmus.controllers.pods import lives
from isthmus.controllers.standins import RESOURCE, write
from isthmus.controllers.steps import Delete, Plan, Step
from isthmus.engine import View, query
from isthmus.mesh.candidates import REMOTE_NAME
from isthmus.mesh.census import Place
from isthmus.mesh.clusters import cluster
from isthmus.mesh.exports import (
    HOST_MIRRORS,
    MIRROR_CLUSTER,
    MIRROR_ROOT,
    MIRRORED,
    MIRRORS,
    Claim,
    Mode,
    claims,
    in_charge,
    is_mirror,
    mirror_name,
    mirrored_in,
    synced,
    targets,
)
from isthmus.mesh.links import LINKS
from isthmus.mesh.members import unfit
from isthmus.mesh.services import REMOTE_CLUSTER, REMOTE_SERVICE
from isthmus.mesh.tables import ENDPOINTS, SERVICES
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import LinkSpec
from isthmus.model.names import label_1035_problems

KEPT: Final = "federated"
"""A cluster of this name would have mirrors that are called like federated Services."""


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name of a namespace that a mirror has, or should have."""
    if not where.namespace:
        return ()
    rows = (SERVICES.get(db, key) for key in HOST_MIRRORS.get(db, where))
    roots = {row.metadata.labels[MIRROR_ROOT] for row in rows if row is not None}
    named = tuple(ObjectKey(where.cluster, where.namespace, name) for name in sorted(roots))
    return merged(names(db, where), MIRRORS.get(db, where), named)


@query
def names(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every name of a namespace that a mirror should have."""
    found = {
        ObjectKey(where.cluster, where.namespace, mirror_name(remote))
        for target in targets(db, where.cluster)
        for remote in mirrored_in(db, target.link, where.namespace)
    }
    return tuple(sorted(found))


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """The difference between a mirror as it should be and as it is."""
    held = SERVICES.get(db, key)
    if held is not None and held.metadata.deletion_timestamp:
        return ()
    claim = accepted(db, key)
    if claim is None:
        return _without(db, key, held)
    if not lives(db, key) or (held is not None and not is_mirror(held)):
        return ()  # the Link's status says so
    headless = hostmirrors.headless(db, claim, held)
    if headless is None:
        return ()
    if held is not None and hostmirrors.is_headless(held) is not headless:
        return (_death(key, held),)  # an address cannot be given later
    return (*_service(db, key, claim, headless=headless), *_behind(db, key, claim, held))


# ------------------------------------------------------------------------------ who has it


@query
def accepted(db: View, mirror: ObjectKey) -> Claim | None:
    """The first claim on a name that can be met."""
    return next((claim for claim in claims(db, mirror) if not refusal(db, claim)), None)


class Refusal(msgspec.Struct, frozen=True):
    """Why a Service is not mirrored: a word for machines, and a sentence."""

    reason: str
    message: str


@query
def refusal(db: View, claim: Claim) -> Refusal | None:
    """What is wrong with an export, whoever else wants the name."""
    row = SERVICES.get(db, claim.remote)
    name = mirror_name(claim.remote)
    if row is None:
        return None
    if why := unfit(row):
        return Refusal("InvalidService", f"Skipped mirroring service: {why}")
    if claim.target.cluster == KEPT:
        return Refusal("Error", f"{name} is kept for a federated Service: rename the cluster")
    if problems := list(label_1035_problems(name)):
        return Refusal("InvalidService", f"{name} is no name of a Service: {problems[0]}")
    if claim.mode is Mode.GATEWAY:
        return _gateway_refusal(db, claim)
    return None


def _gateway_refusal(db: View, claim: Claim) -> Refusal | None:
    found = gateway(db, claim.target.link)
    if found is None:
        return Refusal("Error", "the Link has no gatewayAddress")
    return None if found.port else Refusal("Error", "the Link's gatewayPort is no port number")


# -------------------------------------------------------------------------------- removing


def _without(db: View, key: ObjectKey, held: Service | None) -> Plan:
    """Take the mirror away, if what it stands for is known to be no export any more."""
    steps: list[Step] = []
    if held is not None and is_mirror(held) and _ended(db, key, held):
        steps += [*remove(db, key), _death(key, held)]
    if held is None or steps:
        steps += hostmirrors.ended(db, key)
    return tuple(steps)


def _ended(db: View, key: ObjectKey, held: Service) -> bool:
    """Whether its cluster is linked no more, or is known to export it no more."""
    name = held.metadata.labels[MIRROR_CLUSTER]
    return in_charge(db, key.cluster, name) is None or synced(db, name)


def _death(key: ObjectKey, held: Service) -> Delete:
    return Delete(RESOURCE, key.namespace, key.name, held.metadata.uid)


# --------------------------------------------------------------------------------- writing


@query
def terms(db: View, link: ObjectKey) -> LinkSpec:
    """What a Link asks for, apart from how its cluster is reached."""
    row = LINKS.get(db, link)
    return row.spec if row is not None else LinkSpec()


def remote_name(db: View, claim: Claim) -> str:
    """The full name of the remote Service in its own cluster."""
    domain = terms(db, claim.target.link).target_cluster_domain
    if not domain:
        home = cluster(db, claim.target.cluster)
        domain = home.cluster_domain if home is not None else "cluster.local"
    return f"{claim.remote.name}.{claim.remote.namespace}.svc.{domain}"


def marks(db: View, claim: Claim) -> Keys:
    """What says that a Service is a mirror, and of what."""
    labels = {MIRRORED: "true", MIRROR_CLUSTER: claim.target.cluster}
    if claim.mode is Mode.FLAT:
        labels |= {REMOTE_CLUSTER: claim.target.cluster, REMOTE_SERVICE: claim.remote.name}
    return Keys(labels, {REMOTE_NAME: remote_name(db, claim)})


@query
def copied(db: View, claim: Claim) -> Keys:
    """What the mirror takes over from the remote Service."""
    row, spec = SERVICES.get(db, claim.remote), terms(db, claim.target.link)
    if row is None:
        return Keys({}, {})
    return copies(row.metadata, spec.excluded_labels, spec.excluded_annotations)


def _service(db: View, key: ObjectKey, claim: Claim, *, headless: bool) -> Plan:
    remote, held = SERVICES.get(db, claim.remote), SERVICES.get(db, key)
    if remote is None:
        return ()
    patch = metadata(held, marks(db, claim), copied(db, claim))
    return write(key, held, patch, remote.spec.ports, headless=headless)


def _behind(db: View, key: ObjectKey, claim: Claim, held: Service | None) -> Plan:
    """What is behind the mirror, once it is there."""
    remote = SERVICES.get(db, claim.remote)
    if held is None or remote is None:
        return ()
    if claim.mode is Mode.FLAT:
        return (*_no_endpoints(db, key), *hostmirrors.ended(db, key))
    said, more = marks(db, claim), copied(db, claim)
    labels = {**more.labels, **said.labels}
    ready = serves(db, claim.remote)
    notes = {REMOTE_NAME: remote_name(db, claim)}
    subject = Subject(key, claim.target.link, labels, notes, remote.spec.ports, ready)
    if hostmirrors.is_headless(held):
        return hostmirrors.plan(db, claim, subject)
    return (*through_gateway(db, subject), *hostmirrors.ended(db, key))


def _no_endpoints(db: View, key: ObjectKey) -> Plan:
    held = ENDPOINTS.get(db, key)
    ours = held is not None and held.metadata.labels.get(MIRRORED) == "true"
    return remove(db, key) if ours else ()

"""Which clusters are linked, with which credentials, and why some Links lead nowhere.

A cluster is linked by the oldest Link that names it, or, for discovery alone, by a labelled Secret
in the control plane's namespace. What people wrote is not always possible; it then becomes a
Refusal, and troubles no other Link.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.census import Place
from isthmus.mesh.credentials import CREDENTIALS, NAMED_CREDENTIALS, Credentials
from isthmus.mesh.exports import LINKS_OF, in_charge
from isthmus.mesh.links import LINKS
from isthmus.mesh.settings import settings
from isthmus.model.annotations import KEEP, Problem, Staleness, staleness
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import Link, ProbeSpec, seconds
from isthmus.model.names import subdomain_problems

_PATH: Final = re.compile(r"/[!-~]{0,1024}")

MOST: Final = 256
"""Clusters linked at a time."""
_SOONEST, _LATEST = 1.0, 300.0
"""Seconds between two probes of a gateway, and for one answer."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a Link leads nowhere: a CamelCase word, and a sentence."""

    reason: str
    message: str


class Probe(msgspec.Struct, frozen=True):
    """How a gateway is asked whether it lives. Times in seconds, `failures` in a row mean no.

    `hosts` are addresses and names.
    """

    hosts: tuple[str, ...]
    port: int
    path: str
    period: float
    timeout: float
    failures: int


class Linked(msgspec.Struct, frozen=True):
    """A cluster to be connected.

    `link` is None where a Secret alone links it. `secret` holds the kubeconfig, `digest` tells one
    from the next, "" where there is none. Domains are "" where nobody said them.
    """

    name: str
    link: ObjectKey | None
    secret: ObjectKey
    digest: str
    also: tuple[ObjectKey, ...]
    """Other Secrets that hold credentials for the same cluster."""
    trust_domain: str = ""
    cluster_domain: str = ""
    control_plane_namespace: str = ""
    staleness: Staleness = KEEP
    notice: str = ""
    """What is written in the Link and has no effect."""
    probe: Probe | None = None


@query
def linked_names(db: View, local: str) -> tuple[str, ...]:
    """The names of all clusters to be connected, sorted; MOST of them at most, Links' first."""
    by_link = {name for key in LINKS_OF.get(db, local) if (name := _leads_to(db, key))}
    by_secret = {row.cluster for _, row in _labelled(db, local)}
    alone = {name for name in by_secret - by_link if not name_fault(name, local)}
    return tuple(sorted([*sorted(by_link), *sorted(alone)][:MOST]))


def _leads_to(db: View, key: ObjectKey) -> str:
    row = LINKS.get(db, key)
    return row.spec.target_cluster_name if row is not None and not refusal(db, key) else ""


def _labelled(db: View, local: str) -> list[tuple[ObjectKey, Credentials]]:
    home = Place(local, settings(db).control_plane_namespace)
    found = [(key, CREDENTIALS.get(db, key)) for key in NAMED_CREDENTIALS.get(db, home)]
    return [(key, row) for key, row in found if row is not None]


@query
def linked(db: View, local: str, name: str) -> Linked | None:
    """How one cluster is to be connected; None if it is not."""
    key = in_charge(db, local, name)
    row = LINKS.get(db, key) if key is not None else None
    labelled = [each for each in _labelled(db, local) if each[1].cluster == name]
    labelled.sort(key=lambda each: (each[1].created, each[0]))
    if key is None or row is None or refusal(db, key) is not None:
        return _by_secret(name, labelled) if labelled else None
    secret = key._replace(name=row.spec.cluster_credentials_secret)
    held = CREDENTIALS.get(db, secret)
    told = labelled[0][1] if labelled else Credentials("")
    said = staleness(row.metadata.annotations)
    return Linked(
        name,
        key,
        secret,
        held.digest if held is not None else "",
        tuple(other for other, _ in labelled if other != secret),
        told.trust_domain,
        row.spec.target_cluster_domain or told.cluster_domain,
        row.spec.target_cluster_linkerd_namespace,
        said if isinstance(said, Staleness) else KEEP,
        said.warning if isinstance(said, Problem) else "",
        probe(row),
    )


def _by_secret(name: str, labelled: list[tuple[ObjectKey, Credentials]]) -> Linked:
    (key, row), *others = labelled
    also = tuple(other for other, _ in others)
    return Linked(name, None, key, row.digest, also, row.trust_domain, row.cluster_domain)


@query
def refusal(db: View, key: ObjectKey) -> Refusal | None:
    """Why a Link leads nowhere by what is written in it, or beside it; None if it may lead."""
    row = LINKS.get(db, key)
    if row is None:
        return None
    name = row.spec.target_cluster_name
    if fault := name_fault(name, key.cluster):
        return fault
    first = in_charge(db, key.cluster, name)
    if first is not None and first != key:
        older = f"{first.namespace}/{first.name}"
        return Refusal("DuplicateCluster", f"cluster {name} is linked by {older}, which is older")
    if not row.spec.cluster_credentials_secret:
        return Refusal("NoCredentials", "spec.clusterCredentialsSecret is not set")
    return None


def name_fault(name: str, local: str) -> Refusal | None:
    """Why no other cluster can have this name."""
    if not name:
        return Refusal("NoCluster", "spec.targetClusterName is not set")
    if name == local:
        return Refusal("OwnCluster", f"{name} is the name of this very cluster")
    if problems := tuple(subdomain_problems(name)):
        return Refusal("BadClusterName", f"spec.targetClusterName: {problems[0]}")
    return None


@query
def refused(db: View, local: str) -> tuple[tuple[ObjectKey, Refusal], ...]:
    """Every Link that leads nowhere by what is written, and why."""
    found = [(key, refusal(db, key)) for key in LINKS_OF.get(db, local)]
    names = linked_names(db, local)
    full = Refusal("TooManyClusters", f"no more than {MOST} clusters can be linked")
    over = [(key, full) for key, why in found if not why and _leads_to(db, key) not in names]
    return tuple(sorted([*((key, why) for key, why in found if why), *over], key=lambda x: x[0]))


@query
def staleness_problem(db: View, key: ObjectKey) -> Problem | None:
    """What is wrong with a Link's staleness annotation, which then means keep."""
    row = LINKS.get(db, key)
    said = staleness(row.metadata.annotations) if row is not None else KEEP
    return said if isinstance(said, Problem) else None


def probe(row: Link) -> Probe | None:
    """The probe of a Link's gateway; None without gateway. What cannot be read is the default."""
    hosts = tuple(each.strip() for each in row.spec.gateway_address.split(",") if each.strip())
    if not hosts:
        return None
    said, usual = row.spec.probe_spec, ProbeSpec()
    return Probe(
        hosts[:16],
        _number(said.port, 1, 65_535) or int(usual.port),
        said.path if _PATH.fullmatch(said.path) else usual.path,
        _span(said.period, usual.period),
        _span(said.timeout, usual.timeout),
        _number(said.failure_threshold, 1, 100) or int(usual.failure_threshold),
    )


def _number(text: str, least: int, most: int) -> int | None:
    short = text.isascii() and text.isdecimal() and len(text) < 10
    return int(text) if short and least <= int(text) <= most else None


def _span(text: str, usual: str) -> float:
    found = seconds(text)
    if found is None:
        found = seconds(usual)
    return min(max(found or 0.0, _SOONEST), _LATEST)

"""Exports: which Services of linked clusters are taken over, how, and under which name.

A Link selects Services of its cluster in three ways: to be mirrored through the gateway, to be
mirrored endpoint by endpoint (flat), and as members of federated Services. A selector that is
absent or empty selects nothing (linkerd2 #11344). A mirror is nobody's export, unless a person
put a label of its own on it: such labels are never copied, so links in a circle do not grow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from isthmus.engine import OPERATORS, Index, Join, Labelled, Selector, Table, View, query
from isthmus.mesh.census import Place
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.links import LINKS, LINKS_BY_CLUSTER
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.tables import SERVICES, SLICES, place
from isthmus.model.core import Service
from isthmus.model.discovery import EndpointSlice
from isthmus.model.key import ObjectKey
from isthmus.model.meta import LabelSelector, Requirement
from isthmus.model.multicluster import Link, LinkSpec

MIRRORED: Final = "mirror.linkerd.io/mirrored-service"
EXPORTED: Final = "mirror.linkerd.io/exported"
FEDERATED: Final = "mirror.linkerd.io/federated"
MEMBER: Final = "member"
"""The value of FEDERATED by which a Service of this very cluster is a member."""
MIRROR_CLUSTER: Final = "mirror.linkerd.io/cluster-name"
MIRROR_ROOT: Final = "mirror.linkerd.io/headless-mirror-svc-name"
FEDERATED_SUFFIX: Final = "-federated"
NAME_CONDITION: Final = "multicluster.isthmus.dev/Federated"
"""Condition of a Service that is not ours and has the name that members want."""


MOST_HOSTS: Final = 1024
"""Names of gateways that are asked for."""


class Mode(StrEnum):
    """How a mirror's clients get at the remote Service: by its gateway, or pod by pod."""

    GATEWAY = "gateway"
    FLAT = "flat"

    __hash__ = str.__hash__  # members of keys: an enum's own is a Python function


class Target(NamedTuple):
    """A linked cluster, and the Link that is in charge of it."""

    cluster: str
    link: ObjectKey


class Claim(NamedTuple):
    """A Service of a linked cluster that is to have a mirror."""

    target: Target
    remote: ObjectKey
    mode: Mode


# ---------------------------------------------------------------------------------- selectors


def link_selector(row: Link, written: LabelSelector | None) -> Selector | None:
    """What one of a Link's selectors selects in its cluster; None for nothing at all."""
    if written is None or not row.spec.target_cluster_name:
        return None
    parts = written.match_expressions
    if not (written.match_labels or parts) or not all(map(_understood, parts)):
        return None
    found = [(part.key, part.operator, part.values) for part in parts]
    return Selector(row.spec.target_cluster_name, written.match_labels, found)  # type: ignore[arg-type]  # as understood


def _understood(part: Requirement) -> bool:
    listed = part.operator in ("In", "NotIn")
    return part.operator in OPERATORS and bool(part.values) == listed


def _exportable(key: ObjectKey, row: Service) -> Labelled | None:
    labels = row.metadata.labels
    if labels.get(MIRRORED) == "true" and not {EXPORTED, FEDERATED} & labels.keys():
        return None
    return Labelled(key.cluster, labels)


Pick = Callable[[LinkSpec], LabelSelector | None]


def _join(name: str, pick: Pick) -> Join[ObjectKey, Link, ObjectKey, Service]:
    def selector_of(key: ObjectKey, row: Link) -> Selector | None:
        own = row.spec.target_cluster_name == key.cluster  # would be a mirror of itself
        return None if own else link_selector(row, pick(row.spec))

    return Join(name, LINKS, selector_of, SERVICES, _exportable)


BY_GATEWAY: Final = _join("exports_by_gateway", lambda spec: spec.selector)
FLAT: Final = _join("exports_flat", lambda spec: spec.remote_discovery_selector)
MEMBERS: Final = _join("exports_federated", lambda spec: spec.federated_service_selector)


# -------------------------------------------------------------------------------------- links


def _cluster(key: ObjectKey, _row: Link) -> Iterable[str]:
    return (key.cluster,)


LINKS_OF: Index[ObjectKey, Link, str] = Index("links_of", LINKS, _cluster)
"""By the cluster that they are in."""


@query
def in_charge(db: View, local: str, target: str) -> ObjectKey | None:
    """Of the Links that name a cluster, the one that counts: the oldest, then by name."""
    if target == local:
        return None
    found = [
        (row.metadata.creation_timestamp, key)
        for key in LINKS_BY_CLUSTER.get(db, (local, target))
        if (row := LINKS.get(db, key)) is not None
    ]
    return min(found)[1] if found else None


@query
def targets(db: View, local: str) -> tuple[Target, ...]:
    """The linked clusters, that of the oldest Link first: it rules where members disagree."""
    found: list[tuple[str, str, Target]] = []
    for key in LINKS_OF.get(db, local):
        row = LINKS.get(db, key)
        name = row.spec.target_cluster_name if row is not None else ""
        if row is not None and name and in_charge(db, local, name) == key:
            found.append((row.metadata.creation_timestamp, name, Target(name, key)))
    return tuple(target for _, _, target in sorted(found))


def synced(db: View, cluster: str) -> bool:
    """Whether the objects of a linked cluster are known; else nothing may be told from absence."""
    return LINKED.get(db, cluster) is not None


# ------------------------------------------------------------------------------------ exports


@query
def mode(db: View, link: ObjectKey, remote: ObjectKey) -> Mode | None:
    """How a Link mirrors a Service of its cluster; None if it does not."""
    if link in FLAT.selectors(db, remote):
        return Mode.FLAT
    return Mode.GATEWAY if link in BY_GATEWAY.selectors(db, remote) else None


def is_member(db: View, link: ObjectKey, remote: ObjectKey) -> bool:
    """Whether a Link takes a Service of its cluster into a federated one."""
    return link in MEMBERS.selectors(db, remote)


@query
def mirrored_in(db: View, link: ObjectKey, namespace: str) -> tuple[ObjectKey, ...]:
    """The Services of one namespace that a Link mirrors."""
    gateway, flat = BY_GATEWAY.members(db, link), FLAT.members(db, link)
    some, more = _within(gateway, namespace), _within(flat, namespace)
    return tuple(sorted({*some, *more})) if some and more else some or more


@query
def members_in(db: View, link: ObjectKey, namespace: str) -> tuple[ObjectKey, ...]:
    """The Services of one namespace that a Link takes into federated ones."""
    return _within(MEMBERS.members(db, link), namespace)


@query
def namespaces_of(db: View, link: ObjectKey) -> tuple[str, ...]:
    """Every namespace that a Link takes Services from, sorted."""
    every = (BY_GATEWAY.members(db, link), FLAT.members(db, link), MEMBERS.members(db, link))
    return tuple(sorted({name for members in every for name in _namespaces(members)}))


def _within(members: tuple[ObjectKey, ...], namespace: str) -> tuple[ObjectKey, ...]:
    """A run of sorted keys: all are of one cluster."""
    if not members:
        return ()
    cluster = members[0].cluster
    begin = bisect_left(members, ObjectKey(cluster, namespace, ""))
    end = bisect_left(members, ObjectKey(cluster, f"{namespace}\0", ""))
    return members[begin:end]


def _namespaces(members: tuple[ObjectKey, ...]) -> Iterator[str]:
    """Distinct ones, by leaps: there may be 10,000 members in three namespaces."""
    at = 0
    while at < len(members):
        cluster, namespace, _ = members[at]
        yield namespace
        at = bisect_left(members, ObjectKey(cluster, f"{namespace}\0", ""), lo=at)


# -------------------------------------------------------------------------------------- names


def mirror_name(remote: ObjectKey) -> str:
    """What a Service of a linked cluster is called here."""
    return f"{remote.name}-{remote.cluster}"


@query
def claims(db: View, mirror: ObjectKey) -> tuple[Claim, ...]:
    """Who wants a name for its mirror, the oldest Link's first: the first has it.

    `a-b` of cluster `c` and `a` of cluster `b-c` want the same one.
    """
    found: list[Claim] = []
    for target in targets(db, mirror.cluster):
        name = mirror.name.removesuffix(f"-{target.cluster}")
        if name and name != mirror.name:
            remote = ObjectKey(target.cluster, mirror.namespace, name)
            how = mode(db, target.link, remote)
            if how is not None:
                found.append(Claim(target, remote, how))
    return tuple(found)


# --------------------------------------------------------------------------- what is here


def _made(row: Service) -> bool:
    return row.metadata.labels.get(MIRRORED) == "true"


def is_mirror(row: Service) -> bool:
    """Whether a Service stands for one of a linked cluster; labels say so, never its name."""
    labels = row.metadata.labels
    return _made(row) and bool(labels.get(MIRROR_CLUSTER)) and MIRROR_ROOT not in labels


def is_host_mirror(row: Service) -> bool:
    """Whether a Service stands for one host of a headless Service of a linked cluster."""
    return _made(row) and bool(row.metadata.labels.get(MIRROR_ROOT))


def is_federated(row: Service) -> bool:
    """Whether a Service stands for its members in several clusters."""
    labels = row.metadata.labels
    return _made(row) and MIRROR_CLUSTER not in labels and MIRROR_ROOT not in labels


Rule = Callable[[Service], bool]


def _placed(name: str, rule: Rule) -> Index[ObjectKey, Service, Place]:
    def extract(key: ObjectKey, row: Service) -> Iterable[Place]:
        return (place(key),) if rule(row) else ()

    return Index(name, SERVICES, extract)


def _root(key: ObjectKey, row: Service) -> Iterable[ObjectKey]:
    return (key._replace(name=row.metadata.labels[MIRROR_ROOT]),) if is_host_mirror(row) else ()


def _host(key: ObjectKey, row: EndpointSlice) -> Iterable[ObjectKey]:
    return (key._replace(name=each.hostname) for each in row.endpoints if each.hostname)


MIRRORS: Final = _placed("mirrors", is_mirror)
HOST_MIRRORS: Final = _placed("host_mirrors", is_host_mirror)
FEDERATIONS: Final = _placed("federations", is_federated)
LOCAL_MEMBERS: Final = _placed(
    "local_members", lambda row: row.metadata.labels.get(FEDERATED) == MEMBER
)
CONTESTED: Final = _placed(
    "contested", lambda row: any(one.type == NAME_CONDITION for one in row.status.conditions)
)
"""Each by namespace; the last: Services of people that say that members want their names."""

MIRRORS_BY_ROOT: Index[ObjectKey, Service, ObjectKey] = Index("mirrors_by_root", SERVICES, _root)
"""Mirrors of single hosts, by the mirror of their headless Service."""
SLICES_BY_HOST: Index[ObjectKey, EndpointSlice, ObjectKey] = Index("slices_by_host", SLICES, _host)
"""Slices that name a host; the key's name is the host's."""

GATEWAY_NAMES: Table[str, tuple[str, ...]] = Table("gateway_names")
"""Addresses that the name of a gateway leads to; no row: not asked yet. No store holds it."""


@query
def gateway_hosts(db: View, local: str) -> tuple[str, ...]:
    """The names among the gateways' addresses of all Links that count, sorted."""
    rows = (LINKS.get(db, target.link) for target in targets(db, local))
    parts = (part for row in rows if row for part in row.spec.gateway_address.split(","))
    named = {name for part in parts if (name := part.strip()) and canonical_ip(name) is None}
    return tuple(sorted(named)[:MOST_HOSTS])

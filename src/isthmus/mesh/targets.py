"""Targets: the endpoints of a Service's port as something to balance over, and who may answer.

One cell per Service and port, shared by every proxy. It does not change when endpoints become ready
or not: who may answer is known from everybody that the slices name.
"""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.engine import View, query
from isthmus.ir.endpoint import Endpoint, Mesh, Plain, Speaks
from isthmus.ir.names import Identity, Origin, Ref, TargetId
from isthmus.ir.target import Ejection, Target, Tls, Via
from isthmus.mesh.candidates import Behind
from isthmus.mesh.clusters import cluster, is_local
from isthmus.mesh.endpoints import Holder, holders
from isthmus.mesh.external import workload_endpoint
from isthmus.mesh.federation import named
from isthmus.mesh.mirrors import Mirrored, mirror_of, mirrored, own_name
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.pods import pod_endpoint
from isthmus.mesh.profiles import full_name
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.sets import all_sets
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICES, SLICES_BY_SERVICE
from isthmus.model.annotations import Accrual, AccrualMode, LoadBias, Problem, failure_accrual
from isthmus.model.annotations import load_bias as parse_load_bias
from isthmus.model.key import ObjectKey

HEADLESS: Final = "None"


THROUGH: Final = "gateway"
"""The variant of a target that is reached through its cluster's gateway."""
THROUGH_RAW: Final = "gateway-tcp"
"""The same for raw bytes, where they need a target of their own."""
FORWARDED: Final = "sni"
"""The variant of a target as its own cluster's gateway has it: mesh TLS passes untouched."""


class Answerers(msgspec.Struct, frozen=True):
    """Who may answer for a target.

    `native`: somebody is there, and all of them are behind our own sidecars, which prove `natives`.
    `linkerd`: some are behind a linkerd2-proxy. `opaque_linkerd`: some of those can only be told
    raw bytes through its transport header. `gateways`: some lead to another cluster, and must be
    told a name. `homes` are the clusters that they are in.
    """

    peers: frozenset[Identity] = frozenset()
    natives: frozenset[Identity] = frozenset()
    native: bool = False
    linkerd: bool = False
    opaque_linkerd: bool = False
    gateways: bool = False
    homes: frozenset[str] = frozenset()


def target_id(service: ObjectKey, port: int, variant: str = "", subset: str = "") -> TargetId:
    """The name of a Service's port as a target."""
    return TargetId(service.cluster, service.namespace, service.name, port, subset, variant)


@query
def target_named(db: View, key: str) -> TargetId | None:
    """The target with this key, if it is a port that its Service declares."""
    found = read_key(key)
    if found is None or found.port is None or not _there(db, found):
        return None
    return found if found.key(trust_domain(db, found.cluster)) == key else None


def _there(db: View, name: TargetId) -> bool:
    service, port = service_of(name), name.port or 0
    if through_gateway(name):
        mirror = mirror_of(db, service, name.subset)
        meant = Mirrored(service, name.subset)
        return mirrored(db, mirror) == meant and declared(db, mirror, port)
    return declared(db, service, port) and (not name.subset or _is_part(db, service, name))


def _is_part(db: View, service: ObjectKey, name: TargetId) -> bool:
    """Whether there is such a part: of a federated Service, or to gateways one host of another."""
    of_host = name.variant == FORWARDED and headless(db, service)
    return of_host or named(db, service, name.subset) is not None


def through_gateway(name: TargetId) -> bool:
    """Whether a target is reached through its cluster's gateway."""
    return name.variant in (THROUGH, THROUGH_RAW)


def declared(db: View, service: ObjectKey, port: int) -> bool:
    """Whether a Service has a port."""
    return port_state(db, service, port) is PortState.DECLARED


def read_key(key: str) -> TargetId | None:
    """The opposite of `TargetId.key`, as far as it can be read without knowing the mesh.

    Of all names in it only a cluster's may have dots.
    """
    variant, _, sni = key.rpartition("~")
    front, dot, _ = sni.partition(".internal.")
    match front.split(".") if dot else ():
        case [port, service, namespace, *home] if home and _number(port) is not None:
            return TargetId(".".join(home), namespace, service, _number(port), variant=variant)
        case [subset, port, service, namespace, *home] if home:
            return TargetId(
                ".".join(home), namespace, service, _number(port), subset, variant
            )  # fmt: skip
        case _:
            return None


def _number(label: str) -> int | None:
    """The port of `p80`; None for anything else."""
    digits = label[1:]
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= 5
    return int(digits) if label.startswith("p") and fits else None


def service_of(target: TargetId) -> ObjectKey:
    """The Service that a target is a port of."""
    return ObjectKey(target.cluster, target.namespace, target.service)


def service_ref(service: ObjectKey) -> Origin:
    """A Service as what a part of a configuration comes from."""
    return Origin(Ref(service.cluster, "", "Service", service.namespace, service.name))


@query
def trust_domain(db: View, name: str) -> str:
    """The trust domain of a cluster; the local one's where it is not known."""
    home = cluster(db, name)
    known = home.trust_domain if home is not None else ""
    return known or settings(db).trust_domain


@query
def answerers(db: View, service: ObjectKey, port: int) -> Answerers:
    """Who may answer for a Service's port: everybody that its slices name, ready or not."""
    return answerers_of(db, service, port, "")


@query
def answerers_of(db: View, service: ObjectKey, port: int, subset: str) -> Answerers:
    """Who may answer for a part of a federated Service, or for all of it ("")."""
    parts = all_sets(db, service, port, subset)
    named = [
        holder
        for part in parts
        for name in SLICES_BY_SERVICE.get(db, part.service)
        for holder in holders(db, name, part.service, port)
    ]
    found = [one for holder in named if (one := held(db, holder)) is not None]
    natives = [one for one in found if by_native(one)]
    return Answerers(
        peers=frozenset(one.identity for one in found if one.identity is not None),
        natives=frozenset(one.identity for one in natives if one.identity is not None),
        native=bool(found) and len(natives) == len(found),
        linkerd=any(by_linkerd(one) for one in found),
        opaque_linkerd=any(by_linkerd(one) and one.speaks is Speaks.OPAQUE for one in found),
        gateways=any(holder.gateway for holder in named),
        homes=frozenset(part.service.cluster for part in parts),
    )


def by_native(one: Endpoint) -> bool:
    """Whether one of our own sidecars answers."""
    return isinstance(one.reach, Mesh) and one.reach.native


def by_linkerd(one: Endpoint) -> bool:
    """Whether a linkerd2-proxy answers."""
    return one.meshed and not by_native(one)


def held(db: View, holder: Holder) -> Endpoint | None:
    """The endpoint of whom a slice names."""
    match holder.behind:
        case Behind.POD:
            return pod_endpoint(db, holder.target, holder.ip, holder.port)
        case Behind.WORKLOAD:
            return workload_endpoint(db, holder.target, holder.ip, holder.port)
        case Behind.BARE:
            return Endpoint(holder.ip, holder.port, reach=Plain())


@query
def target(db: View, name: TargetId) -> Target:
    """How to balance over a Service's port and whom to believe; nobody answers an unknown one."""
    if through_gateway(name):
        return _behind_gateway(db, name)
    service, port = service_of(name), name.port or 0
    who = answerers_of(db, service, port, name.subset)
    domain = trust_domain(db, name.cluster)
    front = f"{name.subset}." if name.subset else ""
    return Target(
        id=name,
        peers=who.peers,
        trust_domain=domain,
        tls=Tls.MESH if who.peers else Tls.NONE,
        authority=f"{front}{full_name(db, service)}:{port}",
        ejection=ejection(db, service),
        http2=who.native and settings(db).h2_upgrade,
        linkerd=who.linkerd,
        native=who.native,
        foreign=any(trust_domain(db, home) != domain for home in who.homes),
        remote=any(not is_local(db, home) for home in who.homes),
    )


def _behind_gateway(db: View, name: TargetId) -> Target:
    """A Service of a linked cluster behind its gateway, which sees neither who asks nor what.

    Whoever answers proves its own identity; if nobody is known, nobody may (decision 16). Only our
    own sidecars understand the server name by which the gateway tells services apart.
    """
    service, port = service_of(name), name.port or 0
    who, mirror = answerers(db, service, port), mirror_of(db, service, name.subset)
    domain = trust_domain(db, name.cluster)
    home = own_name(db, name.cluster)
    asked = TargetId(home, name.namespace, name.service, port, name.subset)
    return Target(
        id=name,
        peers=who.natives,
        trust_domain=domain,
        tls=Tls.MESH,
        via=Via.REMOTE_GATEWAY,
        authority=f"{full_name(db, mirror)}:{port}",
        ejection=ejection(db, mirror),
        http2=settings(db).h2_upgrade,
        server_name=asked.sni(domain),
        remote=True,
    )


@query
def ejection(db: View, service: ObjectKey) -> Ejection | None:
    """When an endpoint rests after failures, as the Service's annotations ask for."""
    found = accrual(db, service)
    if found is None:
        return None
    jitter = round(found.jitter * 1000)
    return Ejection(found.max_failures, found.min_penalty, found.max_penalty, jitter)


@query
def accrual(db: View, service: ObjectKey) -> Accrual | None:
    """The failure accrual that is asked for and understood."""
    row = SERVICES.get(db, service)
    found = failure_accrual(row.metadata.annotations) if row is not None else None
    return None if isinstance(found, Problem) else found


@query
def accrues_by_rate(db: View, service: ObjectKey) -> bool:
    """Whether the success rate is to count as well (`unified`)."""
    found = accrual(db, service)
    return found is not None and found.mode is AccrualMode.UNIFIED


@query
def load_bias(db: View, service: ObjectKey) -> LoadBias | None:
    """The bias against failing endpoints that is asked for and understood."""
    row = SERVICES.get(db, service)
    found = parse_load_bias(row.metadata.annotations) if row is not None else None
    return None if isinstance(found, Problem) else found


@query
def vips(db: View, service: ObjectKey) -> tuple[str, ...]:
    """The ClusterIPs of a Service, canonical; none for headless ones and mere names."""
    row = SERVICES.get(db, service)
    if row is None or row.spec.type == "ExternalName":
        return ()
    listed = row.spec.cluster_ips or (row.spec.cluster_ip,)
    return tuple(ip for one in listed if one != HEADLESS and (ip := canonical_ip(one)) is not None)


@query
def headless(db: View, service: ObjectKey) -> bool:
    """Whether clients of a Service dial its endpoints by their own addresses."""
    row = SERVICES.get(db, service)
    return row is not None and row.spec.cluster_ip == HEADLESS

"""Who sends: where from, what it can prove, and which proxy stands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from ipaddress import ip_network

import msgspec

from isthmus.app.explain.question import From
from isthmus.app.explain.said import identity_words, ref_words
from isthmus.engine import View
from isthmus.ir.identity import account, parse_identity
from isthmus.ir.names import Identity, Ref
from isthmus.mesh.census import Place
from isthmus.mesh.gateways import is_gateway
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.pods import Life, pod_facts, pod_ips, pod_state
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import (
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    PODS_BY_CONTROLLER,
    REPLICASETS,
    REPLICASETS_BY_CONTROLLER,
)
from isthmus.mesh.workloads import external_ref, pod_ref, workload_identity
from isthmus.model.key import ObjectKey


class Beside(StrEnum):
    """The proxy of a client. ABROAD: that of another cluster, which decides where it goes."""

    ENVOY = "Envoy"
    LINKERD = "linkerd2-proxy"
    NOTHING = "no proxy"
    ABROAD = "another cluster"


class Client(msgspec.Struct, frozen=True):
    """A client. `note` says what of it is assumed."""

    where: Place
    workload: Ref | None
    address: str
    identity: Identity | None
    beside: Beside
    note: str = ""

    @property
    def words(self) -> str:
        """`10.1.0.4, as cart.shop..., behind Envoy`."""
        proved = f", as {identity_words(self.identity)}" if self.identity is not None else ""
        stands = f", behind {self.beside}" if self.beside in _PROXIES else f", {self.beside}"
        return f"{self.address}{proved}{stands}{f'; {self.note}' if self.note else ''}"


_PROXIES = (Beside.ENVOY, Beside.LINKERD)


class NoSuch(Exception):
    """A part of the question is about something that is not there."""


def client(db: View, said: From) -> Client:
    """The client that is meant.

    Raises:
        NoSuch: there is none.
    """
    key = ObjectKey(settings(db).cluster, said.namespace, said.name)
    match said.kind:
        case "Identity":
            return _abroad(db, said)
        case "ServiceAccount":
            return _account(db, said, key)
        case "Deployment":
            return _pod(db, _of_deployment(db, key), said.address)
        case "ExternalWorkload":
            return _outside(db, key, said.address)
        case _:
            return _pod(db, key, said.address)


def _abroad(db: View, said: From) -> Client:
    identity = parse_identity(said.name)
    if identity is None:
        raise NoSuch(f"{said.name!r} is no identity: neither SPIFFE nor a DNS name")
    address, note = _address(db, said.address)
    return Client(Place(settings(db).cluster, ""), None, address, identity, Beside.ABROAD, note)


def _account(db: View, said: From, key: ObjectKey) -> Client:
    """Anybody with the account: the account need not be there, the namespace must."""
    here = settings(db)
    if NAMESPACES.get(db, ObjectKey(here.cluster, "", said.namespace)) is None:
        raise NoSuch(f"there is no namespace {said.namespace}")
    identity = account(
        key.name,
        key.namespace,
        control_plane=here.control_plane_namespace,
        trust_domain=here.trust_domain,
    )
    address, note = _address(db, said.address)
    where = Place(key.cluster, key.namespace)
    note = "; ".join(each for each in ("the proxy is taken to be Envoy", note) if each)
    return Client(where, None, address, identity, Beside.ENVOY, note)


def _address(db: View, said: str) -> tuple[str, str]:
    """An address that is of the cluster, where nobody said one."""
    if said:
        return canonical_ip(said) or said, ""
    inside = settings(db).cluster_networks
    taken = str(next(ip_network(inside[0], strict=False).hosts())) if inside else "10.0.0.1"
    return taken, "the address is not known, and taken to be one of the cluster's"


def _of_deployment(db: View, key: ObjectKey) -> ObjectKey:
    row = DEPLOYMENTS.get(db, key)
    if row is None:
        raise NoSuch(f"there is no Deployment {key.namespace}/{key.name}")
    found = sorted(pod for pod in _pods(db, row.metadata.uid) if _runs(db, pod))
    if not found:
        raise NoSuch(f"no pod of the Deployment {key.namespace}/{key.name} runs")
    return found[0]


def _pods(db: View, uid: str) -> Iterator[ObjectKey]:
    for replicas in REPLICASETS_BY_CONTROLLER.get(db, uid):
        row = REPLICASETS.get(db, replicas)
        if row is not None:
            yield from PODS_BY_CONTROLLER.get(db, row.metadata.uid)


def _runs(db: View, pod: ObjectKey) -> bool:
    state = pod_state(db, pod)
    return state is not None and state.life is Life.LIVE and bool(pod_ips(db, pod))


def _pod(db: View, key: ObjectKey, address: str) -> Client:
    if PODS.get(db, key) is None:
        raise NoSuch(f"there is no pod {key.namespace}/{key.name}")
    if is_gateway(db, key):
        raise NoSuch(f"the pod {key.namespace}/{key.name} is a gateway: it only forwards")
    ips, facts = pod_ips(db, key), pod_facts(db, key)
    if not ips and not address:
        raise NoSuch(f"the pod {key.namespace}/{key.name} has no address yet")
    beside = Beside.NOTHING
    if facts is not None and facts.proxy is not None:
        beside = Beside.ENVOY if facts.proxy.envoy else Beside.LINKERD
    where, ref = Place(key.cluster, key.namespace), pod_ref(key)
    identity = workload_identity(db, ref)
    return Client(where, ref, address or canonical_ip(ips[0]) or ips[0], identity, beside)


def _outside(db: View, key: ObjectKey, address: str) -> Client:
    row = EXTERNAL_WORKLOADS.get(db, key)
    if row is None:
        raise NoSuch(f"there is no ExternalWorkload {key.namespace}/{key.name}")
    ref, listed = external_ref(key), [each.ip for each in row.spec.workload_ips]
    if not listed and not address:
        raise NoSuch(f"the ExternalWorkload {key.namespace}/{key.name} has no address")
    where, identity = Place(key.cluster, key.namespace), workload_identity(db, ref)
    return Client(where, ref, address or listed[0], identity, Beside.ENVOY)


def named(who: Client, said: From) -> str:
    """The client's object, as the first line shows it."""
    if who.workload is not None:
        return ref_words(who.workload)
    return "identity" if said.kind == "Identity" else f"{said.kind} {said.namespace}/{said.name}"

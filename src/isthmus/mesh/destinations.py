"""Where rules send to: backend references as backends, invalid ones as refusals with their share.

A reference without a namespace means the route's own (Gateway API). No grant is asked for: routes
of a mesh only lead to what their clients could reach anyway (decision 19).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, lcm
from typing import Final, NamedTuple, cast

import msgspec

from isthmus.engine import View, query
from isthmus.ir.names import Default, Origin, Ref, Source
from isthmus.ir.outbound import Spread
from isthmus.ir.rules import BackendFilter, Fail
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, To
from isthmus.mesh.backends import service_backends
from isthmus.mesh.egress import EGRESS_NETWORKS
from isthmus.mesh.matches import rule_filters
from isthmus.mesh.names import Authority, ServiceName, parse_authority
from isthmus.mesh.profiles import service_profile, used_profile
from isthmus.mesh.routes import EGRESS_NETWORK, POLICY_API, SERVICE, key_of
from isthmus.mesh.services import PortState, port_state
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICES
from isthmus.model.gateway import BackendRef
from isthmus.model.gateway.views import MirrorRef
from isthmus.model.key import ObjectKey

INVALID: Final = Default("invalid")
_LARGEST: Final = 2**31
"""What weights of one rule may add up to."""


class Home(NamedTuple):
    """Where references stand: the route's namespace, the parent, and the port asked for."""

    namespace: str
    parent: Ref
    port: int


class Sending(NamedTuple):
    """Backends, and how one is chosen."""

    backends: tuple[Backend, ...]
    spread: Spread


def destinations(db: View, refs: Sequence[BackendRef], home: Home) -> Sending:
    """Where a rule sends to; without references, to where its parent's traffic goes by default."""
    if not refs:
        return by_default(db, home.parent, home.port)
    parts = [_parts(db, ref, home) for ref in refs]
    return Sending(_scaled(parts, [ref.weight for ref in refs]), Spread.WEIGHTED)


# --------------------------------------------------------------------------------- defaults


@query
def by_default(db: View, parent: Ref, port: int) -> Sending:
    """Where traffic for a parent's port goes by itself: to the Service, or where it was going."""
    if parent.kind == EGRESS_NETWORK:
        return Sending((OriginalDst(Origin(parent, port=port)),), Spread.FIRST)
    service = key_of(parent)
    shares = _shares(db, service, port)
    if shares:
        return Sending(
            _scaled([part for part, _ in shares], [weight for _, weight in shares]), Spread.WEIGHTED
        )
    own = service_backends(db, service, port)
    return Sending(own, Spread.FIRST if len(own) == 1 else Spread.WEIGHTED)


def _shares(db: View, service: ObjectKey, port: int) -> list[tuple[tuple[Backend, ...], int]]:
    """Where TrafficSplits or the ServiceProfile of its namespace send a Service's traffic."""
    said = service_profile(db, service, port, used_profile(db, service, ""))
    domain = settings(db).cluster_domain
    found: list[tuple[tuple[Backend, ...], int]] = []
    for override in said.overrides:
        host, _, asked = override.authority.rpartition(":")
        match parse_authority(f"{host.removesuffix('.')}:{asked}", domain):
            case Authority(ServiceName(namespace, name), at):
                key = ObjectKey(service.cluster, namespace, name)
                found.append((_service(db, key, at), override.weight))
            case _:
                message = f"{override.authority} is no Service"
                found.append(((Refuse(500, message, INVALID),), override.weight))
    return found


# ------------------------------------------------------------------------------- references


def _parts(db: View, ref: BackendRef, home: Home) -> tuple[Backend, ...]:
    """What one reference leads to, by its own weights."""
    bad = next((each.type for each in ref.filters if each.type == "RequestMirror"), "")
    filters = rule_filters(ref.filters)
    stopped = next((each.message for each in filters if isinstance(each, Fail)), "")
    if bad or stopped:
        said = stopped or f"unsupported filter {bad}"
        return (Refuse(500, f"unsupported backend filter: {said}", INVALID),)
    found = _referred(db, ref, home)
    if not filters:
        return found
    own = cast("tuple[BackendFilter, ...]", filters)
    return tuple(each if isinstance(each, Refuse) else _filtered(each, own) for each in found)


def _filtered(one: To | OriginalDst, filters: tuple[BackendFilter, ...]) -> Backend:
    return msgspec.structs.replace(one, filters=filters)


def _referred(db: View, ref: BackendRef, home: Home) -> tuple[Backend, ...]:
    namespace = ref.namespace or home.namespace
    key = ObjectKey(home.parent.cluster, namespace, ref.name)
    match reference_kind(ref.group, ref.kind):
        case "Service":
            if not ref.port:
                said = f"missing port for backend Service {ref.name}"
                return (Refuse(500, said, INVALID),)
            return _service(db, key, ref.port)
        case "EgressNetwork":
            return (_network(db, key, ref.port, home),)
        case _:
            said = f"unsupported backend type {ref.group} {ref.kind}".replace("  ", " ")
            return (Refuse(500, said, INVALID),)


def reference_kind(group: str, kind: str) -> str:
    """Service, EgressNetwork, or "" for anything else. Case does not count."""
    match group.lower(), kind.lower():
        case (("" | "core"), ("" | "service")):
            return SERVICE
        case (where, "egressnetwork") if where == POLICY_API:
            return EGRESS_NETWORK
        case _:
            return ""


def _service(db: View, service: ObjectKey, port: int) -> tuple[Backend, ...]:
    ref = Ref(service.cluster, "", SERVICE, service.namespace, service.name)
    source = Origin(ref, port=port)
    name = f"{service.name}.{service.namespace}"
    match port_state(db, service, port):
        case PortState.DECLARED:
            return service_backends(db, service, port)
        case PortState.UNDECLARED:
            return (Refuse(500, f"Service {name} has no port {port}", source),)
        case PortState.ABSENT:
            there = SERVICES.get(db, service) is not None
            said = f"Service {name} is only a name" if there else f"Service not found {name}"
            return (Refuse(500, said, source),)


def _network(db: View, network: ObjectKey, port: int, home: Home) -> Backend:
    ref = Ref(network.cluster, POLICY_API, EGRESS_NETWORK, network.namespace, network.name)
    source: Source = Origin(ref, port=port or home.port)
    if home.parent.kind != EGRESS_NETWORK:
        return Refuse(500, "EgressNetwork backends attach to EgressNetwork parents only", source)
    if EGRESS_NETWORKS.get(db, network) is None:
        return Refuse(500, f"EgressNetwork not found {network.name}.{network.namespace}", source)
    if ref != home.parent:
        said = "a route to an EgressNetwork needs the same EgressNetwork as its parent"
        return Refuse(500, said, source)
    return OriginalDst(source)


def mirror_target(db: View, ref: MirrorRef, home: Home) -> Target | None:
    """Where copies go; None if there is no such port of a Service."""
    if reference_kind(ref.group, ref.kind) != SERVICE:
        return None
    key = ObjectKey(home.parent.cluster, ref.namespace or home.namespace, ref.name)
    if port_state(db, key, ref.port) is not PortState.DECLARED:
        return None
    return service_backends(db, key, ref.port)[0].target


# ---------------------------------------------------------------------------------- weights


def _scaled(parts: Sequence[tuple[Backend, ...]], weights: Iterable[int]) -> tuple[Backend, ...]:
    """All of the parts, each part with its weight, within it shared as it says itself."""
    sums = [sum(each.weight for each in part) or 1 for part in parts]
    common = lcm(*sums)
    shares = [
        [max(weight, 0) * each.weight * (common // whole) for each in part]
        for part, weight, whole in zip(parts, weights, sums, strict=True)
    ]
    small = _reduced(shares)
    return tuple(
        each if each.weight == share else msgspec.structs.replace(each, weight=share)
        for part, mine in zip(parts, small, strict=True)
        for each, share in zip(part, mine, strict=True)
    )


def _reduced(shares: list[list[int]]) -> list[list[int]]:
    """Weights that no wire is too small for, in the same proportions.

    Weights that were written as whole numbers for plain Services stay as they were written.
    """
    flat = [each for mine in shares for each in mine]
    if sum(flat) <= _LARGEST:
        return shares
    divisor = gcd(*flat) or 1
    divisor = max(divisor, -(-sum(flat) // _LARGEST))
    return [[max(each // divisor, 1) if each else 0 for each in mine] for mine in shares]

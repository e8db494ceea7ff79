"""Whether a policy has anything to decide: what becomes conditions on objects that do nothing.

Policies are enforced where requests arrive. One for workloads of another cluster, or for a route
that no Server takes, is well written and without effect; whoever wrote it should be told.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.mesh.authentication import NAMESPACE
from isthmus.mesh.inbound_routes import refused_by_server, route_age
from isthmus.mesh.policy_tables import (
    AUTHORIZATION_POLICIES,
    AUTHORIZED_SERVERS,
    POLICY_GROUP,
    SERVER,
    SERVER_AUTHORIZATIONS,
    SERVERS,
    PolicyTarget,
    kind_name,
    policy_target,
)
from isthmus.mesh.routes import BY_KIND, GATEWAY_API, parents
from isthmus.mesh.routes import SERVER as SERVER_KIND
from isthmus.mesh.servers import covered_workloads, described_ports
from isthmus.mesh.tables import place
from isthmus.model.key import ObjectKey


class Standing(StrEnum):
    """What a policy decides.

    ELSEWHERE: its Servers select no workload of this cluster. SHADOWED: older Servers describe all
    the ports of its own. NOT_ON_A_SERVER: its route is not taken by a Server.
    """

    IN_FORCE = "in-force"
    NO_TARGET = "no-target"
    NOT_ON_A_SERVER = "not-on-a-server"
    ELSEWHERE = "elsewhere"
    SHADOWED = "shadowed"


_KINDS: Final = {
    kind_name(group, kind): (group, kind)
    for group, kind in (
        (POLICY_GROUP, "HTTPRoute"),
        (GATEWAY_API, "HTTPRoute"),
        (GATEWAY_API, "GRPCRoute"),
    )
}


@query
def policy_standing(db: View, policy: ObjectKey) -> Standing | None:
    """What an AuthorizationPolicy decides; None if there is none."""
    row = AUTHORIZATION_POLICIES.get(db, policy)
    if row is None:
        return None
    target = policy_target(policy, row.spec.target_ref)
    if target.what == SERVER:
        return server_standing(db, _key(target))
    if target.what == NAMESPACE:
        own = target.name == policy.namespace
        return Standing.IN_FORCE if own else Standing.NO_TARGET
    return _route_standing(db, target)


@query
def authorization_standing(db: View, authorization: ObjectKey) -> Standing | None:
    """What a ServerAuthorization decides: the best of what it does for each of its Servers."""
    row = SERVER_AUTHORIZATIONS.get(db, authorization)
    if row is None:
        return None
    name = row.spec.server.name
    servers = AUTHORIZED_SERVERS.members(db, authorization)
    if name:
        servers = (authorization._replace(name=name),)
    return _best([server_standing(db, one) for one in servers])


@query
def server_standing(db: View, server: ObjectKey) -> Standing:
    """Whether a Server describes a port of this cluster."""
    if SERVERS.get(db, server) is None:
        return Standing.NO_TARGET
    if not covered_workloads(db, server):
        return Standing.ELSEWHERE
    return Standing.IN_FORCE if described_ports(db, server) else Standing.SHADOWED


def _route_standing(db: View, target: PolicyTarget) -> Standing:
    found = _KINDS.get(target.what)
    if found is None or BY_KIND[found].table.get(db, _key(target)) is None:
        return Standing.NO_TARGET
    taken = _taking(db, target)
    return _best([server_standing(db, one) for one in taken]) if taken else Standing.NOT_ON_A_SERVER


def _taking(db: View, target: PolicyTarget) -> tuple[ObjectKey, ...]:
    """The Servers that take a route, which is a policy's target."""
    found = _KINDS.get(target.what)
    if found is None:
        return ()
    route = Ref(target.cluster, *found, target.namespace, target.name)
    if route_age(db, route) is None:
        return ()
    return tuple(
        ObjectKey(one.cluster, one.namespace, one.name)
        for one in parents(db, route)
        if (one.group, one.kind) == (POLICY_GROUP, SERVER_KIND)
        and not refused_by_server(db, route, one)
    )


@query
def authorized_servers(db: View, policy: ObjectKey) -> tuple[ObjectKey, ...]:
    """The Servers at which an AuthorizationPolicy has a say, whether or not they are there."""
    row = AUTHORIZATION_POLICIES.get(db, policy)
    if row is None:
        return ()
    target = policy_target(policy, row.spec.target_ref)
    if target.what == SERVER:
        return (_key(target),)
    if target.what == NAMESPACE:
        own = target.name == policy.namespace
        return SERVERS.names(db, place(policy)) if own else ()
    return _taking(db, target)


def _best(some: list[Standing]) -> Standing:
    ranked = (Standing.IN_FORCE, Standing.SHADOWED, Standing.ELSEWHERE)
    return next((one for one in ranked if one in some), Standing.NO_TARGET)


def _key(target: PolicyTarget) -> ObjectKey:
    return ObjectKey(target.cluster, target.namespace, target.name)

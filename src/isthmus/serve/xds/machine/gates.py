"""Make before break: what may be sent, and what may be taken away.

A route or listener waits until the proxy has accepted every cluster it sends to, since a cluster
that still warms answers 503. Envoy accepts a cluster response when all clusters in it are warm. A
cluster goes after every route and listener that the proxy may be using has left it.

Gates are for proxies that take all clusters unasked. One that asks for clusters by name learns the
names from its routes, and sees to the order itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from isthmus.serve.xds.contract import Resource
from isthmus.serve.xds.machine.state import Held, TypeState
from isthmus.serve.xds.machine.types import CLUSTER, LISTENER, ROUTES
from isthmus.serve.xds.machine.values import UNKNOWN

States = Mapping[str, TypeState]
True_ = Callable[[str], Resource | None]


def passes(resource: Resource, states: States, true: True_) -> bool:
    """Whether every cluster that the resource sends to is there, or never will be.

    `true` says what a cluster should be. One that is not in sight, or that the proxy rejected, is
    not waited for: the other clusters of a route need not suffer.
    """
    clusters = states.get(CLUSTER)
    if clusters is None or not clusters.wildcard:
        return True
    if resource.clusters is None:
        return clusters.flight is None and not clusters.look and not clusters.suspects
    return all(_there(name, clusters, true) for name in resource.clusters)


def _there(name: str, clusters: TypeState, true: True_) -> bool:
    if clusters.accepted(name):
        return True
    cluster = true(name)
    if cluster is None or cluster is UNKNOWN:
        return True
    rejected = clusters.rejected.get(name)
    return rejected is not None and rejected.version == cluster.version


def removable(names: Iterable[str], states: States) -> set[str]:
    """Those of the clusters that nothing in use can refer to. Unknown content may refer to all."""
    leaving = set(names)
    used: set[str] = set()
    for url in (LISTENER, ROUTES):
        state = states.get(url)
        for held in state.in_use() if state is not None else ():
            if (several := _clusters(held)) is None:
                return set()
            used.update(several)
    return set() if _add_members(used, states[CLUSTER], leaving) else leaving - used


def _add_members(used: set[str], clusters: TypeState, leaving: set[str]) -> bool:
    """Add what aggregates in use refer to; True if that cannot be known."""
    fresh = [name for name in clusters.held if name not in leaving or name in used]
    seen = set(fresh)
    while fresh:
        name = fresh.pop()
        for held in (clusters.held[name], *clusters.maybe.get(name, ())):
            if (several := _clusters(held)) is None:
                return True
            used.update(several)
            more = [one for one in several if one in clusters.held and one not in seen]
            seen.update(more)
            fresh.extend(more)
    return False


def _clusters(held: Held) -> tuple[str, ...] | None:
    """What a resource refers to. Of a bare version, that is not known; "" is in `maybe` as well."""
    if isinstance(held, str):
        return None if held else ()
    return held.clusters

"""What writes objects back: namespaces, tokens, garbage, slices, deployments, mirrors and so on.

What it is: one small shell (`reconcile`) that carries out plans, and a pure query per controller
that makes them: the difference between what should be and what is. And the admissions that hold
what must be true in the very transaction of a write. What it is not: it runs no pods, and remembers
nothing between two looks.

Its words:
    plan       a tuple of steps; empty when all is well
    step       an intended write as a value: Create, Update, Delete; or Wait, for a moment
    duty       one key of one controller, attended whenever its plan has steps
    claim      what an owner controls: adopted by selector, released when it no longer matches
    moment     a second that a plan waits for; the timekeeper tells the tables when it has passed

`build` makes the controllers of one cluster, `admissions` the rules for `store.Objects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from isthmus.aio import Clock, Log
from isthmus.controllers import (
    carried,
    definitions,
    deployments,
    endpoints,
    external,
    federated,
    garbage,
    linkstatus,
    mirror,
    mirroring,
    mirrorspaces,
    namespaces,
    policy_status,
    rejections,
    replicasets,
    reports,
    roles,
    routes_status,
    service_status,
    serviceprofiles,
    slices,
    statefulsets,
    tokens,
)
from isthmus.controllers.addresses import ClusterAddresses
from isthmus.controllers.execute import Executor, Kinds, Sign
from isthmus.controllers.families import Network
from isthmus.controllers.lives import NamespaceLives
from isthmus.controllers.nodeports import NodePorts
from isthmus.controllers.reconcile import Board, Controller, Means, Reconciler
from isthmus.controllers.settings import SETTINGS, Dialect, Settings
from isthmus.controllers.suspicions import Suspicions
from isthmus.controllers.time import Commit, Timekeeper
from isthmus.engine import Put
from isthmus.store import Store
from isthmus.store.objects import Admission, Writer

__all__ = [
    "CONTROLLERS",
    "Controller",
    "Dialect",
    "Reconciler",
    "Settings",
    "Wiring",
    "admissions",
    "build",
]

CONTROLLERS: tuple[Controller, ...] = (
    Controller("default-namespaces", namespaces.default_keys, namespaces.defaults),
    Controller("default-roles", roles.default_keys, roles.defaults),
    Controller("clusterrole-aggregation", roles.keys, roles.plan),
    Controller("service-account-tokens", tokens.keys, tokens.plan),
    Controller("namespaces", namespaces.keys, namespaces.plan),
    Controller("definitions", definitions.keys, definitions.plan),
    Controller("garbage", garbage.keys, garbage.plan),
    Controller("deployments", deployments.keys, deployments.plan),
    Controller("replicasets", replicasets.keys, replicasets.plan),
    Controller("statefulsets", statefulsets.keys, statefulsets.plan),
    Controller("endpointslices", slices.keys, slices.plan),
    Controller("external-workloads", external.keys, external.plan),
    Controller("endpoints", endpoints.keys, endpoints.plan),
    Controller("endpointslice-mirroring", mirroring.keys, mirroring.plan),
    Controller("proxy-rejections", rejections.keys, rejections.plan),
    Controller(reports.MIRRORS, mirror.keys, mirror.plan),
    Controller(reports.FEDERATED, federated.keys, federated.plan),
    Controller("link-status", linkstatus.keys, linkstatus.plan, rest=linkstatus.REST),
    Controller("mirrored-namespaces", mirrorspaces.keys, mirrorspaces.plan),
    Controller("serviceprofile-status", serviceprofiles.keys, serviceprofiles.plan),
    Controller("route-status", routes_status.keys, routes_status.plan, rest=routes_status.REST),
    Controller("policy-status", policy_status.keys, policy_status.plan, rest=policy_status.REST),
    Controller("carried-policies", carried.keys, carried.plan),
    Controller("service-status", service_status.keys, service_status.plan),
)
"""Every controller of a cluster whose objects live in our own store."""


def admissions(store: Store, service_networks: Sequence[Network]) -> tuple[Admission, ...]:
    """The admissions of this room, in order. `service_networks`: --service-cidr, one per family."""
    return (
        NamespaceLives(store),
        definitions.DefinitionLives(store),
        ClusterAddresses(store, service_networks),
        NodePorts(store),
        Suspicions(store),
    )


class Wiring(NamedTuple):
    """What the controllers are connected to.

    `commit` is the database's: settings and the clock are rows that no store holds. `kinds` finds
    the kind of a store key's resource part (`Registry.by_key_resource`); `sign` makes the tokens
    that are kept in Secrets.
    """

    board: Board
    commit: Commit
    objects: Writer
    kinds: Kinds
    sign: Sign
    clock: Clock
    random: Random
    log: Log


def build(cluster: str, settings: Settings, wiring: Wiring) -> Reconciler:
    """All controllers of one cluster; `await run()` them."""
    wiring.commit([Put(SETTINGS, cluster, settings)])
    return Reconciler(
        CONTROLLERS,
        cluster,
        wiring.board,
        Executor(wiring.objects, wiring.kinds, wiring.clock, wiring.sign),
        Timekeeper(wiring.commit, wiring.clock),
        Means(wiring.clock, wiring.random, wiring.log),
        wiring.commit,
    )

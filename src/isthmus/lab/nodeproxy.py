"""The Envoy of a cluster's nodes: Services' addresses for pods without a sidecar.

It runs in the router's namespace, where the nodes' addresses are and all traffic of pods passes,
with the certificate of a host: its agent joins for the cluster's first node, by an invitation of
its own each time a certificate is due.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from isthmus.agent import Place, Seat, Workload
from isthmus.aio import Clock, Log
from isthmus.ca import Invitation, Realm, join
from isthmus.errors import IsthmusError
from isthmus.lab.addressing import ClusterAt
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.api import Api

AGAIN = 1.0
"""Seconds before one that did not start is started again."""


class NodeProxy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the place of a node's proxy is made of."""

    at: ClusterAt
    realm: Realm
    inside: Namespace
    api: Api
    log: Path
    clock: Clock

    @property
    def name(self) -> str:
        """Of the node it stands for."""
        return self.at.nodes[0].name

    def place(self, folder: Path) -> Place:
        """Where it lives; `folder` is in memory and its alone."""
        at = self.at
        return Place(
            seat=Seat(
                cluster=at.name, namespace="", name=self.name, account="",
                labels={"node": self.name},
            ),
            ip=str(at.pod_gateway),
            namespace=self.inside,
            folder=folder,
            log=self.log,
            token=self.invite,
            identity=self.realm.host_uri(self.name),
            redirect=False,
            serves=(str(at.cluster.service_cidr),),
            spares=(str(at.api_ip), str(at.dns_ip)),
        )  # fmt: skip

    async def invite(self) -> bytes:
        """A fresh join token for the node, as `isthmus agent token` makes them."""
        namespace = self.realm.control_plane_namespace
        uri = self.realm.host_uri(self.name)
        made = Invitation.make(uri, "lab", self.realm.server_name, ())
        expires = self.clock.time() + join.LIFETIME.total_seconds()
        kept = join.document(made, self.name, namespace, expires)
        await self.api.create(f"/api/v1/namespaces/{namespace}/secrets", kept)
        return made.token.encode()


async def keep(workload: Workload, clock: Clock, log: Log) -> None:
    """Start it, until it runs; it is the agent's from then on."""
    while True:
        try:
            await workload.start()
        except IsthmusError as fault:
            log.warning("the node's proxy waits", node=workload.name, why=fault.message)
            await clock.sleep(AGAIN)
        else:
            return

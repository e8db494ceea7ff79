"""A cluster with controllers, and clusters that it is linked to: rows under their names.

Our own cluster is a `controlled.Cluster`: real store, objects and admissions. Linked clusters are
what a watcher of links would have put into the tables, in the compact notation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from isthmus.engine import Change, Delete, Put
from isthmus.mesh import SOURCES
from isthmus.mesh import settings as mesh_settings
from isthmus.mesh.clusters import LINKED
from isthmus.mesh.clusters import Cluster as Known
from isthmus.mesh.exports import GATEWAY_NAMES
from isthmus.mesh.links import LINK_HEALTH, LinkHealth, Reached
from isthmus.mesh.settings import WHOLE, MeshSettings
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import GROUP
from isthmus.store.objects import Admission
from tests.support.compact import Compact, Document, Name, document, name_in, name_of
from tests.support.controlled import CLUSTER, Cluster, merge

MC = "linkerd-multicluster"
LINKS = f"links.{GROUP}"
MESH = "linkerd"
USUAL: Mapping[str, Any] = {
    "remoteDiscoverySelector": {"matchLabels": {"mirror.linkerd.io/exported": "remote-discovery"}},
    "federatedServiceSelector": {"matchLabels": {"mirror.linkerd.io/federated": "member"}},
}
GATEWAY: Mapping[str, Any] = {
    "gatewayPort": "4143",
    "selector": {"matchLabels": {"mirror.linkerd.io/exported": "true"}},
}
REPORTED = "multicluster.isthmus.dev/"


class LinkedWorld:
    """The importing cluster, `here`, and what it knows of others."""

    def __init__(self, *, seed: int = 1, more: Sequence[Admission] = ()) -> None:
        self.here = Cluster(seed=seed, more=more)
        self.db = self.here.db
        self.there: dict[str, dict[Name, Document]] = {}
        self.known: set[str] = set()
        self.silent: set[str] = set()
        settings = MeshSettings(cluster=CLUSTER, control_plane_namespace=MESH)
        self.db.commit([Put(mesh_settings.SETTINGS, WHOLE, settings)])
        self.random = Random(seed)

    async def start(self) -> None:
        """The namespace of links."""
        await self.here.namespace(MC)

    # ---------------------------------------------------------------------- here

    async def apply(self, *objects: Compact) -> None:
        """Create or replace objects, here or there, one after the other."""
        for each in objects:
            if "in" in each:
                self.put(each)
            else:
                await self._here(name_of(each, MESH), document(each, MESH))

    async def _here(self, name: Name, wanted: Document) -> None:
        if await self.here.get(name.resource, name.name, name.namespace) is None:
            await self.here.create(wanted)
            return
        kind = self.here.by_resource(name.resource)
        wanted["metadata"].pop("uid", None)

        def change(now: Document) -> Document:
            spec = {**wanted.get("spec", {})}
            if "spec" in now and "clusterIP" in now["spec"]:
                spec = {**{k: now["spec"][k] for k in ("clusterIP", "clusterIPs")}, **spec}
            said = {k: wanted["metadata"].get(k) or {} for k in ("labels", "annotations")}
            whole = {**now, **wanted, "metadata": {**now["metadata"], **said}}
            return {**whole, "spec": spec} if spec else whole

        await self.here.objects.update(kind, name.namespace, name.name, change)

    async def delete(self, *names: str) -> None:
        """Delete objects (`svc shop/cart`, `east: svc shop/cart`)."""
        for text in names:
            name = name_in(text)
            if name.cluster is None:
                await self.here.delete(name.resource, name.name, ns=name.namespace)
            else:
                self.there[name.cluster].pop(name, None)
                self._tell(name.cluster, [name])

    async def metadata(self, text: str, patch: Document) -> None:
        """Merge into labels and annotations."""
        name = name_in(text)
        if name.cluster is None:
            change = {"metadata": patch}
            await self.here.update(name.resource, name.name, change, ns=name.namespace)
            return
        held = self.there[name.cluster]
        held[name] = merge(held[name], {"metadata": patch})
        self._tell(name.cluster, [name])

    # --------------------------------------------------------------------- there

    def put(self, compact: Compact) -> None:
        """An object of a linked cluster."""
        name = name_of(compact, MESH)
        assert name.cluster is not None
        self.there.setdefault(name.cluster, {})[name] = document(compact, MESH)
        self._tell(name.cluster, [name])

    def _tell(self, cluster: str, names: Iterable[Name]) -> None:
        if cluster in self.known - self.silent:
            self.db.commit(self._rows(cluster, names))

    def _rows(self, cluster: str, names: Iterable[Name]) -> Iterable[Change]:
        for name in names:
            source, at = SOURCES[name.resource], ObjectKey(cluster, name.namespace, name.name)
            held = self.there.get(cluster, {}).get(name)
            yield (
                Delete(source.table, at)
                if held is None
                else Put(source.table, at, source.row(msgspec.json.encode(held)))
            )

    def sync(self, cluster: str, **facts: str) -> None:
        """The watcher has seen everything of a cluster, in one revision."""
        self.silent.discard(cluster)
        self.known.add(cluster)
        known = Known(facts.get("trust", "cluster.local"), facts.get("domain", "cluster.local"))
        names = list(self.there.setdefault(cluster, {}))
        self.db.commit([*self._rows(cluster, names), Put(LINKED, cluster, known)])

    def lose(self, cluster: str) -> None:
        """As after a start at which the cluster does not answer."""
        self.known.discard(cluster)
        gone = [
            Delete(SOURCES[name.resource].table, ObjectKey(cluster, name.namespace, name.name))
            for name in self.there.get(cluster, {})
        ]
        self.db.commit([*gone, Delete(LINKED, cluster)])

    # --------------------------------------------------------------------- links

    async def link(self, cluster: str, *, name: str = "", **said: Any) -> None:  # noqa: ANN401
        """Create a Link, a second after what was before. None takes a usual field away.

        `annotations` are the Link's; `gateway` is {address, port, identity}; the rest is spec.
        """
        self.here.clock.advance(1)
        annotations, gateway = said.pop("annotations", {}), said.pop("gateway", None)
        spec: Document = {"targetClusterName": cluster, "clusterCredentialsSecret": f"to-{cluster}"}
        spec |= USUAL
        if gateway:
            spec |= {**GATEWAY, **_gateway(gateway)}
        spec |= said
        metadata = {"name": name or cluster, "namespace": MC, "annotations": annotations}
        document = {"apiVersion": f"{GROUP}/v1alpha3", "kind": "Link", "metadata": metadata}
        await self.here.create(
            {**document, "spec": {key: value for key, value in spec.items() if value is not None}}
        )

    async def relink(self, name: str, **patch: Any) -> None:  # noqa: ANN401
        """Merge into a Link's spec; `annotations` into its metadata."""
        notes = {"metadata": {"annotations": patch.pop("annotations", {})}}
        await self.here.update(LINKS, name, {"spec": patch, **notes}, ns=MC)

    async def unlink(self, name: str, cluster: str = "") -> None:
        """Delete a Link; its watcher takes the rows away."""
        await self.here.delete(LINKS, name, ns=MC)
        self.lose(cluster or name)

    def health(self, name: str, state: str = "synced", **facts: Any) -> None:  # noqa: ANN401
        """What the watchers of links know."""
        found = LinkHealth(Reached(state), **facts)
        self.db.commit([Put(LINK_HEALTH, ObjectKey(CLUSTER, MC, name), found)])

    def resolve(self, host: str, *ips: str) -> None:
        """The name of a gateway leads to these addresses."""
        self.db.commit([Put(GATEWAY_NAMES, host, ips)])

    # -------------------------------------------------------------------- looking

    async def settle(self) -> int:
        """Turn the controllers until nothing is wanted; how many revisions they made."""
        before = self.here.store.revision
        await self.here.settle()
        return self.here.store.revision - before

    async def service(self, path: str) -> Document | None:
        """A Service here."""
        namespace, _, name = path.partition("/")
        return await self.here.get("services", name, namespace)

    async def endpoints(self, path: str) -> Document | None:
        """Endpoints here."""
        namespace, _, name = path.partition("/")
        return await self.here.get("endpoints", name, namespace)

    async def status(self, name: str) -> Document:
        """The status of a Link."""
        found = await self.here.get(LINKS, name, MC)
        assert found is not None
        return found.get("status") or {}

    async def reports(self, name: str, which: str) -> dict[str, Document]:
        """A list of a Link's status: conditions by the remote Service."""
        found = (await self.status(name)).get(f"{which}Services")
        assert found is not None, "lists are explicit"
        assert all(len(each["conditions"]) == 1 for each in found)
        return {_path(each["remoteRef"]): each["conditions"][0] for each in found}


def _gateway(said: Mapping[str, Any]) -> Document:
    names = {"address": "gatewayAddress", "port": "gatewayPort", "identity": "gatewayIdentity"}
    return {names[key]: value for key, value in said.items() if key in names}


def _path(ref: Document) -> str:
    assert (ref["group"], ref["kind"]) == ("", "Service")
    return f"{ref['namespace']}/{ref['name']}"

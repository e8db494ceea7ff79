"""The agents of a lab: one per cluster, in the lab's own process, beside its pods."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from isthmus.agent import Agent, Place, Seat, Standing, Wires, Workload, binary, proxyless
from isthmus.agent.agent import nobody_to_tell
from isthmus.agent.binary import Binary
from isthmus.agent.contract import Dial, Drained, Means
from isthmus.agent.process import MARK
from isthmus.app.sidecars import envoy_bootstrap
from isthmus.ca import AUDIENCE, Realm
from isthmus.controllers.inject import CONTAINER, PROXY
from isthmus.errors import Unavailable
from isthmus.lab.leaving import Leaving
from isthmus.lab.network import relay
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.nodeproxy import NodeProxy
from isthmus.lab.pods import sidecar
from isthmus.lab.pods.mounts import Mount
from isthmus.lab.pods.states import Record, Running, Terminated, Waiting
from isthmus.model.document import items, text, texts

SKIP_INBOUND: Final = "config.linkerd.io/skip-inbound-ports"
SKIP_OUTBOUND: Final = "config.linkerd.io/skip-outbound-ports"
SKIP_SUBNETS: Final = "config.linkerd.io/skip-subnets"
PROXYLESS: Final = "config.isthmus.dev/proxyless"
"""`grpc`: the pod's own gRPC clients may ask the control plane, as its account."""
GRPC_FOLDER: Final = "/var/run/isthmus/grpc"
TOKEN_SECONDS: Final = 86_400
GRACE: Final = 5.0


class Agents:
    """Says which pods get a proxy, and from whom; see `pods.sidecar.Sidecars`."""

    def __init__(self, folder: Path, means: Means, *, switches_users: bool) -> None:
        """`folder` is in memory. UserFault if this machine has no Envoy that fits."""
        self._binary: Binary = binary.load()
        self._folder = folder
        self._means = means
        self._switches_users = switches_users
        self._agents: dict[str, Agent] = {}

    async def run(
        self, cluster: str, realm: Realm, inside: Namespace, at: Mapping[str, str]
    ) -> None:
        """One cluster's agent, until cancelled. `at`: its endpoints, as reached from `inside`."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        async with contextlib.AsyncExitStack() as held:
            drained: Drained = nobody_to_tell
            if "admin" in at:
                asking = Leaving(inside, at["admin"], self._means.clock)
                drained = await held.enter_async_context(asking)
            agent = Agent(
                realm=realm,
                wires=_wires(inside, at),
                binary=self._binary,
                bootstrap=envoy_bootstrap(0 if self._switches_users else MARK),
                means=self._means,
                folder=self._folder / cluster,
                drained=drained,
                switches_users=self._switches_users,
            )
            self._agents[cluster] = agent
            try:
                await agent.run()
            finally:
                self._agents.pop(cluster, None)

    async def ready(self, cluster: str) -> None:
        """When pods of a cluster may be asked about."""
        while cluster not in self._agents:
            await self._means.clock.sleep(0.01)
        await self._agents[cluster].ready()

    def of_node(self, proxy: NodeProxy) -> Workload:
        """The proxy of a cluster's nodes, not started yet. The cluster's agent must be ready."""
        folder = self._folder / f"{proxy.at.name}-node"
        for each in (self._folder, folder):  # the Envoy's own user passes through
            each.mkdir(exist_ok=True)
            each.chmod(0o711)
        return self._agents[proxy.at.name].beside(proxy.place(folder))

    def beside(self, place: sidecar.Place) -> sidecar.Sidecar | None:
        """The proxy of a pod that was injected; None for others."""
        if not sidecar.injected(place.document):
            return None
        agent = self._agents.get(place.cluster)
        if agent is None:
            raise Unavailable(
                f"no agent serves the cluster {place.cluster}: a control plane needs"
                " its listeners identity and xds"
            )
        return Beside(agent.beside(_place(place)), place.document)


class Beside:
    """One pod's proxy, in the lab's words."""

    names: frozenset[str] = frozenset({CONTAINER})

    def __init__(self, workload: Workload, document: Mapping[str, object]) -> None:
        self._workload = workload
        containers = items(document, "spec.containers")
        self._image = next(text(c, "image") for c in containers if text(c, "name") == CONTAINER)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """See `Sidecar`."""
        place = self._workload.place
        source = str(place.folder / proxyless.FOLDER)
        return (Mount(source, place.grpc, read_only=True),) if place.grpc else ()

    @property
    def env(self) -> Mapping[str, str]:
        """See `Sidecar`."""
        at = self._workload.place.grpc
        return {"GRPC_XDS_BOOTSTRAP": f"{at}/{proxyless.BOOTSTRAP}"} if at else {}

    def records(self) -> Mapping[str, Record]:
        """What the pod's status tells of the proxy's container."""
        return {CONTAINER: record(self._workload.standing, self._image)}

    async def start(self) -> None:
        """See `Sidecar`."""
        await self._workload.start()

    async def drain(self, grace: float) -> None:
        """See `Sidecar`."""
        await self._workload.drain(grace)

    async def stop(self) -> None:
        """See `Sidecar`."""
        await self._workload.stop(GRACE)


def record(standing: Standing, image: str) -> Record:
    """A proxy's standing as a container's."""
    ended = None
    if standing.last_code is not None:
        code = standing.last_code
        ended = Terminated(
            code=code if code >= 0 else 128 - code,
            signal=max(0, -code),
            reason="Completed" if code == 0 else "Error",
            finished=_utc(standing.last_end),
        )
    state = Running(_utc(standing.since)) if standing.running else Waiting(message=standing.why)
    return Record(
        name=CONTAINER,
        image=image,
        state=state,
        last=ended,
        ready=standing.ready,
        started=standing.running,
        restarts=standing.restarts,
    )


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _wires(inside: Namespace, at: Mapping[str, str]) -> Wires:
    """Everything on the cluster's loopback address."""

    def dial(name: str) -> Dial:
        host, _, port = at[name].rpartition(":")
        return relay.to(inside, host, int(port))

    policy = dial("policy") if "policy" in at else None
    return Wires(
        identity=dial("identity"),
        xds=dial("xds"),
        destination=dial("destination") if "destination" in at else None,
        policy=policy,
    )


def _place(place: sidecar.Place) -> Place:
    annotations = texts(place.document, "metadata.annotations")
    namespace = text(place.document, "metadata.namespace")
    name = text(place.document, "metadata.name")
    account = text(place.document, "spec.serviceAccountName") or "default"

    async def token() -> bytes:
        return (await place.token(AUDIENCE, TOKEN_SECONDS)).encode()

    return Place(
        seat=Seat(
            cluster=place.cluster,
            namespace=namespace,
            name=name,
            account=account,
            labels={"namespace": namespace, "pod": name, "serviceaccount": account},
        ),
        ip=str(place.ip),
        namespace=place.namespace,
        folder=place.folder,
        log=place.logs / f"{CONTAINER}.log",
        token=token,
        skip_inbound=ports(annotations.get(SKIP_INBOUND, "")),
        skip_outbound=ports(annotations.get(SKIP_OUTBOUND, "")),
        skip_subnets=tuple(filter(None, annotations.get(SKIP_SUBNETS, "").split(","))),
        grpc=GRPC_FOLDER if annotations.get(PROXYLESS) == "grpc" else "",
        linkerd=annotations.get(PROXY) == "linkerd",
        changed=place.changed,
    )


def ports(said: str) -> tuple[tuple[int, int], ...]:
    """Ranges of ports in an annotation, `25,8000-8010`; what cannot be read is left out."""
    found = []
    for each in said.split(","):
        first, dash, last = each.strip().partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()):
            low, high = int(first), int(last or first)
            if 0 < low <= high <= 65535:
                found.append((low, high))
    return tuple(found)

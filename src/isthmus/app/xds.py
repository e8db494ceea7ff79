"""xDS: who may come, by certificate; which dialect each is told in; who has heard of what.

A certificate names a ServiceAccount. The node that a proxy says it is, `NAMESPACE/NAME`, only
chooses among the workloads of that account: one of them must bear the name. The certificate of a
host names a Node, whose own Envoy is `/NODE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, ParamSpec, Protocol, TypeVar

from isthmus import ca
from isthmus.app.identity import Serving, realm
from isthmus.app.means import Means
from isthmus.board import Board
from isthmus.ca import Account, Realm
from isthmus.calls import Refusal
from isthmus.config import ServerConfig
from isthmus.dialects import envoy, grpc
from isthmus.engine import Query, View, query
from isthmus.errors import Unavailable
from isthmus.ir.identity import parse_identity
from isthmus.ir.names import Ref
from isthmus.mesh.exports import FEDERATED_SUFFIX
from isthmus.mesh.federation import portions
from isthmus.mesh.gateways import EXPORTED, is_gateway
from isthmus.mesh.policy_tables import EXTERNAL_WORKLOADS, SERVICE_WORKLOADS
from isthmus.mesh.queries import target_id, trust_domain
from isthmus.mesh.services import Federated, discovery
from isthmus.mesh.tables import NODES, PODS, SERVICE_PODS, SERVICES, SLICES, SLICES_BY_SERVICE
from isthmus.mesh.workloads import external_ref, pod_ref, workload_identity
from isthmus.model.key import ObjectKey
from isthmus.model.workload import LEAVING as OUTSIDE
from isthmus.proto.xds import ENDPOINTS
from isthmus.serve.identity import Heard
from isthmus.serve.xds import Admit, Leaf, Node, Peer, Proxy, XdsServer

P = ParamSpec("P")
T = TypeVar("T")

NAME: Final = "xds"
LEAVING: Final = "/leaving"
"""The page of the admin listener that answers `leaving`."""

_ENVOY: Final = envoy.EnvoyDialect()
_GRPC: Final = grpc.GrpcDialect()
_NODE: Final = envoy.NodeDialect()
_VARIANTS: Final = ("", "tcp", "plain", "sni")
"""Of a target, in Envoy's dialect: for sidecars, nodes and gateways."""

_LENT: Final = (EXPORTED, "mirror.linkerd.io/federated")
"""Labels of Services that other clusters use."""

_HEARD: Final = 1
_ROLLED: Final = 3
"""Seconds in which proxies of other clusters hear of a change, and in which none has a connection
left that it made through a gateway before (`dialects.envoy`: two seconds)."""


def server(config: ServerConfig, means: Means, board: Board) -> XdsServer:
    """The service, which listens nowhere yet."""
    clock, random, log = means
    admit = admission(board, realm(config), config.cluster)
    return XdsServer(board, admit, clock=clock, random=random, log=log)


def leaf(serving: Serving, means: Means) -> Callable[[], Leaf]:
    """What the listener shows. Before there is any trust, a certificate that nobody believes.

    Trust is made when the first certificate is asked for; no proxy can come before.
    """
    own = ca.make("isthmus without trust", now=means.clock.utc())
    nobody = own.issue_server(["nobody.invalid"], now=means.clock.utc())
    untrusted = Leaf(nobody.key, nobody.certificate, own.bundle)

    def now() -> Leaf:
        try:
            found, anchors = serving.leaf
        except Unavailable:
            return untrusted
        return Leaf(found.key, found.certificate, anchors)

    return now


# ------------------------------------------------------------------------------- who may come


class Reads(Protocol):
    """Where questions are answered from: the board."""

    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T:
        """One answer, now."""


def admission(board: Reads, own: Realm, cluster: str) -> Admit:
    """Admits the proxies of the cluster's own workloads."""

    def admit(peer: Peer, node: Node) -> Proxy | Refusal:
        host = own.host(peer.identities[0]) if len(peer.identities) == 1 else None
        if host is not None:
            return _of_host(board, cluster, host, node)
        account = _account(own, peer)
        if account is None:
            return Refusal("UNAUTHENTICATED", "no certificate of a workload of this mesh")
        key = _key(cluster, node.id)
        if key is None:
            return Refusal("INVALID_ARGUMENT", f"the node {node.id[:128]!r} is no NAMESPACE/NAME")
        workload = board.read(of_account, key, account.namespace, account.name, peer.identities[0])
        if workload is None:
            who = f"{account.namespace}/{account.name}"
            return Refusal(
                "PERMISSION_DENIED", f"the ServiceAccount {who} has no workload {node.id[:128]!r}"
            )
        name = f"{key.name}.{key.namespace}"
        if node.agent.startswith("gRPC"):
            return Proxy(name, _GRPC, board.read(grpc.asker, workload))
        return Proxy(name, _ENVOY, board.read(envoy.asker, workload))

    return admit


def _of_host(board: Reads, cluster: str, host: str, node: Node) -> Proxy | Refusal:
    """The Envoy of a node. A host whose Node was deleted is not known any more."""
    if node.id != f"/{host}":
        return Refusal("PERMISSION_DENIED", f"the host {host!r} is not {node.id[:128]!r}")
    if not board.read(is_node, ObjectKey(cluster, "", host)):
        return Refusal("PERMISSION_DENIED", f"there is no Node {host!r}")
    return Proxy(f"node/{host}", _NODE, envoy.NodeAsker(cluster, host))


@query
def is_node(db: View, key: ObjectKey) -> bool:
    """Whether there is such a Node."""
    return NODES.get(db, key) is not None


def _account(own: Realm, peer: Peer) -> Account | None:
    return own.account(peer.identities[0]) if peer.identities else None


def _key(cluster: str, said: str) -> ObjectKey | None:
    namespace, slash, name = said.partition("/")
    if not slash or not namespace or not name or "/" in name:
        return None
    return ObjectKey(cluster, namespace, name)


@query
def of_account(db: View, key: ObjectKey, namespace: str, account: str, proven: str) -> Ref | None:
    """The workload of this name, if it is of the ServiceAccount whose identity is `proven`."""
    pod = PODS.get(db, key)
    if pod is not None:
        own = (key.namespace, pod.spec.service_account_name or "default")
        return pod_ref(key) if own == (namespace, account) else None
    if EXTERNAL_WORKLOADS.get(db, key) is None:
        return None
    found = external_ref(key)
    return found if workload_identity(db, found) == parse_identity(proven) else None


# ------------------------------------------------------------------------- who has heard of what


@query
def held_in(db: View, pod: ObjectKey) -> tuple[str, ...] | None:
    """The assignments that tell of a pod on its way out; None while some still calls it ready."""
    row = PODS.get(db, pod)
    if row is None or not row.metadata.deletion_timestamp:
        return None
    return _told(db, pod, "Pod", SERVICE_PODS.selectors(db, pod))


@query
def held_outside(db: View, workload: ObjectKey) -> tuple[str, ...] | None:
    """The same for an ExternalWorkload whose agent has said that it leaves."""
    row = EXTERNAL_WORKLOADS.get(db, workload)
    if row is None or not row.status.says(OUTSIDE):
        return None
    services = SERVICE_WORKLOADS.selectors(db, workload)
    return _told(db, workload, "ExternalWorkload", services)


def _told(
    db: View, who: ObjectKey, kind: str, services: Iterable[ObjectKey]
) -> tuple[str, ...] | None:
    domain = trust_domain(db, who.cluster)
    found: list[str] = []
    for service in services:
        if any(_unaware(db, part, kind, who) for part in SLICES_BY_SERVICE.get(db, service)):
            return None
        declared = SERVICES.get(db, service)
        for port in declared.spec.ports if declared is not None else ():
            for name, subset in _part_of(db, service):
                found += [
                    target_id(name, port.port, each, subset).key(domain) for each in _VARIANTS
                ]
    return tuple(found)


def _part_of(db: View, service: ObjectKey) -> Iterator[tuple[ObjectKey, str]]:
    """The Service, the federated one that it is a member of, and its part in that."""
    yield service, ""
    whole = service._replace(name=f"{service.name}{FEDERATED_SUFFIX}")
    found = discovery(db, whole)
    if isinstance(found, Federated) and service in found.members:
        yield whole, ""
        for group in portions(db, whole):
            yield from ((whole, one.subset) for one in group if service in one.members)


@query
def linger(db: View, pod: ObjectKey) -> int:
    """Seconds that a pod which leaves should stay for clients in other clusters; 0 for none."""
    rows = (SERVICES.get(db, service) for service in SERVICE_PODS.selectors(db, pod))
    labels = [row.metadata.labels for row in rows if row is not None]
    if is_gateway(db, pod) or any(one.get(EXPORTED) == "true" for one in labels):
        return _ROLLED
    return _HEARD if any(set(_LENT) & one.keys() for one in labels) else 0


def _unaware(db: View, part: ObjectKey, kind: str, who: ObjectKey) -> bool:
    """Whether a slice has the workload and does not say that it leaves."""
    row = SLICES.get(db, part)
    return row is not None and any(
        each.target_ref is not None
        and each.target_ref.kind == kind
        and (each.target_ref.namespace, each.target_ref.name) == (who.namespace, who.name)
        and not each.conditions.terminating
        for each in row.endpoints
    )


class Behind(Protocol):
    """The open streams."""

    def behind(self, type_url: str, name: str) -> tuple[str, ...]:
        """The proxies that use a resource and have not accepted its newest version yet."""


def leaving(
    board: Reads, streams: Behind, cluster: str
) -> Callable[[Mapping[str, str]], Mapping[str, object]]:
    """Answers, for `?pod=NAMESPACE/NAME`, whether the mesh knows that a pod leaves.

    `known` is true when all who send to it are to be told; `behind` are the proxies that have not
    accepted it yet. Those in other clusters hear it later: in `linger` seconds, they have.
    """

    def answer(asked: Mapping[str, str]) -> Mapping[str, object]:
        key = _key(cluster, asked.get("pod", ""))
        held = board.read(held_in, key) if key is not None else None
        known, behind = _behind(streams, held)
        if not known or key is None:
            return {"known": False, "behind": []}
        stays = board.read(linger, key)
        return {"known": True, "behind": list(behind), "linger": stays}

    return answer


def leaving_outside(board: Reads, streams: Behind, cluster: str) -> Callable[[str], Heard]:
    """The same for ExternalWorkloads, whose hosts' agents ask the identity service."""

    def answer(path: str) -> Heard:
        key = _key(cluster, path)
        return _behind(streams, board.read(held_outside, key) if key is not None else None)

    return answer


def _behind(streams: Behind, held: tuple[str, ...] | None) -> Heard:
    if held is None:
        return Heard(known=False, behind=())
    behind = {proxy for name in held for proxy in streams.behind(ENDPOINTS, name)}
    return Heard(known=True, behind=tuple(sorted(behind)))

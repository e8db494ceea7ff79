"""Tables of the mesh's own kinds and of what the destination reads, with indexes and joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import OPERATORS, Index, Join, Labelled, Selector, Table
from isthmus.mesh.census import Place
from isthmus.mesh.names import canonical_ip
from isthmus.mesh.tables import PODS, SERVICES, Source, place
from isthmus.model.core import Pod, Service
from isthmus.model.key import ObjectKey
from isthmus.model.meta import LabelSelector, Object, Requirement
from isthmus.model.policy import (
    AuthorizationPolicy,
    HttpLocalRateLimitPolicy,
    MeshTlsAuthentication,
    NetworkAuthentication,
    Server,
    ServerAuthorization,
)
from isthmus.model.references import Ref
from isthmus.model.serviceprofile import WrittenProfile, written_profile
from isthmus.model.trafficsplit import TrafficSplit
from isthmus.model.workload import ExternalWorkload

SERVERS: Table[ObjectKey, Server] = Table("servers", scope=place)
SERVER_AUTHORIZATIONS: Table[ObjectKey, ServerAuthorization] = Table(
    "serverauthorizations", scope=place
)
AUTHORIZATION_POLICIES: Table[ObjectKey, AuthorizationPolicy] = Table(
    "authorizationpolicies", scope=place
)
MESH_TLS_AUTHENTICATIONS: Table[ObjectKey, MeshTlsAuthentication] = Table(
    "meshtlsauthentications", scope=place
)
NETWORK_AUTHENTICATIONS: Table[ObjectKey, NetworkAuthentication] = Table(
    "networkauthentications", scope=place
)
RATE_LIMITS: Table[ObjectKey, HttpLocalRateLimitPolicy] = Table(
    "httplocalratelimitpolicies", scope=place
)
SERVICE_PROFILES: Table[ObjectKey, WrittenProfile] = Table("serviceprofiles", scope=place)
TRAFFIC_SPLITS: Table[ObjectKey, TrafficSplit] = Table("trafficsplits")
EXTERNAL_WORKLOADS: Table[ObjectKey, ExternalWorkload] = Table("externalworkloads")
JOBS: Table[ObjectKey, Object] = Table("jobs")
"""Only whose they are."""

LISTED: Final = frozenset(
    {
        "authorizationpolicies",
        "httplocalratelimitpolicies",
        "meshtlsauthentications",
        "networkauthentications",
        "serverauthorizations",
        "servers",
        "serviceprofiles",
    }
)
"""The tables here whose names may be listed: a controller attends them object by object."""


POLICY_GROUP: Final = "policy.linkerd.io"


class KindName(NamedTuple):
    """A kind as references are compared: in lower case, the core group as ""."""

    group: str
    kind: str


class PolicyTarget(NamedTuple):
    """What an AuthorizationPolicy is for: an object of its own namespace."""

    cluster: str
    what: KindName
    namespace: str
    name: str


def kind_name(group: str, kind: str) -> KindName:
    """The kind that a reference names; case does not count (Linkerd's webhook, #8884)."""
    folded = group.lower()
    return KindName("" if folded == "core" else folded, kind.lower())


SERVER: Final = kind_name(POLICY_GROUP, "Server")


class Socket(NamedTuple):
    """An address and port as one cluster sees it."""

    cluster: str
    ip: str
    port: int


def _sockets(key: ObjectKey, row: ExternalWorkload) -> Iterable[Socket]:
    return (
        Socket(key.cluster, canonical_ip(each.ip) or each.ip, port.port)
        for each in row.spec.workload_ips
        for port in row.spec.ports
    )


def _split_service(key: ObjectKey, row: TrafficSplit) -> Iterable[ObjectKey]:
    return (key._replace(name=row.spec.service),)


WORKLOADS_BY_SOCKET: Index[ObjectKey, ExternalWorkload, Socket] = Index(
    "externalworkloads_by_socket", EXTERNAL_WORKLOADS, _sockets
)
SPLITS_BY_SERVICE: Index[ObjectKey, TrafficSplit, ObjectKey] = Index(
    "trafficsplits_by_service", TRAFFIC_SPLITS, _split_service
)


def _named_server(key: ObjectKey, row: ServerAuthorization) -> Iterable[ObjectKey]:
    name = row.spec.server.name
    return (key._replace(name=name),) if name else ()


def policy_target(key: ObjectKey, ref: Ref) -> PolicyTarget:
    """What a policy's targetRef means: always something of the policy's own namespace."""
    return PolicyTarget(key.cluster, kind_name(ref.group, ref.kind), key.namespace, ref.name)


def _target(key: ObjectKey, row: AuthorizationPolicy) -> Iterable[PolicyTarget]:
    return (policy_target(key, row.spec.target_ref),)


def _limited_server(key: ObjectKey, row: HttpLocalRateLimitPolicy) -> Iterable[ObjectKey]:
    ref = row.spec.target_ref
    return (key._replace(name=ref.name),) if kind_name(ref.group, ref.kind) == SERVER else ()


AUTHORIZATIONS_BY_SERVER: Index[ObjectKey, ServerAuthorization, ObjectKey] = Index(
    "serverauthorizations_by_server", SERVER_AUTHORIZATIONS, _named_server
)
POLICIES_BY_TARGET: Index[ObjectKey, AuthorizationPolicy, PolicyTarget] = Index(
    "authorizationpolicies_by_target", AUTHORIZATION_POLICIES, _target
)
RATE_LIMITS_BY_SERVER: Index[ObjectKey, HttpLocalRateLimitPolicy, ObjectKey] = Index(
    "httplocalratelimitpolicies_by_server", RATE_LIMITS, _limited_server
)


def policy_selector(where: Place, written: LabelSelector | None) -> Selector | None:
    """The selector of a policy: none selects nothing, an empty one everything in its namespace.

    One that says nothing understandable selects nothing.
    """
    if written is None or not all(map(_understood, written.match_expressions)):
        return None
    parts = [(part.key, part.operator, part.values) for part in written.match_expressions]
    return Selector(where, written.match_labels, parts)  # type: ignore[arg-type]  # as understood


def _understood(part: Requirement) -> bool:
    listed = part.operator in ("In", "NotIn")
    return part.operator in OPERATORS and bool(part.values) == listed


def _server_pods(key: ObjectKey, row: Server) -> Selector | None:
    return policy_selector(place(key), row.spec.pod_selector)


def _server_workloads(key: ObjectKey, row: Server) -> Selector | None:
    return policy_selector(place(key), row.spec.external_workload_selector)


def _authorized_servers(key: ObjectKey, row: ServerAuthorization) -> Selector | None:
    """A name beats a selector beside it, which no API lets in."""
    choice = row.spec.server
    return None if choice.name else policy_selector(place(key), choice.selector)


def _server_labels(key: ObjectKey, row: Server) -> Labelled:
    return Labelled(place(key), row.metadata.labels)


def _service_selector(key: ObjectKey, row: Service) -> Selector | None:
    if not row.spec.selector or row.spec.type == "ExternalName":
        return None
    return Selector(place(key), row.spec.selector)


def _pod_labels(key: ObjectKey, row: Pod) -> Labelled:
    return Labelled(place(key), row.metadata.labels)


def _workload_labels(key: ObjectKey, row: ExternalWorkload) -> Labelled:
    return Labelled(place(key), row.metadata.labels)


SERVER_PODS: Join[ObjectKey, Server, ObjectKey, Pod] = Join(
    "server_pods", SERVERS, _server_pods, PODS, _pod_labels
)
SERVER_WORKLOADS: Join[ObjectKey, Server, ObjectKey, ExternalWorkload] = Join(
    "server_workloads", SERVERS, _server_workloads, EXTERNAL_WORKLOADS, _workload_labels
)
AUTHORIZED_SERVERS: Join[ObjectKey, ServerAuthorization, ObjectKey, Server] = Join(
    "authorized_servers", SERVER_AUTHORIZATIONS, _authorized_servers, SERVERS, _server_labels
)
SERVICE_WORKLOADS: Join[ObjectKey, Service, ObjectKey, ExternalWorkload] = Join(
    "service_workloads", SERVICES, _service_selector, EXTERNAL_WORKLOADS, _workload_labels
)

POLICY_SOURCES: Final[Mapping[str, Source]] = {
    "servers.policy.linkerd.io": Source(SERVERS, msgspec.json.Decoder(Server).decode),
    "serverauthorizations.policy.linkerd.io": Source(
        SERVER_AUTHORIZATIONS, msgspec.json.Decoder(ServerAuthorization).decode
    ),
    "authorizationpolicies.policy.linkerd.io": Source(
        AUTHORIZATION_POLICIES, msgspec.json.Decoder(AuthorizationPolicy).decode
    ),
    "meshtlsauthentications.policy.linkerd.io": Source(
        MESH_TLS_AUTHENTICATIONS, msgspec.json.Decoder(MeshTlsAuthentication).decode
    ),
    "networkauthentications.policy.linkerd.io": Source(
        NETWORK_AUTHENTICATIONS, msgspec.json.Decoder(NetworkAuthentication).decode
    ),
    "httplocalratelimitpolicies.policy.linkerd.io": Source(
        RATE_LIMITS, msgspec.json.Decoder(HttpLocalRateLimitPolicy).decode
    ),
    "serviceprofiles.linkerd.io": Source(SERVICE_PROFILES, written_profile),
    "trafficsplits.split.smi-spec.io": Source(
        TRAFFIC_SPLITS, msgspec.json.Decoder(TrafficSplit).decode
    ),
    "externalworkloads.workload.linkerd.io": Source(
        EXTERNAL_WORKLOADS, msgspec.json.Decoder(ExternalWorkload).decode
    ),
    "jobs.batch": Source(JOBS, msgspec.json.Decoder(Object).decode),
}
"""By the resource part of store keys."""

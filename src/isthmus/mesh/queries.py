"""The queries that dialects may read, and the values they speak in. Nothing else of `mesh`."""

from isthmus.mesh.addressed import subject_refusal
from isthmus.mesh.asked import (
    AddressHost,
    GetKey,
    Host,
    InstanceHost,
    ProfileKey,
    Refused,
    ServiceHost,
    Why,
)
from isthmus.mesh.endpoints import Group, Member, endpoint, endpoint_sets, groups, leaving
from isthmus.mesh.inbound import ELSEWHERE, inbound
from isthmus.mesh.names import (
    Authority,
    BadAuthority,
    BadHost,
    InstanceName,
    IpName,
    ServiceName,
    Token,
    parse_authority,
    parse_token,
)
from isthmus.mesh.opaque import OfNobody, OfPod, OfService, OfWorkload, opaque
from isthmus.mesh.outbound import outbound
from isthmus.mesh.profiles import profile
from isthmus.mesh.proxy import inbounds, proxy_view
from isthmus.mesh.scope import (
    Scope,
    in_scope,
    instances,
    out_of_scope,
    ports_of,
    refused_networks,
    scope,
)
from isthmus.mesh.services import PortState, SetKey, Topology, get_refusal, port_state, sets
from isthmus.mesh.settings import Http2Params, MeshSettings, settings
from isthmus.mesh.targets import (
    Answerers,
    accrues_by_rate,
    answerers,
    load_bias,
    service_of,
    service_ref,
    target,
    target_id,
    target_named,
    trust_domain,
)
from isthmus.mesh.workloads import is_opaque, node_of, workload_identity
from isthmus.model.key import ObjectKey

__all__ = [
    "ELSEWHERE",
    "AddressHost",
    "Answerers",
    "Authority",
    "BadAuthority",
    "BadHost",
    "GetKey",
    "Group",
    "Host",
    "Http2Params",
    "InstanceHost",
    "InstanceName",
    "IpName",
    "Member",
    "MeshSettings",
    "ObjectKey",
    "OfNobody",
    "OfPod",
    "OfService",
    "OfWorkload",
    "PortState",
    "ProfileKey",
    "Refused",
    "Scope",
    "ServiceHost",
    "ServiceName",
    "SetKey",
    "Token",
    "Topology",
    "Why",
    "accrues_by_rate",
    "answerers",
    "endpoint",
    "endpoint_sets",
    "get_refusal",
    "groups",
    "in_scope",
    "inbound",
    "inbounds",
    "instances",
    "is_opaque",
    "leaving",
    "load_bias",
    "node_of",
    "opaque",
    "out_of_scope",
    "outbound",
    "parse_authority",
    "parse_token",
    "port_state",
    "ports_of",
    "profile",
    "proxy_view",
    "refused_networks",
    "scope",
    "service_of",
    "service_ref",
    "sets",
    "settings",
    "subject_refusal",
    "target",
    "target_id",
    "target_named",
    "trust_domain",
    "workload_identity",
]

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
from isthmus.mesh.endpoints import Group, Member, endpoint, endpoint_sets, groups
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
from isthmus.mesh.profiles import profile
from isthmus.mesh.services import SetKey, Topology, get_refusal, sets
from isthmus.mesh.settings import Http2Params, MeshSettings, settings
from isthmus.model.key import ObjectKey

__all__ = [
    "AddressHost",
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
    "ProfileKey",
    "Refused",
    "ServiceHost",
    "ServiceName",
    "SetKey",
    "Token",
    "Topology",
    "Why",
    "endpoint",
    "endpoint_sets",
    "get_refusal",
    "groups",
    "opaque",
    "parse_authority",
    "parse_token",
    "profile",
    "sets",
    "settings",
    "subject_refusal",
]

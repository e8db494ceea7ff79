"""The keys of answers: what is asked for, and the class of who asks. Never a pod, never a token.

All who ask the same from the same place share one cell, one value, one encoding.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from isthmus.model.key import ObjectKey


class GetKey(NamedTuple):
    """Endpoints of a Service at a port, as seen from a node of the local cluster.

    `instance` narrows to the endpoint of this host name, "" = all. `node` is "" where unknown; its
    zone, and itself where the Service keeps to the node, decide what is visible.
    """

    service: ObjectKey
    port: int
    instance: str
    node: str


class ServiceHost(msgspec.Struct, frozen=True):
    """A Service."""

    service: ObjectKey


class InstanceHost(msgspec.Struct, frozen=True):
    """The endpoint of a Service with this host name."""

    service: ObjectKey
    instance: str


class AddressHost(msgspec.Struct, frozen=True):
    """Whoever has this address: a Service, a pod, a node's port, an external workload, nobody."""

    cluster: str
    ip: str


Host = ServiceHost | InstanceHost | AddressHost


class ProfileKey(msgspec.Struct, frozen=True):
    """The profile of a host at a port, as clients of a namespace see it ("" = unknown)."""

    host: Host
    port: int
    namespace: str


class Why(StrEnum):
    """Why there is no answer to a new question."""

    MISSING = "missing"
    EXTERNAL_NAME = "external-name"
    CONFLICT = "conflict"
    NO_REMOTE_SERVICE = "no-remote-service"
    NO_CLUSTER = "no-cluster"


class Refused(msgspec.Struct, frozen=True):
    """A new question is refused; a stream that is open stays, and holds nothing or the default."""

    why: Why
    text: str

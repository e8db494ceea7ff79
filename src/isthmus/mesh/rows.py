"""Rows of objects at large, and of endpoint slices: facts, no heartbeats.

A row is what an object means, not what it is: no resourceVersion, no managedFields. Names are
Kubernetes' own in snake case.
"""

from __future__ import annotations

from isthmus.model.core.endpoints import EndpointPort
from isthmus.model.meta import Meta, OwnerReference, Reference, View


class Identity(View, frozen=True):
    """What ties an object to its owners and to its end; see `model.meta.Meta`."""

    uid: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Facts(View, frozen=True):
    """What every object of any kind has: enough for garbage collection and namespace deletion."""

    metadata: Identity = Identity()


class EndpointConditions(View, frozen=True):
    """discovery.k8s.io/v1 EndpointConditions; None where the writer said nothing."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(View, frozen=True):
    """A zone that an endpoint should serve."""

    name: str = ""


class EndpointHints(View, frozen=True):
    """discovery.k8s.io/v1 EndpointHints."""

    for_zones: tuple[ForZone, ...] = ()


class Endpoint(View, frozen=True):
    """discovery.k8s.io/v1 Endpoint."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    zone: str = ""
    target_ref: Reference | None = None
    hints: EndpointHints | None = None


class EndpointSlice(View, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata: Meta = Meta()
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()

"""Backends by the names of their clusters, and what is said on the way to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from envoy.config.core.v3 import base_pb2 as base

from isthmus.dialects.envoy import names
from isthmus.ir.names import TargetId
from isthmus.ir.target import Backend, OriginalDst, Refuse, Target, To
from isthmus.ir.target import Tls as TlsMode

PROTOCOL: Final = "isthmus-protocol"
"""The request header that tells the other sidecar what was spoken before HTTP/2."""

TOLD: Final = base.HeaderValueOption(
    header=base.HeaderValue(key=PROTOCOL, value="%PROTOCOL%"),
    append_action=base.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
)
"""The header that does so."""


def protocol(one: Backend) -> Iterable[base.HeaderValueOption]:
    """Told wherever a sidecar may be: whether HTTP/2 is used can change at another moment."""
    some = (one.target, *one.failover) if isinstance(one, To) else ()
    if any(each.tls is TlsMode.MESH for each in some):
        yield TOLD


def cluster_of(one: Backend, variant: str = "") -> str:
    """The cluster that a backend is; of targets, in this variant."""
    match one:
        case To(target=target, failover=more):
            keys = tuple(key(each, variant) for each in (target, *more))
            return names.failover(keys) if more else keys[0]
        case OriginalDst():
            return names.PASSTHROUGH
        case Refuse():
            return names.REFUSED
        case _:
            assert_never(one)


def key(target: Target, variant: str = "") -> str:
    """The name of a target's cluster."""
    name = target.id
    if variant == names.RAW and name.variant == names.THROUGH:
        variant = names.THROUGH_RAW
    if variant:
        name = TargetId(name.cluster, name.namespace, name.service, name.port, name.subset, variant)
    return name.key(target.trust_domain)

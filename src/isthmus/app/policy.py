"""The policy services that linkerd2-proxies ask, and which calls they have."""

from __future__ import annotations

from typing import Final

from isthmus.app.destination import asking, whole
from isthmus.controllers import Dialect
from isthmus.dialects import envoy, grpc, linkerd
from isthmus.serve.linkerd import Method, Service

NAME: Final = "policy"
INBOUND: Final = "io.linkerd.proxy.inbound.InboundServerPolicies"
OUTBOUND: Final = "io.linkerd.proxy.outbound.OutboundPolicies"

DIALECTS: Final = (
    Dialect("envoy", envoy.faults),
    Dialect("grpc", grpc.faults, grpc.inbound_faults),
    Dialect("linkerd", linkerd.policy_faults, linkerd.inbound_faults),
)
"""What proxies will not do as routes and policies say it, by dialect: for conditions."""


def services() -> dict[str, Service]:
    """By full names."""
    return {INBOUND: _inbound(), OUTBOUND: _outbound()}


def _inbound() -> Service:
    watch = Method(asking(linkerd.inbound_question), linkerd.server_policy, whole)
    return {"GetPort": watch._replace(unary=True), "WatchPort": watch}


def _outbound() -> Service:
    watch = Method(asking(linkerd.outbound_question), linkerd.outbound_policy, whole)
    return {"Get": watch._replace(unary=True), "Watch": watch}

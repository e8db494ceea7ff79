"""Gateways between clusters and out of the mesh."""

from __future__ import annotations

from isthmus.ir.names import Host, Ref, Source, TargetId, Value
from isthmus.ir.outbound import GrpcRoute, HttpRoute, TcpRoute, TlsRoute
from isthmus.ir.target import Target


class ToTarget(Value, frozen=True, tag="target"):
    """Bytes go on to this target, TLS untouched."""

    target: TargetId


class ToGateways(Value, frozen=True, tag="gateways"):
    """Bytes go on to the gateways of another cluster."""

    cluster: str


class SniRoute(Value, frozen=True):
    """Connections with a server name under `sni`."""

    sni: Host
    to: ToTarget | ToGateways
    source: Source


class SniGateway(Value, frozen=True, tag="sni"):
    """A mesh gateway: forwards mesh TLS by server name, seeing neither identity nor content."""

    name: Ref
    port: int
    routes: tuple[SniRoute, ...] = ()


class Certificate(Value, frozen=True):
    """A named key pair held by the agent or a Secret; contents never enter the IR."""

    ref: Ref


class Listener(Value, frozen=True):
    """One port of an ingress gateway."""

    source: Source
    port: int
    protocol: str
    hosts: tuple[Host, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    http: tuple[HttpRoute, ...] = ()
    grpc: tuple[GrpcRoute, ...] = ()
    tls: tuple[TlsRoute, ...] = ()
    tcp: tuple[TcpRoute, ...] = ()


class HttpGateway(Value, frozen=True, tag="http"):
    """Lets outside traffic in."""

    name: Ref
    listeners: tuple[Listener, ...] = ()


class Terminating(Value, frozen=True, tag="terminating"):
    """Lets mesh traffic out to services that are no members."""

    name: Ref
    port: int
    targets: tuple[Target, ...] = ()


Gateway = SniGateway | HttpGateway | Terminating

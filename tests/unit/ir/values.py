"""Short ways to write IR for tests."""

from __future__ import annotations

from collections.abc import Callable

from isthmus.ir.endpoint import Endpoint, EndpointSet, Health, SetState
from isthmus.ir.names import Default, Origin, Ref, TargetId
from isthmus.ir.outbound import (
    Detect,
    GrpcRoute,
    GrpcRule,
    HttpRoute,
    HttpRule,
    Outbound,
    Protocol,
    TcpRoute,
    TlsRoute,
)
from isthmus.ir.rules import GrpcMatch, HttpMatch, Match, PathMatch, ValueMatch
from isthmus.ir.target import Target, To

PARENT = Ref("east", "", "Service", "mesh", "echo")


def origin(name: str, path: str = "") -> Origin:
    return Origin(Ref("east", "gateway.networking.k8s.io", "HTTPRoute", "mesh", name), path)


def target(name: str, cluster: str = "east") -> Target:
    return Target(TargetId(cluster, "mesh", name, 80))


def to(name: str, weight: int = 1, **more: object) -> To:
    return To(target(name), origin(name), weight, **more)  # type: ignore[arg-type]


def prefix(path: str) -> HttpMatch:
    return HttpMatch(path=PathMatch(Match.PREFIX, path))


def exact(path: str) -> HttpMatch:
    return HttpMatch(path=PathMatch(Match.EXACT, path))


def header(name: str, value: str) -> ValueMatch:
    return ValueMatch(name, Match.EXACT, value)


def rule(name: str, *matches: HttpMatch, **more: object) -> HttpRule:
    more.setdefault("backends", (to(name),))
    return HttpRule(origin(name), matches, **more)  # type: ignore[arg-type]


def route(*rules: HttpRule, **more: object) -> HttpRoute:
    return HttpRoute(rules[0].source, rules=rules, **more)  # type: ignore[arg-type]


def call(name: str, *matches: GrpcMatch, **more: object) -> GrpcRoute:
    more.setdefault("backends", (to(name),))
    made = GrpcRule(origin(name), matches, **more)  # type: ignore[arg-type]
    return GrpcRoute(made.source, rules=(made,))


def tcp(name: str, **more: object) -> TcpRoute:
    more.setdefault("backends", (to(name),))
    return TcpRoute(origin(name), **more)  # type: ignore[arg-type]


def tls(name: str, **more: object) -> TlsRoute:
    more.setdefault("backends", (to(name),))
    return TlsRoute(origin(name), **more)  # type: ignore[arg-type]


def toward(protocol: Protocol) -> Outbound:
    return Outbound(PARENT, Default("test"), 80, protocol)


def http(*routes: HttpRoute) -> Outbound:
    """Detection, with these routes for HTTP."""
    return toward(Detect(10_000, http=routes))


def behind(*names: str, health: Health = Health.HEALTHY) -> Callable[[TargetId], EndpointSet]:
    """One endpoint behind each of these services (`name` or `name@cluster`), none elsewhere."""
    known = {tuple(name.split("@")) if "@" in name else (name, "east") for name in names}

    def endpoints(asked: TargetId) -> EndpointSet:
        if (asked.service, asked.cluster) not in known:
            return EndpointSet()
        return EndpointSet((Endpoint("10.0.0.1", 8080, health),), state=SetState.SOME)

    return endpoints


class Everybody:
    """One endpoint behind every service."""

    def __call__(self, _asked: TargetId) -> EndpointSet:
        return EndpointSet((Endpoint("10.0.0.1", 8080),), state=SetState.SOME)


EVERYBODY = Everybody()

"""An inbound Server as cases write it, and in what it is not as wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from isthmus.proto.linkerd import grpc_route_pb2 as grpc
from isthmus.proto.linkerd import http_route_pb2 as http
from isthmus.proto.linkerd import http_types_pb2 as types
from isthmus.proto.linkerd import inbound_pb2 as pb
from isthmus.proto.linkerd import meta_pb2 as meta
from isthmus.proto.linkerd import net_pb2 as net

ANYWHERE = ["0.0.0.0/0", "::/0"]


def shown(server: pb.Server, cluster: Sequence[str]) -> dict[str, Any]:
    """The whole of it; `cluster` are the networks that are called so."""
    kind = server.protocol.WhichOneof("kind") or ""
    said = getattr(server.protocol, kind)
    calls = kind == "grpc"
    routes = getattr(said, "http_routes" if kind == "detect" else "routes", ())
    limits = "http_local_rate_limit" if kind == "detect" else "local_rate_limit"
    limited = kind in ("detect", "http1", "http2") and said.HasField(limits)
    return {
        "ref": _ref(server.labels),
        "protocol": kind,
        "timeout": said.timeout.seconds if kind == "detect" else None,
        "authz": [_authorization(one, cluster) for one in server.authorizations],
        "http": [_route(one, cluster) for one in (() if calls else routes)],
        "grpc": [_route(one, cluster) for one in (routes if calls else ())],
        "limit": _limit(getattr(said, limits)) if limited else None,
    }


def _ref(labels: Mapping[str, str]) -> dict[str, str]:
    if labels["kind"] == "default":
        assert labels["group"] == ""
        return {"default": labels["name"]}
    assert labels["group"] == "policy.linkerd.io"
    return {labels["kind"]: labels["name"]}


def _authorization(one: pb.Authz, cluster: Sequence[str]) -> dict[str, Any]:
    source = one.metadata
    named = (
        {"kind": "default", "name": source.default}
        if source.WhichOneof("kind") == "default"
        else {"kind": source.resource.kind, "name": source.resource.name}
    )
    assert (one.labels["kind"], one.labels["name"]) == tuple(named.values())
    return {**named, "nets": _networks(one, cluster), "auth": _proof(one.authentication)}


def _networks(one: pb.Authz, cluster: Sequence[str]) -> Any:  # noqa: ANN401 - as cases write it
    found: list[Any] = []
    for each in one.networks:
        holes = [_block(hole) for hole in getattr(each, "except")]
        found.append([_block(each.net), *holes] if holes else _block(each.net))
    words = {"anywhere": ANYWHERE, "cluster": list(cluster)}
    return next((word for word, some in words.items() if some == found), found)


def _block(said: net.IPNetwork) -> str:
    if said.ip.WhichOneof("ip") == "ipv4":
        return f"{IPv4Address(said.ip.ipv4)}/{said.prefix_len}"
    return f"{IPv6Address(said.ip.ipv6.first << 64 | said.ip.ipv6.last)}/{said.prefix_len}"


def _proof(said: pb.Authn) -> Any:  # noqa: ANN401 - as cases write it
    if said.WhichOneof("permit") == "unauthenticated":
        return "none"
    if said.meshTLS.WhichOneof("clients") == "unauthenticated":
        return "tls"
    clients = said.meshTLS.identities
    suffixes = [list(one.parts) for one in clients.suffixes]
    return [*(one.name for one in clients.identities), *suffixes]


def _route(one: pb.HttpRoute | pb.GrpcRoute, cluster: Sequence[str]) -> dict[str, Any]:
    return {
        "route": _source(one.metadata),
        "matches": [_match(match) for rule in one.rules for match in rule.matches],
        "authz": [_authorization(each, cluster) for each in one.authorizations],
    }


def _source(said: meta.Metadata) -> Any:  # noqa: ANN401 - as cases write it
    if said.WhichOneof("kind") == "default":
        return said.default
    assert said.resource.kind in ("HTTPRoute", "GRPCRoute")
    return [said.resource.group, said.resource.name]


def _match(said: http.HttpRouteMatch | grpc.GrpcRouteMatch) -> dict[str, str]:
    if isinstance(said, grpc.GrpcRouteMatch):
        return {"service": said.rpc.service, "method": said.rpc.method}
    kind = said.path.WhichOneof("kind") or "path"
    found: dict[str, str] = {kind: getattr(said.path, kind, "")}
    if said.HasField("method"):
        found["method"] = types.HttpMethod.Registered.Name(said.method.registered)
    return found


def _limit(said: pb.HttpLocalRateLimit) -> dict[str, Any]:
    overrides = [
        [one.limit.requestsPerSecond, *(each.name for each in one.clients.identities)]
        for one in said.overrides
    ]
    return {
        "name": said.metadata.resource.name,
        "total": said.total.requestsPerSecond,
        "identity": said.identity.requestsPerSecond,
        "overrides": overrides,
    }


def faults(found: Any, wanted: Any, at: str = "server") -> Iterator[str]:  # noqa: ANN401
    """In what a part is not as wanted: what is not named is free, lists are of one length."""
    if isinstance(wanted, Mapping):
        for name, value in wanted.items():
            yield from faults(found.get(name), value, f"{at}.{name}")
    elif isinstance(wanted, list) and wanted and all(isinstance(one, Mapping) for one in wanted):
        if len(found) != len(wanted):
            yield f"{at} has {len(found)} parts, not {len(wanted)}: {found}"
            return
        for number, (one, other) in enumerate(zip(_sorted(found), _sorted(wanted), strict=True)):
            yield from faults(one, other, f"{at}[{number}]")
    elif found != wanted:
        yield f"{at} is {found!r}, not {wanted!r}"


def _sorted(some: Iterable[Any]) -> list[Any]:
    """Authorizations by name; everything else as it stands."""
    listed = list(some)
    named = all("name" in one for one in listed)
    return sorted(listed, key=lambda one: str(one["name"])) if named else listed

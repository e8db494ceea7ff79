"""Profiles as DestinationProfile."""

from __future__ import annotations

from typing import Final

from isthmus.dialects.linkerd.address import duration, weighted_addr
from isthmus.ir.names import Ref
from isthmus.ir.profile import (
    All,
    Any,
    Condition,
    Method,
    Not,
    PathRegex,
    Profile,
    ProfileRoute,
    ResponseClass,
    Status,
)
from isthmus.ir.rules import Budget
from isthmus.mesh.queries import Http2Params
from isthmus.proto.linkerd import destination_pb2 as pb
from isthmus.proto.linkerd import http_types_pb2, meta_pb2

_METHODS: Final = frozenset(http_types_pb2.HttpMethod.Registered.keys())


def destination_profile(said: Profile, http2: Http2Params | None) -> pb.DestinationProfile:
    """The whole answer; for a port that its Service does not declare, an empty one."""
    if said.refused:
        return pb.DestinationProfile()
    wire = pb.DestinationProfile(
        fully_qualified_name=said.name,
        opaque_protocol=said.opaque,
        routes=[_route(each) for each in said.routes],
        retry_budget=_budget(said.budget),
        dst_overrides=[
            pb.WeightedDst(authority=each.authority, weight=each.weight) for each in said.overrides
        ],
    )
    if said.endpoint is not None:
        wire.endpoint.CopyFrom(weighted_addr(said.endpoint, http2))
    if said.parent is not None:
        wire.parent_ref.CopyFrom(metadata(said.parent, said.parent_port))
    if said.profile is not None:
        wire.profile_ref.CopyFrom(metadata(said.profile))
    return wire


def metadata(ref: Ref, port: int = 0) -> meta_pb2.Metadata:
    """A reference to an object; linkerd calls the core group `core` (decision 8)."""
    resource = meta_pb2.Resource(
        group=ref.group or "core",
        kind=ref.kind,
        name=ref.name,
        namespace=ref.namespace,
        port=port,
    )
    return meta_pb2.Metadata(resource=resource)


def _budget(said: Budget) -> pb.RetryBudget:
    return pb.RetryBudget(
        retry_ratio=said.ratio / 1000,
        min_retries_per_second=said.floor,
        ttl=duration(said.ttl),
    )


def _route(said: ProfileRoute) -> pb.Route:
    wire = pb.Route(
        condition=_request(said.condition),
        response_classes=[_class(each) for each in said.classes],
        metrics_labels={"route": said.name},
        is_retryable=said.retryable,
    )
    if said.timeout is not None:
        wire.timeout.CopyFrom(duration(said.timeout))
    return wire


def _class(said: ResponseClass) -> pb.ResponseClass:
    return pb.ResponseClass(condition=_response(said.condition), is_failure=said.failure)


def _request(said: Condition) -> pb.RequestMatch:
    match said:
        case All(of):
            seq = pb.RequestMatch.Seq(matches=[_request(each) for each in of])
            return pb.RequestMatch(all=seq)
        case Any(of):
            seq = pb.RequestMatch.Seq(matches=[_request(each) for each in of])
            return pb.RequestMatch(any=seq)
        case Not(of):
            wire = pb.RequestMatch()
            getattr(wire, "not").CopyFrom(_request(of))
            return wire
        case PathRegex(regex):
            return pb.RequestMatch(path=pb.PathMatch(regex=regex))
        case Method(name):
            return pb.RequestMatch(method=_method(name))
        case Status():
            return pb.RequestMatch()


def _method(name: str) -> http_types_pb2.HttpMethod:
    if name in _METHODS:
        registered = http_types_pb2.HttpMethod.Registered.Value(name)
        return http_types_pb2.HttpMethod(registered=registered)
    return http_types_pb2.HttpMethod(unregistered=name)


def _response(said: Condition) -> pb.ResponseMatch:
    match said:
        case All(of):
            seq = pb.ResponseMatch.Seq(matches=[_response(each) for each in of])
            return pb.ResponseMatch(all=seq)
        case Any(of):
            seq = pb.ResponseMatch.Seq(matches=[_response(each) for each in of])
            return pb.ResponseMatch(any=seq)
        case Not(of):
            wire = pb.ResponseMatch()
            getattr(wire, "not").CopyFrom(_response(of))
            return wire
        case Status(low, high):
            return pb.ResponseMatch(status=pb.HttpStatusRange(min=low, max=high))
        case PathRegex() | Method():
            return pb.ResponseMatch()

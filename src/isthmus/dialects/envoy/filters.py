"""Filters of rules in Envoy's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.type.v3 import percent_pb2 as percent

from isthmus.dialects.envoy import paths
from isthmus.ir.names import TargetId
from isthmus.ir.rules import (
    BackendFilter,
    Fail,
    Forbid,
    HeaderChange,
    Mirror,
    Redirect,
    Rewrite,
    RuleFilter,
)

AnyFilter = RuleFilter | BackendFilter

MILLION: Final = 1_000_000

_LONGEST: Final = 1_024
"""Characters of a message of our own; the proxy takes 4096 bytes."""

NO_PREFIX: Final = "a prefix is to be replaced where none matched"

_HTTP_OF: Final = {2: 500, 7: 403, 12: 404, 13: 400, 14: 503, 16: 401}
"""The HTTP status that Envoy tells a gRPC client as this code."""


# -------------------------------------------------------------------------- answers of our own


def reply(match: pb.RouteMatch, status: int, message: str) -> pb.Route:
    """An answer of the proxy itself; to gRPC it is a status of the same meaning."""
    action = pb.DirectResponseAction(status=status)
    if message:
        action.body.inline_string = message[:_LONGEST]
    wire = pb.Route(match=match)
    wire.direct_response.CopyFrom(action)
    return wire


def grpc_reply(match: pb.RouteMatch, code: int, message: str) -> pb.Route:
    """A gRPC status as the answer to what can only be a gRPC call."""
    wire = reply(match, _HTTP_OF.get(code, 500), message)
    if code not in _HTTP_OF:
        option = base.HeaderValueOption
        header = base.HeaderValue(key="grpc-status", value=str(code))
        always = option.OVERWRITE_IF_EXISTS_OR_ADD
        wire.response_headers_to_add.append(option(header=header, append_action=always))
    return wire


def answer(said: Iterable[AnyFilter], match: pb.RouteMatch) -> pb.Route | None:
    """What the first filter that answers by itself says; None if all let pass."""
    for one in said:
        found = next(answers(one, match), None)
        if found is not None and not is_share(one):
            return found
    return None


def answers(
    one: AnyFilter, match: pb.RouteMatch, *, port: int = 0, grpc: bool = False
) -> Iterator[pb.Route]:
    """What a filter answers by itself, as one route or two; nothing if it lets pass.

    `grpc`: only gRPC calls match.
    """
    match one:
        case Redirect(path=path) if not paths.possible(path, match):
            yield reply(match, 500, NO_PREFIX)
        case Redirect():
            yield from paths.redirects(one, match, port)
        case Rewrite(path=path) if not paths.possible(path, match):
            yield reply(match, 500, NO_PREFIX)
        case Forbid(message=message):
            yield reply(match, 403, message)
        case Fail() if one.numerator > 0:
            if grpc:
                yield grpc_reply(match, one.grpc, one.message)
            else:
                yield reply(match, one.status, one.message)
        case Fail() | HeaderChange() | Rewrite() | Mirror():
            pass
        case _:
            assert_never(one)


def is_share(one: AnyFilter) -> bool:
    """Whether a filter answers for a part of the requests only."""
    return isinstance(one, Fail) and 0 < one.numerator < one.denominator


def for_share(wire: pb.Route, millionths: int) -> pb.Route:
    """A route for the requests whose throw of the dice is below this."""
    part = percent.FractionalPercent(
        numerator=millionths, denominator=percent.FractionalPercent.MILLION
    )
    wire.match.runtime_fraction.CopyFrom(base.RuntimeFractionalPercent(default_value=part))
    return wire


# ------------------------------------------------------------------------ what is passed on


def apply(wire: pb.Route, action: pb.RouteAction, said: Iterable[AnyFilter]) -> None:
    """What changes a request that is passed on, and its response."""
    some = tuple(said)
    change_headers(wire, some)
    change_target(action, some, wire.match)


def change_target(action: pb.RouteAction, said: Iterable[AnyFilter], match: pb.RouteMatch) -> None:
    """Host and path on the way to the backend; the host may be written as a header, too."""
    for one in said:
        match one:
            case Rewrite():
                if one.host is not None:
                    action.host_rewrite_literal = one.host
                if one.path is not None:
                    paths.rewrite(action, one.path, match)
            case HeaderChange(on_response=False):
                for name, value in (*one.set, *one.add):
                    if name.lower() == "host":
                        action.host_rewrite_literal = value
            case _:
                pass


def mirrors(action: pb.RouteAction, said: Iterable[AnyFilter]) -> None:
    """Copies of requests, whose answers nobody waits for."""
    for one in said:
        if isinstance(one, Mirror) and one.numerator > 0:
            policy = pb.RouteAction.RequestMirrorPolicy(
                cluster=mirror_key(one), disable_shadow_host_suffix_append=True
            )
            if one.numerator < one.denominator:
                policy.runtime_fraction.default_value.numerator = (
                    one.numerator * MILLION // one.denominator
                )
                policy.runtime_fraction.default_value.denominator = (
                    percent.FractionalPercent.MILLION
                )
            action.request_mirror_policies.append(policy)


def mirror_key(one: Mirror) -> str:
    """The cluster that copies go to."""
    target: TargetId = one.target
    return target.key(one.trust_domain)


# ---------------------------------------------------------------------------------- headers

Change = tuple[str, str, bool]
"""Name, value, and whether it takes the place of what is there."""


def change_headers(
    wire: pb.Route | pb.WeightedCluster.ClusterWeight, said: Iterable[AnyFilter]
) -> None:
    """Headers of the request and of the response, after all of the changes in their order."""
    for on_response in (False, True):
        some = [
            one for one in said if isinstance(one, HeaderChange) and one.on_response == on_response
        ]
        removed, added = _composed(some)
        adding, removing = (
            (wire.response_headers_to_add, wire.response_headers_to_remove)
            if on_response
            else (wire.request_headers_to_add, wire.request_headers_to_remove)
        )
        adding.extend(_value(*each) for each in added if each[0].lower() != "host")
        removing.extend(each for each in removed if each.lower() != "host")


def _composed(changes: Iterable[HeaderChange]) -> tuple[list[str], list[Change]]:
    """One change in Envoy's order (remove, then add) for several in that of the Gateway API."""
    removed: dict[str, str] = {}
    added: list[Change] = []
    for one in changes:
        set_names = {name.lower() for name, _ in one.set}
        added = [each for each in added if each[0].lower() not in set_names]
        added += [(*pair, True) for pair in one.set]
        added += [(*pair, False) for pair in one.add]
        gone = {name.lower(): name for name in one.remove}
        added = [each for each in added if each[0].lower() not in gone]
        removed |= gone
    return list(removed.values()), added


def _value(name: str, value: str, replaces: bool) -> base.HeaderValueOption:  # noqa: FBT001
    """A header as written: a per cent sign is no format."""
    said = base.HeaderValue(key=name, value=value.replace("%", "%%"))
    option = base.HeaderValueOption
    action = option.OVERWRITE_IF_EXISTS_OR_ADD if replaces else option.APPEND_IF_EXISTS_OR_ADD
    return option(header=said, append_action=action, keep_empty_value=True)


def unsaid(said: Iterable[AnyFilter]) -> Iterator[str]:
    """The features among these that are not told to Envoy."""
    changed = (one for one in said if isinstance(one, HeaderChange) and not one.on_response)
    if any(name.lower() == "host" for one in changed for name in one.remove):
        yield "removing the host of requests"

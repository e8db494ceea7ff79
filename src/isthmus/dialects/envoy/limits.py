"""Rate limits of servers in Envoy's words: a filter that sleeps until routes wake it.

Its settings stand on the route configuration, so that all virtual hosts of a port share one set of
buckets, and a change drains nobody. Who calls is told to the filter in a header of our own, which
no caller can set and no application sees. `id:` stands before the identity, so that clients without
one share a bucket of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, assert_never

from envoy.config.common.mutation_rules.v3 import mutation_rules_pb2 as mutation
from envoy.config.core.v3 import base_pb2 as base
from envoy.config.route.v3 import route_components_pb2 as pb
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2 as common
from envoy.extensions.filters.http.header_mutation.v3 import header_mutation_pb2 as headers
from envoy.extensions.filters.http.local_ratelimit.v3 import local_rate_limit_pb2 as local
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.type.matcher.v3 import regex_pb2 as regex
from envoy.type.matcher.v3 import string_pb2 as string
from envoy.type.v3 import percent_pb2 as percent
from envoy.type.v3 import token_bucket_pb2 as bucket
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from isthmus.dialects.xds.identity import text
from isthmus.dialects.xds.rbac import LABEL
from isthmus.ir.inbound import RateLimit
from isthmus.ir.names import AnyIdentity, Dns, IdentityMatch, IdentitySuffix, Spiffe
from isthmus.proto.xds import duration, packed

LIMIT: Final = "envoy.filters.http.local_ratelimit"
MARK: Final = "envoy.filters.http.header_mutation"
CALLER: Final = "isthmus-caller"
"""The header that tells the filter who calls."""

CLIENTS: Final = 10_000
"""Clients whose use is remembered; of more, the one heard of longest ago is forgotten."""

_SECOND: Final = 1_000
_ALL: Final = base.RuntimeFractionalPercent(default_value=percent.FractionalPercent(numerator=100))
_UNLIMITED: Final = 2**32 - 1
_OVERRIDE: Final = "override"
_OTHERS: Final = "others"
_CLIENT: Final = "client"


def sleeping() -> list[hcm.HttpFilter]:
    """The filters, in their order, which cost nothing before routes enable them."""
    return [
        hcm.HttpFilter(name=MARK, typed_config=packed(headers.HeaderMutation()), disabled=True),
        hcm.HttpFilter(
            name=LIMIT,
            typed_config=packed(local.LocalRateLimit(stat_prefix="inbound")),
            disabled=True,
        ),
    ]


def settings(said: RateLimit) -> dict[str, Any]:
    """What the routes of a port enable."""
    return {MARK: packed(_marking()), LIMIT: packed(_limiting(said))}


def awake(said: RateLimit | None) -> bool:
    """Whether a limit limits anything."""
    return said is not None and bool(said.total or said.each or said.overrides)


def off() -> dict[str, Any]:
    """What a route says that is not to be counted: one that answers by itself."""
    return {LIMIT: packed(pb.FilterConfig(disabled=True))}


def _marking() -> headers.HeaderMutationPerRoute:
    said = base.HeaderValue(key=CALLER, value="id:%DOWNSTREAM_PEER_DNS_SAN%")
    option = base.HeaderValueOption(
        header=said, append_action=base.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
    )
    change = mutation.HeaderMutation(append=option)
    return headers.HeaderMutationPerRoute(mutations=headers.Mutations(request_mutations=[change]))


def _limiting(said: RateLimit) -> local.LocalRateLimit:
    """The total counts every request; beside it, each client counts in one other bucket."""
    return local.LocalRateLimit(
        stat_prefix="inbound",
        token_bucket=_per_second(said.total or _UNLIMITED),
        filter_enabled=_ALL,
        filter_enforced=_ALL,
        always_consume_default_token_bucket=BoolValue(value=said.total is not None),
        rate_limited_as_resource_exhausted=True,
        descriptors=_buckets(said),
        rate_limits=_choices(said),
        max_dynamic_descriptors=UInt32Value(value=CLIENTS),
    )


def _per_second(rate: int) -> bucket.TokenBucket:
    return bucket.TokenBucket(
        max_tokens=rate,
        tokens_per_fill=UInt32Value(value=rate),
        fill_interval=duration(_SECOND),
    )


def _buckets(said: RateLimit) -> Iterator[common.LocalRateLimitDescriptor]:
    entry = common.RateLimitDescriptor.Entry
    for at, one in enumerate(said.overrides):
        yield common.LocalRateLimitDescriptor(
            entries=[entry(key=_OVERRIDE, value=str(at))], token_bucket=_per_second(one.per_second)
        )
    if said.each is not None:
        yield common.LocalRateLimitDescriptor(
            entries=[entry(key=_OTHERS, value=_OTHERS), entry(key=_CLIENT)],
            token_bucket=_per_second(said.each),
        )


def _choices(said: RateLimit) -> Iterator[pb.RateLimit]:
    """Which bucket a client counts in: that of the first override that names it, else its own."""
    named: list[str] = []
    for at, one in enumerate(said.overrides):
        fresh = [each for each in map(_pattern, one.identities) if each not in named]
        named += fresh
        if fresh:
            yield pb.RateLimit(actions=[_is_one_of(fresh, _OVERRIDE, str(at))])
    if said.each is not None:
        own = pb.RateLimit.Action.RequestHeaders(header_name=CALLER, descriptor_key=_CLIENT)
        others = _is_one_of(named, _OTHERS, _OTHERS, expected=False)
        yield pb.RateLimit(actions=[others, pb.RateLimit.Action(request_headers=own)])


def _is_one_of(
    patterns: Sequence[str], key: str, value: str, *, expected: bool = True
) -> pb.RateLimit.Action:
    """Whether the caller is one of these (or none, if that is expected), as a word for buckets."""
    whole = f"id:(?:{'|'.join(patterns)})" if patterns else "nobody"
    matcher = string.StringMatcher(safe_regex=regex.RegexMatcher(regex=whole))
    return pb.RateLimit.Action(
        header_value_match=pb.RateLimit.Action.HeaderValueMatch(
            descriptor_key=key,
            descriptor_value=value,
            expect_match=BoolValue(value=expected),
            headers=[pb.HeaderMatcher(name=CALLER, string_match=matcher)],
        )
    )


def _pattern(match: IdentityMatch) -> str:
    match match:
        case Dns() | Spiffe():
            return re.escape(text(match))
        case IdentitySuffix(labels=labels):
            return rf"(?:{LABEL}\.)+{re.escape('.'.join(labels))}"
        case AnyIdentity():
            return f"{LABEL}.*"
        case _:
            assert_never(match)

"""Authorizations as role-based access rules.

No rules at all mean that nothing is asked. Clients on the loopback are always let in.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, assert_never

import msgspec
from envoy.config.core.v3 import address_pb2 as address
from envoy.config.rbac.v3 import rbac_pb2 as pb
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network
from envoy.type.matcher.v3 import regex_pb2 as regex
from envoy.type.matcher.v3 import string_pb2 as string
from google.protobuf.any_pb2 import Any
from google.protobuf.wrappers_pb2 import UInt32Value

from isthmus.dialects.xds.identity import text
from isthmus.ir.decide.inbound import LOOPBACK
from isthmus.ir.inbound import Anybody, Authentication, Authorization, Network, Peers, TlsOnly
from isthmus.ir.names import (
    AnyIdentity,
    Default,
    Dns,
    IdentityMatch,
    IdentitySuffix,
    Origin,
    Source,
    Spiffe,
)
from isthmus.proto.xds import packed

HTTP_FILTER: Final = "envoy.filters.http.rbac"
NETWORK_FILTER: Final = "envoy.filters.network.rbac"

_ALL: Final = frozenset({"0.0.0.0/0", "::/0"})
_EVERY: Final = pb.Permission(any=True)
LABEL: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
"""One label of a DNS identity, as an expression."""


def unrestricted(authorizations: Iterable[Authorization]) -> bool:
    """Whether everybody is admitted, without it being worth a word (an audit is)."""
    return opened_by(authorizations) is not None


def opened_by(authorizations: Iterable[Authorization]) -> Source | None:
    """Who admits everybody, so that no rule needs to ask."""
    for one in authorizations:
        if isinstance(one.authentication, Anybody) and not one.audit and _anywhere(one.networks):
            return one.source
    return None


def rules(authorizations: Sequence[Authorization]) -> pb.RBAC:
    """What these admit, and whoever is on the same machine."""
    policies = {
        policy_name(one): _policy(one) for one in (*authorizations, LOOPBACK) if one.networks
    }
    return pb.RBAC(action=pb.RBAC.ALLOW, policies=policies)


def policy_name(one: Authorization) -> str:
    """What a policy is called, for metrics.

    Envoy tries policies by the order of their names and tells the first that fits. One that only
    audits must come last: `~default/audit`.
    """
    return f"~{name(one.source)}" if one.audit else name(one.source)


def _policy(one: Authorization) -> pb.Policy:
    return pb.Policy(permissions=[_EVERY], principals=[_principal(one)])


def name(source: Source) -> str:
    """`default/all-authenticated`, `authorizationpolicy/shop/cart`."""
    match source:
        case Default(name=word):
            return f"default/{word}"
        case Origin(ref=ref):
            return f"{ref.kind.lower()}/{ref.namespace}/{ref.name}"
        case _:
            assert_never(source)


def per_route(authorizations: Sequence[Authorization]) -> Any:
    """Rules of a route, instead of those that stand above it; none asked, none enforced."""
    if unrestricted(authorizations):
        return nothing_asked()
    return packed(http.RBACPerRoute(rbac=http.RBAC(rules=rules(authorizations))))


def nothing_asked() -> Any:
    """A route that everybody may have."""
    return packed(http.RBACPerRoute())


def nobody() -> Any:
    """A route that nobody may have."""
    return packed(http.RBACPerRoute(rbac=http.RBAC(rules=pb.RBAC(action=pb.RBAC.ALLOW))))


def for_connections(authorizations: Sequence[Authorization]) -> Any:
    """Rules of a chain that passes bytes."""
    return packed(network.RBAC(rules=rules(authorizations), stat_prefix="inbound"))


def left_to_ask(
    authorizations: Iterable[Authorization], *, meshed: bool
) -> tuple[Authorization, ...]:
    """What is still open once it is known whether a client came by mesh TLS.

    Without it, nobody is anybody; with it, everybody is somebody.
    """
    if not meshed:
        return tuple(one for one in authorizations if isinstance(one.authentication, Anybody))
    return tuple(
        msgspec.structs.replace(one, authentication=Anybody()) if _somebody(one) else one
        for one in authorizations
    )


def _somebody(one: Authorization) -> bool:
    match one.authentication:
        case Peers(identities=identities):
            return AnyIdentity() in identities
        case Anybody() | TlsOnly():
            return True
        case _:
            assert_never(one.authentication)


# ---------------------------------------------------------------------------- principals


def _principal(one: Authorization) -> pb.Principal:
    parts = [] if _anywhere(one.networks) else [_either(map(_network, one.networks))]
    proof = _authenticated(one.authentication)
    parts += [proof] if proof is not None else []
    if not parts:
        return pb.Principal(any=True)
    return parts[0] if len(parts) == 1 else pb.Principal(and_ids=pb.Principal.Set(ids=parts))


def _anywhere(networks: Iterable[Network]) -> bool:
    return {one.cidr for one in networks if not one.excepts} >= _ALL


def _network(one: Network) -> pb.Principal:
    within = _range(one.cidr)
    if not one.excepts:
        return within
    outside = pb.Principal(not_id=_either(map(_range, one.excepts)))
    return pb.Principal(and_ids=pb.Principal.Set(ids=[within, outside]))


def _range(cidr: str) -> pb.Principal:
    return pb.Principal(direct_remote_ip=cidr_range(cidr))


@lru_cache(maxsize=1 << 12)
def cidr_range(cidr: str) -> address.CidrRange:
    """A network; host bits do not count, a single address is a network of one.

    Remembered, so nobody may change it: each port of each EgressNetwork names the same ones again.
    """
    found = ipaddress.ip_network(cidr, strict=False)
    return address.CidrRange(
        address_prefix=str(found.network_address), prefix_len=UInt32Value(value=found.prefixlen)
    )


def _either(parts: Iterable[pb.Principal]) -> pb.Principal:
    """Any of these; of none, nobody."""
    some = list(parts)
    if not some:
        return pb.Principal(not_id=pb.Principal(any=True))
    return some[0] if len(some) == 1 else pb.Principal(or_ids=pb.Principal.Set(ids=some))


def _authenticated(asked: Authentication) -> pb.Principal | None:
    match asked:
        case Anybody():
            return None
        case TlsOnly():
            return pb.Principal(authenticated=pb.Principal.Authenticated())
        case Peers(identities=identities):
            return _either(map(_peer, identities))
        case _:
            assert_never(asked)


def _peer(match: IdentityMatch) -> pb.Principal:
    match match:
        case AnyIdentity():
            return _named(string.StringMatcher(safe_regex=_regex(".+")))
        case Dns() | Spiffe():
            return _named(string.StringMatcher(exact=text(match)))
        case IdentitySuffix(labels=labels):
            suffix = re.escape(".".join(labels))
            front = rf"(?:{LABEL}\.)+"
            return _named(string.StringMatcher(safe_regex=_regex(front + suffix)))
        case _:
            assert_never(match)


def _named(matcher: string.StringMatcher) -> pb.Principal:
    """Some name of the certificate: URI, DNS or subject."""
    return pb.Principal(authenticated=pb.Principal.Authenticated(principal_name=matcher))


def _regex(pattern: str) -> regex.RegexMatcher:
    return regex.RegexMatcher(regex=pattern)

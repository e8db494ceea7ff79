"""What of an Inbound a linkerd2-proxy cannot be told or does not do: conditions, never silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isthmus.dialects.linkerd.faults import DIALECT
from isthmus.dialects.linkerd.rules import grpc_match, http_matches
from isthmus.engine import View, query
from isthmus.ir.faults import Unsupported
from isthmus.ir.inbound import Inbound, paths_decide
from isthmus.ir.names import AnyIdentity, IdentitySuffix, Source
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import HeaderChange, Mirror, Redirect, Rewrite, RuleFilter
from isthmus.mesh.queries import ObjectKey, behind_linkerd, described_ports, inbound

RAW_PATHS: Final = "RawPathMatching"
_RAW: Final = "paths are compared as they were sent: //, %2e or ; may lead past a route"


@query
def inbound_faults(db: View, name: InboundName) -> tuple[Unsupported, ...]:
    """What a server's linkerd2-proxy will not do on a port as it is written."""
    return tuple(dict.fromkeys(faults_of(inbound(db, name))))


@query
def server_faults(db: View, server: ObjectKey) -> tuple[Unsupported, ...]:
    """The same of all ports that a Server describes, where a linkerd2-proxy stands before them."""
    told = (
        inbound_faults(db, name)
        for name in described_ports(db, server)
        if behind_linkerd(db, name.workload)
    )
    return tuple(dict.fromkeys(fault for faults in told for fault in faults))


def faults_of(found: Inbound) -> Iterator[Unsupported]:
    """What is not done of an Inbound; a fault may come more than once."""
    for route in found.http_routes:
        if paths_decide((route,)):
            for source in (route.source, *(one.source for one in route.authorizations)):
                yield Unsupported(source, RAW_PATHS, DIALECT, _RAW)
        for rule in route.rules:
            yield from _filters(route.source, rule.filters, grpc=False)
            if not all(list(http_matches(one)) for one in rule.matches):
                yield _unmatched(route.source)
    for call in found.grpc_routes:
        for calls in call.rules:
            yield from _filters(call.source, calls.filters, grpc=True)
            if any(grpc_match(one) is None for one in calls.matches):
                yield _unmatched(call.source)
    yield from _overrides(found)


def _unmatched(source: Source) -> Unsupported:
    why = "a match by expression of a call, or one that is turned round, is left out"
    return Unsupported(source, "Matches", DIALECT, why)


def _filters(source: Source, filters: Iterable[RuleFilter], *, grpc: bool) -> Iterator[Unsupported]:
    for one in filters:
        match one:
            case HeaderChange(on_response=True):
                why = "headers of responses are not changed where requests arrive"
                yield Unsupported(source, "ResponseHeaderModifier", DIALECT, why)
            case Mirror():
                yield Unsupported(source, "RequestMirror", DIALECT, "no copies are made")
            case Rewrite():
                why = "requests that would be rewritten are answered with 500"
                yield Unsupported(source, "URLRewrite", DIALECT, why)
            case Redirect() if grpc:
                why = "calls that would be redirected are answered with INTERNAL"
                yield Unsupported(source, "RequestRedirect", DIALECT, why)
            case _:
                continue


def _overrides(found: Inbound) -> Iterator[Unsupported]:
    limit = found.rate_limit
    if limit is None:
        return
    for one in limit.overrides:
        if any(isinstance(each, IdentitySuffix | AnyIdentity) for each in one.identities):
            why = "allowances are for identities spelt out, not for many at once"
            yield Unsupported(limit.source, "RateOverrides", DIALECT, why)

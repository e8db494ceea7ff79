"""Which cluster addresses a Service wants: type, families, requested addresses. Pure.

The rules are Kubernetes' (Service API, "IPv4/IPv6 dual-stack"): families follow the policy, a
requested address decides the family of its place, and what was given once is kept.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from isthmus.errors import Cause
from isthmus.model import faults
from isthmus.model.document import mapping, strings, text
from isthmus.model.kind import Document

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

IPV4, IPV6 = "IPv4", "IPv6"
NONE = "None"
"""The clusterIP of a headless Service."""

SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


class Wanted(NamedTuple):
    """What a Service should have. `requested[i]` is the address for `families[i]`, "" for any."""

    policy: str
    families: tuple[str, ...]
    requested: tuple[str, ...]
    headless: bool
    faults: tuple[Cause, ...] = ()


def family_of(address: str) -> str:
    """`IPv4` or `IPv6`, "" for text that is no address."""
    try:
        return IPV6 if ipaddress.ip_address(address).version == 6 else IPV4
    except ValueError:
        return ""


def family_of_network(network: Network) -> str:
    """`IPv4` or `IPv6`."""
    return IPV6 if network.version == 6 else IPV4


def is_external(service: Document | None) -> bool:
    """Whether the Service is only a name for something else, or does not exist."""
    return service is None or text(service, "spec.type") == "ExternalName"


def addresses_of(service: Document | None) -> tuple[str, ...]:
    """The cluster addresses a Service holds now; none when headless or external.

    What is stored may break every rule, and must still be mended and deleted.
    """
    if service is None or is_external(service):
        return ()
    return tuple(ip for ip in _listed(mapping(service, "spec")) if ip not in ("", NONE))


def _listed(spec: Document) -> list[str]:
    first = text(spec, "clusterIP")
    return strings(spec, "clusterIPs") or ([first] if first else [])


def wanted(new: Document, old: Document | None, served: Sequence[str]) -> Wanted:
    """What `new` asks for, with what `old` already has; `served` are the cluster's families."""
    spec, before = mapping(new, "spec"), {} if is_external(old) else mapping(old, "spec")
    asked = _asked(spec, before)
    headless = asked[:1] == [NONE]
    requested = [] if headless else asked
    policy, families, found = _families(spec, before, requested, served, headless=headless)
    found += _changed(before, asked) + _unreadable(requested)
    found += [
        faults.invalid(f"spec.clusterIPs[{at}]", address, f"expected an {family} value")
        for at, (family, address) in enumerate(zip(families, requested, strict=False))
        if family_of(address) not in ("", family)
    ]
    padded = (*requested, *("" for _ in families))[: len(families)]
    return Wanted(policy, tuple(families), padded, headless, tuple(found))


def _asked(spec: Document, before: Document) -> list[str]:
    """The addresses the writer names, or those it left out because it does not know them."""
    first, listed = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or [])
    held = _listed(before)
    if first and not listed:
        return [first]  # a writer that knows only the older field
    return listed or held


def _changed(before: Document, asked: Sequence[str]) -> list[Cause]:
    held = _listed(before)
    if held and asked and held[0] != asked[0]:
        return [faults.invalid("spec.clusterIPs[0]", list(asked), "may not change once set")]
    return []


def _unreadable(requested: Sequence[str]) -> list[Cause]:
    return [
        faults.invalid(
            f"spec.clusterIPs[{at}]", address, "must be empty, 'None', or a valid IP address"
        )
        for at, address in enumerate(requested)
        if address and not family_of(address)
    ]


def _families(
    spec: Document,
    before: Document,
    requested: Sequence[str],
    served: Sequence[str],
    *,
    headless: bool,
) -> tuple[str, list[str], list[Cause]]:
    """(policy, families in order, faults)."""
    listed = list(spec.get("ipFamilies") or [])
    free = headless and not spec.get("selector")  # addresses come from hand-made endpoints
    policy = spec.get("ipFamilyPolicy") or (REQUIRE if free and not listed else SINGLE)
    known = listed or [family for address in requested if (family := family_of(address))]
    known = known or strings(before, "ipFamilies") or list(served[:1])
    if policy == SINGLE:
        if len(listed) > 1 and listed != before.get("ipFamilies"):
            return policy, known[:1], [_needs_policy("spec.ipFamilies")]
        if len(requested) > 1 and list(requested) != _listed(before):
            return policy, known[:1], [_needs_policy("spec.clusterIPs")]
        known = known[:1]
    elif len(served) > 1 or free:
        known = known[:2] if len(known) > 1 else [known[0], IPV4 if known[0] == IPV6 else IPV6]
    elif policy == REQUIRE:
        why = "this cluster is not configured for dual-stack services"
        return policy, known[:1], [faults.invalid("spec.ipFamilyPolicy", policy, why)]
    else:
        known = known[:1]
    found = [] if free else [_unserved(at, f) for at, f in enumerate(known) if f not in served]
    return policy, known, found


def _needs_policy(path: str) -> Cause:
    return Cause(path, "two families need ipFamilyPolicy PreferDualStack or RequireDualStack")


def _unserved(at: int, family: str) -> Cause:
    return faults.invalid(f"spec.ipFamilies[{at}]", family, "not configured on this cluster")

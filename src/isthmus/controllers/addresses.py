"""ClusterIP allotment: an admission that gives every Service its addresses, each to one only.

A reservation is a record of its own (`isthmus-clusterips`), compared as absent and written in the
transaction that writes the Service, and removed in the one that removes it. Two writers that choose
one address cannot both land, and nothing can leak: there is no second place to repair.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Sequence

from isthmus.controllers.families import (
    NONE,
    Network,
    Wanted,
    addresses_of,
    family_of,
    family_of_network,
    is_external,
    wanted,
)
from isthmus.controllers.refusal import refuse
from isthmus.controllers.steps import canonical
from isthmus.errors import Cause
from isthmus.model import faults
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.store.contract import Compare, Delete, Op, Put, Store
from isthmus.store.objects import Proposed, Verdict

RESERVED = "isthmus-clusterips"
"""The resource part of reservation keys; no API serves it."""

TRIES = 16
"""Single look-ups before the whole list of reservations is read."""


class ClusterAddresses:
    """Admission for Services: fills clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy."""

    def __init__(self, store: Store, ranges: Sequence[Network]) -> None:
        """`ranges`: one network, or one per family with the default family first."""
        self._store = store
        self._ranges = {family_of_network(network): network for network in ranges}

    async def admit(self, proposed: Proposed) -> Verdict:
        """The Service with its addresses. Invalid if one is taken, out of range or of no family."""
        if proposed.kind.resource != "services" or proposed.subresource:
            return Verdict(proposed.new)
        held = addresses_of(proposed.old)
        if proposed.new is None or is_external(proposed.new):
            released = tuple(Delete(Key(RESERVED, "", ip)) for ip in held)
            return Verdict(_without_addresses(proposed.new), ops=released)
        plan = wanted(proposed.new, proposed.old, tuple(self._ranges))
        if plan.faults:
            raise refuse(proposed, plan.faults)
        addresses = () if plan.headless else await self._choose(proposed, plan, held)
        document = _with_addresses(proposed.new, plan, addresses)
        compares, ops = _reservations(proposed, held, addresses)
        return Verdict(document, compares, ops)

    async def _choose(
        self, proposed: Proposed, plan: Wanted, held: Sequence[str]
    ) -> tuple[str, ...]:
        kept = {family_of(address): address for address in held}
        chosen: list[str] = []
        for at, family in enumerate(plan.families):
            asked = plan.requested[at] or kept.get(family, "")
            if not asked:
                asked = await self._free(proposed, self._ranges[family])
            elif asked not in held:
                asked = await self._honour(proposed, at, asked, self._ranges[family])
            chosen.append(asked)
        return tuple(chosen)

    async def _honour(self, proposed: Proposed, at: int, address: str, network: Network) -> str:
        ip = ipaddress.ip_address(address)
        if ip not in network or ip in _unusable(network):
            text = f"failed to allocate IP {address}: the provided IP is not in the valid range"
            text += f". The range of valid IPs is {network}"
            raise refuse(proposed, [faults.invalid("spec.clusterIPs", [address], text)])
        if await self._store.get(Key(RESERVED, "", str(ip))) is not None:
            text = f"failed to allocate IP {address}: provided IP is already allocated"
            raise refuse(proposed, [faults.invalid("spec.clusterIPs", [address], text)])
        return str(ip)

    async def _free(self, proposed: Proposed, network: Network) -> str:
        candidates = _candidates(network, f"{proposed.namespace}/{proposed.name}")
        for _, ip in zip(range(TRIES), candidates, strict=False):
            if await self._store.get(Key(RESERVED, "", ip)) is None:
                return ip
        taken = {record.key.name for record in (await self._store.list(RESERVED)).records}
        for ip in _candidates(network, ""):
            if ip not in taken:
                return ip
        text = f"failed to allocate a serviceIP: range {network} is full"
        raise refuse(proposed, [Cause("spec.clusterIPs", text)])


def _unusable(network: Network) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    """The network's own address, and IPv4's broadcast address."""
    return (network[0],) if network.version == 6 else (network[0], network[-1])


def _candidates(network: Network, seed: str) -> Iterator[str]:
    """Addresses to try, all of them in the end; the first ones depend on `seed`.

    As in Kubernetes, the low end (16 to 256 addresses) is left to those who ask for an address by
    number, until nothing else is free.
    """
    first, last = 1, network.num_addresses - 1 - (network.version == 4)
    if last < first:
        return
    low = min(max(16, network.num_addresses // 16), 256)
    low = low if low < last else first
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big") % (last - low + 1)
    # An IPv6 range is far larger than what can ever be reserved in it.
    span = min(last - low + 1, 1 << 20)
    for step in range(span):
        yield str(network[low + (start + step) % (last - low + 1)])
    for offset in range(first, low):
        yield str(network[offset])


def _with_addresses(new: Document, plan: Wanted, addresses: Sequence[str]) -> Document:
    listed = [NONE] if plan.headless else list(addresses)
    spec = new["spec"] | {
        "clusterIP": listed[0],
        "clusterIPs": listed,
        "ipFamilies": list(plan.families),
        "ipFamilyPolicy": plan.policy,
    }
    return new | {"spec": spec}


def _without_addresses(new: Document | None) -> Document | None:
    if new is None:
        return None
    own = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    return new | {"spec": {name: v for name, v in new.get("spec", {}).items() if name not in own}}


def _reservations(
    proposed: Proposed, held: Sequence[str], addresses: Sequence[str]
) -> tuple[tuple[Compare, ...], tuple[Op, ...]]:
    holder = canonical({"namespace": proposed.namespace, "name": proposed.name})
    new = [Key(RESERVED, "", ip) for ip in addresses if ip not in held]
    released = [Key(RESERVED, "", ip) for ip in held if ip not in addresses]
    ops: list[Op] = [Put(key, holder) for key in new]
    ops += [Delete(key) for key in released]
    return tuple(Compare(key, 0) for key in new), tuple(ops)

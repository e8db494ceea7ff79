"""Node ports: an admission that gives NodePort and LoadBalancer Services ports that no other has.

Reserved like cluster addresses (see `addresses`), under `isthmus-nodeports`. One number serves one
Service, which may use it for TCP and UDP both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from isthmus.controllers.refusal import refuse
from isthmus.controllers.steps import canonical
from isthmus.errors import Cause
from isthmus.model import faults
from isthmus.model.document import items, number, text
from isthmus.model.key import Key
from isthmus.model.kind import Document
from isthmus.store.contract import Compare, Delete, Op, Put, Store
from isthmus.store.objects import Proposed, Verdict

RESERVED = "isthmus-nodeports"
FIRST, LAST = 30000, 32767
"""Kubernetes' default --service-node-port-range."""

TRIES = 16


class Want(NamedTuple):
    """One number that a Service wants: its path, and the number asked for or held (0: any)."""

    path: str
    port: int


class NodePorts:
    """Admission for Services: fills spec.ports[*].nodePort and spec.healthCheckNodePort."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, proposed: Proposed) -> Verdict:
        """The Service with its node ports. Invalid if one is taken, out of range or of no use."""
        if proposed.kind.resource != "services" or proposed.subresource:
            return Verdict(proposed.new)
        held = held_ports(proposed.old)
        if proposed.new is None:
            return Verdict(None, ops=tuple(Delete(_key(port)) for port in sorted(held)))
        wants = wanted_ports(proposed.new, proposed.old)
        given = await self._give(proposed, wants, held)
        document = _filled(proposed.new, given)
        now = held_ports(document)
        holder = canonical({"namespace": proposed.namespace, "name": proposed.name})
        ops: list[Op] = [Put(_key(port), holder) for port in sorted(now - held)]
        ops += [Delete(_key(port)) for port in sorted(held - now)]
        return Verdict(
            document, tuple(Compare(_key(port), 0) for port in sorted(now - held)), tuple(ops)
        )

    async def _give(
        self, proposed: Proposed, wants: Sequence[Want], held: frozenset[int]
    ) -> Mapping[str, int]:
        given: dict[str, int] = {}
        found: list[Cause] = []
        used = {want.port for want in wants}
        for want in wants:
            port = want.port or await self._free(proposed, want.path, used)
            used.add(port)
            given[want.path] = port
            if want.port and want.port not in held:
                found += await self._faults(want)
        if found:
            raise refuse(proposed, found)
        return given

    async def _faults(self, want: Want) -> list[Cause]:
        if not FIRST <= want.port <= LAST:
            text = "provided port is not in the valid range"
            text += f". The range of valid ports is {FIRST}-{LAST}"
            return [faults.invalid(want.path, want.port, text)]
        if await self._store.get(_key(want.port)) is not None:
            return [faults.invalid(want.path, want.port, "provided port is already allocated")]
        return []

    async def _free(self, proposed: Proposed, path: str, used: set[int]) -> int:
        candidates = _candidates(f"{proposed.namespace}/{proposed.name}/{path}", used)
        for _, port in zip(range(TRIES), candidates, strict=False):
            if await self._store.get(_key(port)) is None:
                return port
        taken = {record.key.name for record in (await self._store.list(RESERVED)).records}
        for port in _candidates("", used):
            if str(port) not in taken:
                return port
        raise refuse(proposed, [Cause(path, "failed to allocate a nodePort: range is full")])


def _key(port: int) -> Key:
    return Key(RESERVED, "", str(port))


def _candidates(seed: str, used: set[int]) -> Iterator[int]:
    """Every port of the range, from a place that depends on `seed`, but not those in `used`."""
    size = LAST - FIRST + 1
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big") % size
    for step in range(size):
        port = FIRST + (start + step) % size
        if port not in used:
            yield port


def held_ports(service: Document | None) -> frozenset[int]:
    """Every node port that a Service holds."""
    ports = {number(port, "nodePort") for port in _ports(service)}
    return frozenset((ports | {number(service, "spec.healthCheckNodePort")}) - {0})


def wanted_ports(new: Document, old: Document | None) -> tuple[Want, ...]:
    """What the Service should have; what `old` had for the same port is kept."""
    spec = new.get("spec", {})
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return ()
    before = {_same(port): number(port, "nodePort") for port in _ports(old)}
    wants = [
        Want(f"spec.ports[{at}].nodePort", port.get("nodePort") or before.get(_same(port), 0))
        for at, port in enumerate(spec.get("ports") or [])
        if port.get("nodePort") or not _opted_out(spec)
    ]
    if spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        kept = number(old, "spec.healthCheckNodePort")
        wants.append(Want("spec.healthCheckNodePort", spec.get("healthCheckNodePort") or kept))
    return tuple(wants)


def _opted_out(spec: Document) -> bool:
    """A load balancer that reaches pods by itself; only ports asked for by number are given."""
    return spec.get("type") == "LoadBalancer" and not spec.get(
        "allocateLoadBalancerNodePorts", True
    )


def _ports(service: Document | None) -> Sequence[Document]:
    """What is stored may break every rule, and must still be mended and deleted."""
    return items(service, "spec.ports")


def _same(port: Document) -> tuple[int, str]:
    """What makes a port of the new Service the one that the old Service had."""
    return number(port, "port"), text(port, "protocol") or "TCP"


def _filled(new: Document, given: Mapping[str, int]) -> Document:
    """The Service with exactly the node ports it was given; those of another type are cleared."""
    spec = {
        name: value for name, value in new.get("spec", {}).items() if name != "healthCheckNodePort"
    }
    ports = []
    for at, port in enumerate(spec.get("ports") or []):
        plain = {name: value for name, value in port.items() if name != "nodePort"}
        node_port = given.get(f"spec.ports[{at}].nodePort")
        ports.append(plain | ({"nodePort": node_port} if node_port else {}))
    if "ports" in spec:
        spec["ports"] = ports
    if health := given.get("spec.healthCheckNodePort"):
        spec["healthCheckNodePort"] = health
    return new | {"spec": spec}

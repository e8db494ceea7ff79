"""Addresses that another cluster says: none that means whoever reads it.

A slice that says 127.0.0.1 or 169.254.169.254 would send our own workloads' requests to themselves,
or to what only their machine may ask. Kubernetes takes no such endpoints; the other API is believed
nothing, so they are left out before anything sees them.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.model.kind import Document
from isthmus.model.names import is_elsewhere

SIFTED: Final = frozenset({"endpointslices.discovery.k8s.io", "endpoints"})
"""Resources, by the names of store keys, whose objects say where to connect."""

_GROUPS: Final = ("addresses", "notReadyAddresses")


def sifted(document: Document) -> Document:
    """An EndpointSlice or Endpoints without them; an endpoint that has no other address is gone."""
    if document.get("addressType") == "FQDN":
        return document  # names, which nobody here follows
    changed = dict(document)
    for name, sift in (("endpoints", _endpoint), ("subsets", _subset)):
        held = document.get(name)
        if isinstance(held, list):
            changed[name] = [left for each in held if (left := sift(each)) is not None]
    return changed


def _endpoint(said: Any) -> Any:  # noqa: ANN401  # whatever stands in the JSON
    if not isinstance(said, dict) or not isinstance(said.get("addresses"), list):
        return said
    left = [one for one in said["addresses"] if isinstance(one, str) and is_elsewhere(one)]
    return {**said, "addresses": left} if left else None


def _subset(said: Any) -> Any:  # noqa: ANN401  # whatever stands in the JSON
    if not isinstance(said, dict):
        return said
    groups = {name: said[name] for name in _GROUPS if isinstance(said.get(name), list)}
    return {**said, **{name: list(filter(_away, held)) for name, held in groups.items()}}


def _away(said: Any) -> bool:  # noqa: ANN401  # whatever stands in the JSON
    return isinstance(said, dict) and isinstance(said.get("ip"), str) and is_elsewhere(said["ip"])

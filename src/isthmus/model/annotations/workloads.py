"""All annotations of a workload's pods, or of their namespace, that are not understood.

Each has no effect, so that they are warnings, not faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from isthmus.model.annotations.grammar import Problem
from isthmus.model.annotations.inbound import default_inbound_policy, inbound_tls, upstreams
from isthmus.model.annotations.keys import DEFAULT_INBOUND_POLICY, INBOUND_TLS, UPSTREAMS

_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    DEFAULT_INBOUND_POLICY: default_inbound_policy,
    INBOUND_TLS: inbound_tls,
    UPSTREAMS: upstreams,
}


def workload_warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """A warning for each that is not understood."""
    for key, parser in _PARSERS.items():
        found = parser(annotations[key]) if key in annotations else None
        if isinstance(found, Problem):
            yield found.warning

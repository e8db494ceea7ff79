"""All annotations of a parent of routes (Service, EgressNetwork) that are not understood.

Each spoils its own group and nothing else, so that they are warnings, not faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isthmus.model.annotations.balancer import failure_accrual, load_bias
from isthmus.model.annotations.grammar import first_problem
from isthmus.model.annotations.keys import OPAQUE_PORTS
from isthmus.model.annotations.ports import port_list
from isthmus.model.annotations.traffic import parent_problems


def parent_warnings(annotations: Mapping[str, str]) -> Iterator[str]:
    """A warning for each group that is not understood."""
    for problem in parent_problems(annotations):
        yield problem.warning
    found = (
        first_problem(failure_accrual(annotations)),
        first_problem(load_bias(annotations)),
        first_problem(port_list(annotations.get(OPAQUE_PORTS, ""))),
    )
    yield from (each.warning for each in found if each is not None)

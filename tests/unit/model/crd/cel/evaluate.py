"""Short words for tests: evaluate an expression."""

from __future__ import annotations

from typing import Any

from isthmus.model.crd.cel import Budget, Program
from isthmus.model.crd.cel.types import DYN, CelType

PLENTY = 1_000_000


def evaluate(text: str, **variables: Any) -> Any:  # noqa: ANN401 - values of CEL
    """The value of an expression over variables of any type."""
    types: dict[str, CelType] = dict.fromkeys(variables, DYN)
    return Program(text, types).value(variables, Budget(PLENTY))

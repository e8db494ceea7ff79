"""One expression, compiled: what it costs at most, and its value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from isthmus.model.crd.cel.code import Run, TypeFault
from isthmus.model.crd.cel.compiler import Compiler
from isthmus.model.crd.cel.syntax import SyntaxFault, parse
from isthmus.model.crd.cel.tree import Expr, size
from isthmus.model.crd.cel.types import CelType
from isthmus.model.crd.cel.values import Budget, CelError


class Program:
    """An expression over variables of known types. `type` is of its value.

    `cost` is an estimate of the work, from the limits that the types state; `reads` the variables
    that it reads.
    """

    def __init__(self, text: str, variables: Mapping[str, CelType]) -> None:
        """ValueError says why the expression cannot be run."""
        tree = _parsed(text)
        compiler = Compiler(variables)
        code = compiler.code(tree)
        self.text = text
        self.type = code.type
        self.cost = code.cost
        self.reads = frozenset(compiler.reads)
        self._run: Run = code.run
        self._units = size(tree)
        self._names = tuple(variables)
        self._empty = [None] * (compiler.slots - len(self._names) - 1)

    def value(self, variables: Mapping[str, Any], budget: Budget) -> Any:  # noqa: ANN401 - of CEL
        """The value. CelError if there is none; Spent when the budget does not suffice."""
        budget.spend(self._units)
        frame = [budget, *(variables.get(name) for name in self._names), *self._empty]
        try:
            return self._run(frame)
        except RecursionError:
            raise CelError("nested too deep") from None


@lru_cache(maxsize=2048)
def _parsed(text: str) -> Expr:
    """Rules are repeated all over a schema; the newest trees are kept."""
    return parse(text)


__all__ = ["CelError", "Program", "SyntaxFault", "TypeFault"]

"""Where functions are written down: name, types of the arguments, type of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

from isthmus.model.crd.cel.types import DYN, CelType

Gives = CelType | Callable[[Sequence[CelType]], CelType]

MAX_RESULT: Final = 1_000_000
"""Characters of a text that a function makes."""


class Work(IntEnum):
    """What a call costs."""

    FLAT = 0
    """The lengths of its arguments."""
    DEEP = 1
    """Everything that its arguments hold."""
    PAIRS = 2
    """Everything that the first holds, as often as the second has items (or itself)."""


class Overload(NamedTuple):
    """One meaning of a function.

    `params` are names of types ("dyn" takes all). `method` is how it is called: `a.f(b)` or
    `f(a, b)`; None allows both. `work` says what a call costs.
    """

    params: tuple[str, ...]
    gives: Gives
    run: Callable[..., Any]
    method: bool | None
    work: Work

    def takes(self, names: Sequence[str]) -> bool:
        """Whether arguments of these types may be meant."""
        return len(names) == len(self.params) and all(
            "dyn" in (want, name) or want == name
            for want, name in zip(self.params, names, strict=True)
        )

    def result(self, args: Sequence[CelType]) -> CelType:
        """The type of the result for arguments of these types."""
        return self.gives if isinstance(self.gives, CelType) else self.gives(args)


FUNCTIONS: Final[dict[str, list[Overload]]] = {}
"""Every function by name; filled by the modules of this package."""

Run = TypeVar("Run", bound=Callable[..., Any])


def function(
    name: str, *params: CelType, gives: Gives, method: bool | None = False, work: Work = Work.FLAT
) -> Callable[[Run], Run]:
    """Write a function down under a name; its parameters have these types."""

    def noted(run: Run) -> Run:
        names = tuple(param.name for param in params)
        FUNCTIONS.setdefault(name, []).append(Overload(names, gives, run, method, work))
        return run

    return noted


def method(
    name: str, *params: CelType, gives: Gives, work: Work = Work.FLAT
) -> Callable[[Run], Run]:
    """As `function`, called as `first.name(rest)`."""
    return function(name, *params, gives=gives, method=True, work=work)


def same_as_first(args: Sequence[CelType]) -> CelType:
    """The result has the type of the first argument, of any size."""
    return CelType(args[0].name, item=args[0].item)


def item_of_first(args: Sequence[CelType]) -> CelType:
    """The result is an item of the first argument."""
    return args[0].item or DYN

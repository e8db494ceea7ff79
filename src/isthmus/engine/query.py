"""`@query`: what may be one, and how it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from isthmus.engine.faults import BadQuery
from isthmus.engine.keys import check_key

if TYPE_CHECKING:
    from isthmus.engine.view import View

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_NOT_PLAIN = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


class Query(Generic[P, T_co]):
    """A pure function of a view and keys whose value is memoised per key.

    Inside another query, call it like the function it is: `endpoints(db, key)`. Outside, use
    `db.read(endpoints, key)` or a watch.
    """

    arity: int

    def __init__(self, fn: Callable[Concatenate[View, P], T_co], arity: int) -> None:
        functools.update_wrapper(self, fn)
        self.fn: Callable[..., T_co] = fn
        self.name = f"{fn.__module__}.{fn.__qualname__}"
        self.arity = arity

    if TYPE_CHECKING:

        def __call__(self, db: View, /, *key: P.args, **named: P.kwargs) -> T_co:
            """The value at `key`, noted as a read of the running query."""

    def run(self, db: View, key: Any) -> T_co:  # noqa: ANN401 - a folded key
        """Evaluate at the folded key."""
        return self.fn(db, *key)

    def fold(self, key: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """The name of a cell, checked: the key itself if there is one, else the tuple."""
        self.check(key)
        return key

    def check(self, key: Any) -> None:  # noqa: ANN401
        """Refuse a folded key of the wrong length or of a type that cannot be a key."""
        if len(key) != self.arity:
            raise BadQuery(f"{self.name} takes {self.arity} keys, was given {len(key)}")
        check_key(key, self.name)

    def address(self, key: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """`(query, *key)`, the way `take` names cells."""
        return (self, *key)

    def describe(self, key: Any) -> str:  # noqa: ANN401
        """`endpoints('a', 'b')`, for messages and traces."""
        return f"{self.__name__}({', '.join(map(repr, self.address(key)[1:]))})"

    def __repr__(self) -> str:
        return f"<query {self.name}>"

    # update_wrapper sets it; declared for the type checker.
    __name__: str


class _Many(Query[P, T_co]):
    def __call__(self, db: View, /, *key: Any) -> T_co:  # type: ignore[override] # noqa: ANN401
        return db.call(self, key)  # type: ignore[no-any-return]


class _One(Query[P, T_co]):
    """The usual case. The key is not wrapped: a tuple less per cell, and per call."""

    def __call__(self, db: View, key: Any, /) -> T_co:  # type: ignore[override] # noqa: ANN401
        return db.call(self, key)  # type: ignore[no-any-return]

    def run(self, db: View, key: Any) -> T_co:  # noqa: ANN401
        return self.fn(db, key)

    def fold(self, key: tuple[Any, ...]) -> Any:  # noqa: ANN401
        super().check(key)
        return key[0]

    def check(self, key: Any) -> None:  # noqa: ANN401
        check_key(key, self.name)

    def address(self, key: Any) -> tuple[Any, ...]:  # noqa: ANN401
        return (self, key)


def query(fn: Callable[Concatenate[View, P], T_co]) -> Query[P, T_co]:
    """Make a module-level function `f(db, *keys) -> frozen value` a query.

    Raises BadQuery for anything else: a lambda, a method, a closure, a coroutine or generator
    function, defaults, keyword-only or variable parameters. A nested function would be a new query
    each time its outer function ran, and could read what the engine does not see.
    """
    name = getattr(fn, "__qualname__", repr(fn))
    if not inspect.isfunction(fn) or fn.__qualname__ != fn.__name__ or fn.__name__ == "<lambda>":
        raise BadQuery(f"{name} is not a module-level function, so it cannot be a query")
    if any(kind(fn) for kind in _NOT_PLAIN):
        raise BadQuery(f"{name} is a coroutine or generator function; a query returns its value")
    parameters = list(inspect.signature(fn).parameters.values())
    if not parameters or any(
        p.kind not in _POSITIONAL or p.default is not p.empty for p in parameters
    ):
        raise BadQuery(
            f"{name} must take a view and then keys, all positional and without defaults"
        )
    arity = len(parameters) - 1
    return (_One if arity == 1 else _Many)(fn, arity)

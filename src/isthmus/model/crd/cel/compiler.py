"""From a tree to code: names are resolved, types checked, work estimated (cel-spec, "Semantics").

Errors follow CEL's logic: `&&`, `||`, `all` and `exists` have a value whenever one operand decides
it, whatever happens to the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from isthmus.model.crd.cel import folds
from isthmus.model.crd.cel.code import (
    MOST,
    Code,
    Frame,
    Run,
    TypeFault,
    deep_size,
    field_type,
    indexed,
    item_type,
    maybe,
    member_types,
    must_be_bool,
    present,
    selected,
)
from isthmus.model.crd.cel.library import CONSTANTS, FUNCTIONS, Overload, Work
from isthmus.model.crd.cel.tree import (
    At,
    Bind,
    Both,
    Call,
    Choice,
    Expr,
    Fold,
    ListOf,
    Literal,
    MapOf,
    Name,
    OptMap,
    Present,
    Select,
    size,
)
from isthmus.model.crd.cel.types import (
    BOOL,
    DYN,
    TYPE,
    CelType,
    comparable,
    items,
    joined,
    list_of,
    optional_of,
)
from isthmus.model.crd.cel.values import (
    NONE,
    Budget,
    CelError,
    Opaque,
    Optional,
    measure,
    type_name,
)

_CHEAP: Final = frozenset({bool, int, float, type(None)})
"""Types whose values cost nothing to read."""


class Compiler:
    """Compiles one expression over variables of known types."""

    def __init__(self, variables: Mapping[str, CelType]) -> None:
        self._scope: dict[str, tuple[int, CelType]] = {
            name: (at, of) for at, (name, of) in enumerate(variables.items(), 1)
        }
        self._slots = len(variables) + 1
        self.slots = self._slots
        """How long a frame must be."""
        self.reads: set[str] = set()
        """The variables that the expression reads."""

    def code(self, expr: Expr) -> Code:  # noqa: C901, PLR0911 - one case for each kind of expression
        """The code of an expression; TypeFault."""
        match expr:
            case Literal(value):
                return _literal(value)
            case Name(name):
                return self._name(name)
            case Select():
                return self._select(expr)
            case Present(of, field):
                return self._present(of, field)
            case At():
                return self._at(expr)
            case Call():
                return self._call(expr)
            case Both():
                return self._both(expr)
            case Choice():
                return self._choice(expr)
            case ListOf():
                return self._list(expr)
            case MapOf():
                return self._map(expr)
            case Fold():
                return self._fold(expr)
            case Bind(name, value, body):
                return self._bind(name, value, body)
            case OptMap():
                return self._opt_map(expr)
            case _:
                assert_never(expr)

    # ------------------------------------------------------------------------------------ names

    def _name(self, name: str) -> Code:
        found = self._scope.get(name)
        if found is None:
            if name not in CONSTANTS:
                raise TypeFault(f"undeclared reference to '{name}'")
            constant = CONSTANTS[name]
            return Code(TYPE, 0, lambda _: constant)
        slot, of = found
        self.reads.add(name)
        return Code(of, 1, lambda frame: frame[slot])

    def _declare(self, names: Sequence[str], types: Sequence[CelType], body: Expr) -> Code:
        """The code of an expression that sees more variables, in the next slots."""
        held = dict(self._scope)
        self._scope |= {
            name: (self._slots + at, of)
            for at, (name, of) in enumerate(zip(names, types, strict=True))
        }
        self._slots += len(names)
        self.slots = max(self.slots, self._slots)
        code = self.code(body)
        self._slots -= len(names)
        self._scope = held
        return code

    def _select(self, expr: Select) -> Code:
        qualified = self._qualified(expr)
        if qualified in CONSTANTS:
            constant = CONSTANTS[qualified]
            return Code(TYPE, 0, lambda _: constant)
        of, field = self.code(expr.of), expr.field
        found, run = field_type(of.type, field), of.run
        if not expr.optional:
            return Code(found, of.cost + 1, lambda frame: selected(run(frame), field))
        if found.name != "optional_type":
            found = optional_of(found)
        return Code(found, of.cost + 1, lambda frame: maybe(run(frame), field))

    def _qualified(self, expr: Expr) -> str:
        """`a.b.c` as text where `a` is no variable, or ""."""
        match expr:
            case Name(name) if name not in self._scope:
                return name
            case Select(of, field, False):
                prefix = self._qualified(of)
                return f"{prefix}.{field}" if prefix else ""
            case _:
                return ""

    def _present(self, inner: Expr, field: str) -> Code:
        of = self.code(inner)
        field_type(of.type, field)
        run = of.run
        return Code(BOOL, of.cost + 1, lambda frame: present(run(frame), field))

    def _at(self, expr: At) -> Code:
        of, key = self.code(expr.of), self.code(expr.key)
        found, cost = item_type(of.type, key.type), of.cost + key.cost + 1
        value, at = of.run, key.run
        if not expr.optional:
            return Code(found, cost, lambda frame: indexed(value(frame), at(frame)))
        if found.name != "optional_type":
            found = optional_of(found)
        return Code(found, cost, lambda frame: maybe(value(frame), at(frame)))

    # ------------------------------------------------------------------------------------ logic

    def _both(self, expr: Both) -> Code:
        sign = "_||_" if expr.any else "_&&_"
        parts = [must_be_bool(self.code(part), f"'{sign}'") for part in expr.parts]
        runs, decides = tuple(part.run for part in parts), bool(expr.any)

        def run(frame: Frame) -> bool:
            fault: CelError | None = None
            for part in runs:
                try:
                    value = part(frame)
                except CelError as error:
                    fault = fault or error
                    continue
                if value is decides:
                    return bool(decides)
                if not isinstance(value, bool):
                    fault = fault or CelError("no such overload")
            if fault is not None:
                raise fault
            return not decides

        return Code(BOOL, min(MOST, 1 + sum(part.cost for part in parts)), run)

    def _choice(self, expr: Choice) -> Code:
        condition = must_be_bool(self.code(expr.condition), "'_?_:_'")
        yes, no = self.code(expr.yes), self.code(expr.no)
        asks, does, else_does = condition.run, yes.run, no.run

        def run(frame: Frame) -> Any:  # noqa: ANN401 - a value of CEL
            value = asks(frame)
            if not isinstance(value, bool):
                raise CelError("no such overload")
            return does(frame) if value else else_does(frame)

        return Code(joined(yes.type, no.type), condition.cost + max(yes.cost, no.cost) + 1, run)

    # ------------------------------------------------------------------------------------ calls

    def _call(self, expr: Call) -> Code:
        name, args, method = expr
        if method:
            prefix = self._qualified(args[0])
            if prefix and f"{prefix}.{name}" in FUNCTIONS:
                name, args, method = f"{prefix}.{name}", args[1:], False
        codes = [self.code(arg) for arg in args]
        types = [code.type for code in codes]
        overloads = _overloads(name, types, method=method)
        if name in ("_==_", "_!=_") and not comparable(*types):
            raise _no_overload(name, types)
        if name == "_==_":
            run = _equality(codes[0].run, codes[1].run, overloads[0])
        else:
            run = _dispatch(overloads, [code.run for code in codes])
        cost = sum(code.cost for code in codes) + _call_cost(name, overloads[0].work, types)
        results = [overload.result(types) for overload in overloads]
        result = results[0]
        for other in results[1:]:
            result = joined(result, other)
        return Code(result, min(MOST, cost), run)

    # ---------------------------------------------------------------------------- lists and maps

    def _list(self, expr: ListOf) -> Code:
        codes = [self.code(item) for item in expr.items]
        of = _common([_unwrapped(c.type, o) for c, o in zip(codes, expr.optional, strict=True)])
        runs = [code.run for code in codes]
        optional = expr.optional if any(expr.optional) else ()

        def run(frame: Frame) -> list[Any]:
            values = [each(frame) for each in runs]
            if optional:
                pairs = zip(values, optional, strict=True)
                return [value for each, maybe_ in pairs for value in _given(each, maybe_)]
            return values

        cost = 1 + len(runs) + sum(code.cost for code in codes)
        return Code(list_of(of, len(runs)), min(MOST, cost), run)

    def _map(self, expr: MapOf) -> Code:
        keys = [self.code(key) for key, _ in expr.entries]
        values = [self.code(value) for _, value in expr.entries]
        types = zip(values, expr.optional, strict=True)
        of = _common([_unwrapped(code.type, optional) for code, optional in types])
        runs = [(k.run, v.run, o) for k, v, o in zip(keys, values, expr.optional, strict=True)]

        def run(frame: Frame) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for key_run, value_run, optional in runs:
                key = key_run(frame)
                if not isinstance(key, str | int):
                    raise CelError(f"unsupported key type: {type_name(key)}")
                if key in made:
                    raise CelError("a key stands in the map twice")
                for value in _given(value_run(frame), optional):
                    made[key] = value
            return made

        cost = 1 + len(runs) + sum(code.cost for code in (*keys, *values))
        return Code(CelType("map", item=of, limit=len(runs)), min(MOST, cost), run)

    # ----------------------------------------------------------------------------------- macros

    def _fold(self, expr: Fold) -> Code:
        over = self.code(expr.over)
        types = member_types(over.type, len(expr.names))
        slot = self._slots
        steps = [self._declare(expr.names, types, step) for step in expr.steps]
        each = 1 + sum(step.cost for step in steps)
        cost = min(MOST, over.cost + 1 + items(over.type) * each)
        units = 1 + sum(size(step) for step in expr.steps)
        plan = folds.Plan(over.run, len(expr.names), slot, units)
        return Code(
            folds.result(expr.kind, over.type, steps), cost, folds.run(expr.kind, plan, steps)
        )

    def _bind(self, name: str, value: Expr, body: Expr) -> Code:
        held = self.code(value)
        slot = self._slots
        code = self._declare((name,), (held.type,), body)
        gives, run = held.run, code.run

        def bound(frame: Frame) -> Any:  # noqa: ANN401 - a value of CEL
            frame[slot] = gives(frame)
            return run(frame)

        return Code(code.type, min(MOST, held.cost + code.cost), bound)

    def _opt_map(self, expr: OptMap) -> Code:
        of = self.code(expr.of)
        if of.type.name not in ("optional_type", "dyn"):
            raise TypeFault(f"found no matching overload for 'optMap' applied to '{of.type}'")
        slot = self._slots
        body = self._declare((expr.name,), (of.type.inner,), expr.body)
        gives, run, flat = of.run, body.run, expr.flat

        def mapped(frame: Frame) -> Optional:
            held = gives(frame)
            if not isinstance(held, Optional):
                raise CelError("no such overload")
            if not held.present:
                return NONE
            frame[slot] = held.value
            value = run(frame)
            if flat and not isinstance(value, Optional):
                raise CelError("no such overload")
            return value if flat else Optional(True, value)

        found = body.type if flat else optional_of(body.type)
        return Code(found, min(MOST, of.cost + body.cost + 1), mapped)


# ------------------------------------------------------------------------------------------ parts


def _literal(value: object) -> Code:
    if isinstance(value, str | bytes):
        return Code(CelType(type_name(value), limit=len(value)), 0, lambda _: value)
    return Code(CelType(type_name(value)), 0, lambda _: value)


def _unwrapped(of: CelType, optional: bool) -> CelType:  # noqa: FBT001 - one of a list of marks
    return of.inner if optional and of.name == "optional_type" else of


def _given(value: Any, optional: bool) -> tuple[Any, ...]:  # noqa: ANN401, FBT001 - as written: `?a`
    if not optional:
        return (value,)
    if not isinstance(value, Optional):
        raise CelError("no such overload")
    return (value.value,) if value.present else ()


def _common(types: Sequence[CelType]) -> CelType:
    found = types[0] if types else DYN
    for other in types[1:]:
        found = joined(found, other)
    return found


# -------------------------------------------------------------------------------------- functions


def _overloads(name: str, types: Sequence[CelType], *, method: bool) -> list[Overload]:
    """The meanings of a call with arguments of these types; TypeFault if there are none."""
    written = [each for each in FUNCTIONS.get(name, ()) if each.method in (None, method)]
    if not written:
        raise TypeFault(f"undeclared reference to '{name}': the function is not supported")
    names = [each.name for each in types]
    found = [each for each in written if each.takes(names)]
    if not found:
        raise _no_overload(name, types)
    return found


def _no_overload(name: str, types: Sequence[CelType]) -> TypeFault:
    shown = ", ".join(map(str, types))
    return TypeFault(f"found no matching overload for '{name}' applied to '({shown})'")


def _call_cost(name: str, work: Work, types: Sequence[CelType]) -> int:
    if name == "size" or not types:
        return 1
    if work is Work.FLAT:
        texts = ("string", "bytes")
        return 1 + sum(items(each) // 10 if each.name in texts else _length(each) for each in types)
    if name in ("_==_", "_!=_"):
        return min(MOST, 1 + min(map(deep_size, types)))
    whole = sum(map(deep_size, types))
    return min(MOST, 1 + whole * (items(types[-1]) if work is Work.PAIRS else 1))


def _length(of: CelType) -> int:
    return items(of) if of.name == "list" else 0


def _charge(budget: Budget, work: Work, args: Sequence[Any]) -> None:
    """Pay for reading large arguments. What is small was paid for with the expression."""
    if work is Work.FLAT:
        units = sum(len(each) >> 3 for each in args if isinstance(each, str | bytes | list))
    else:
        units = sum(measure(each, budget.left + 1) for each in args if type(each) not in _CHEAP)
        last = args[-1]
        if work is Work.PAIRS and isinstance(last, list):
            units *= max(1, len(last))
    if units:
        budget.spend(units)


def _dispatch(overloads: Sequence[Overload], runs: Sequence[Run]) -> Run:
    """Call the overload that takes the arguments as they are; remembers it by their types."""
    known: dict[tuple[type, ...], tuple[Overload, bool]] = {}

    def choose(args: Sequence[Any], kinds: tuple[type, ...]) -> tuple[Overload, bool]:
        chosen = _chosen(overloads, [type_name(each) for each in args])
        found = chosen, not _CHEAP.issuperset(kinds)
        if Opaque not in kinds:
            known[kinds] = found
        return found

    def call(frame: Frame, args: Sequence[Any]) -> Any:  # noqa: ANN401 - a value of CEL
        kinds = tuple(map(type, args))
        chosen, charged = known.get(kinds) or choose(args, kinds)
        if charged:
            _charge(frame[0], chosen.work, args)
        return chosen.run(*args)

    if len(runs) == 2:
        one, other = runs
        return lambda frame: call(frame, (one(frame), other(frame)))
    return lambda frame: call(frame, [each(frame) for each in runs])


def _chosen(overloads: Sequence[Overload], names: Sequence[str]) -> Overload:
    for overload in overloads:
        if overload.takes(names):
            return overload
    raise CelError("no such overload")


def _equality(one: Run, other: Run, overload: Overload) -> Run:
    """`==`, by far the most frequent call: scalars of one type are compared at once."""

    def run(frame: Frame) -> bool:
        left, right = one(frame), other(frame)
        kind = type(left)
        if kind is type(right) and (kind is str or kind in _CHEAP):
            return bool(left == right)
        _charge(frame[0], Work.DEEP, (left, right))
        return bool(overload.run(left, right))

    return run

"""x-kubernetes-validations: the rules of a schema, compiled once, then run over objects.

A rule sees `self`, the value where it stands, and `oldSelf` if it compares with what stood there
before. What a rule may cost is estimated from the limits that the schema states, when the
definition is taken; what rules do cost is paid for from one budget per object. (Kubernetes:
"Validation rules".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from isthmus.errors import Cause
from isthmus.model.crd import jsonpath
from isthmus.model.crd.cel import Budget, CelError, CelType, Optional, Program, Spent
from isthmus.model.crd.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MAX_REQUEST,
    STRING,
    TIMESTAMP,
    optional_of,
)
from isthmus.model.crd.cel.values import NONE
from isthmus.model.crd.convert import escaped, to_cel
from isthmus.model.crd.nodes import Node, Rule
from isthmus.model.crd.values import ABSENT, correlated, list_key, same
from isthmus.model.faults import forbidden, invalid, not_supported, required
from isthmus.model.walk import MAX_FAULTS, join

MAX_COST: Final = 100_000_000
"""Units that one rule may be estimated at, for all places of one object together."""

MAX_TOTAL: Final = 1_000_000_000
"""Units that all rules of one schema may be estimated at."""

MAX_UNITS: Final = 1_000_000
"""Units that all rules may use on one object: 0.3 s at the very most."""

MAX_RULES: Final = 2_000
MAX_TEXT: Final = 100_000
"""Rules of one schema, and characters of all of them. To compile one takes about 3 us."""

UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)

_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany"}
)
"""Faults after which rules are not asked: they may rely on what is missing."""


def blocked(found: Iterable[Cause]) -> bool:
    """Whether what else is wrong with an object keeps its rules from being asked."""
    return any(cause.reason in _BLOCKING for cause in found)


REASONS: Final = (
    "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired",
)  # fmt: skip

_SAID: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}


class Compiled(NamedTuple):
    """A rule ready to run. `compares`: it reads oldSelf. `where` is its fieldPath, as written."""

    rule: Rule
    program: Program
    words: Program | None
    compares: bool
    where: str


class Ruled(NamedTuple):
    """A node that has rules, or has nodes with rules below it."""

    node: Node
    rules: tuple[Compiled, ...]
    fields: Mapping[str, Ruled]
    values: Ruled | None
    items: Ruled | None


class Compilation(NamedTuple):
    """The rules of a schema, None if it has none, and why some cannot be; `size` in characters."""

    root: Ruled | None
    size: int
    faults: tuple[Cause, ...]


def compile_rules(root: Node, path: str) -> Compilation:
    """Compile every rule of the schema at `path` of its definition."""
    making = _Making()
    ruled = making.node(root, path, 1, embedded=True)
    if making.total > MAX_TOTAL:
        making.faults.append(invalid(path, "object", _over(making.total, MAX_TOTAL, "total CEL")))
    return Compilation(ruled, making.size, tuple(making.faults[:MAX_FAULTS]))


# ------------------------------------------------------------------------------------------ types


def cel_type(node: Node, *, embedded: bool = False) -> CelType:
    """The type of a node's values. `embedded`: it has apiVersion, kind and a name besides."""
    bounds = node.bounds
    if node.int_or_string:
        return DYN
    match node.type:
        case "array":
            inner = cel_type(node.items) if node.items is not None else DYN
            return CelType("list", item=inner, limit=bounds.max_items)
        case "object" if node.values is not None or node.open:
            of = cel_type(node.values) if node.values is not None else DYN
            return CelType("map", item=of, limit=bounds.max_properties)
        case "object":
            fields = {escaped(name): cel_type(each) for name, each in node.properties.items()}
            return CelType("map", fields=fields | (_HEAD if embedded or node.embedded else {}))
        case "string":
            return _text_type(node)
        case other:
            return {"integer": INT, "number": DOUBLE, "boolean": BOOL}.get(
                other, CelType("map", fields={})
            )


_HEAD: Final = {
    "apiVersion": STRING,
    "kind": STRING,
    "metadata": CelType(
        "map",
        fields={"name": CelType("string", limit=253), "generateName": CelType("string", limit=253)},
    ),
}


def _text_type(node: Node) -> CelType:
    match node.format:
        case "date" | "date-time" | "datetime":
            return TIMESTAMP
        case "duration":
            return DURATION
        case "byte":
            return (
                BYTES
                if node.bounds.max_length is None
                else CelType("bytes", limit=node.bounds.max_length)
            )
        case _:
            pass
    words = [each for each in node.enum or () if isinstance(each, str)]
    limit = node.bounds.max_length
    if limit is None and words:
        limit = max(map(len, words))
    return STRING if limit is None else CelType("string", limit=limit)


# ---------------------------------------------------------------------------------------- compile


class _Making:
    """One walk of a schema that compiles its rules."""

    def __init__(self) -> None:
        self.faults: list[Cause] = []
        self.total = 0
        self.size = 0
        self._count = 0

    def node(self, node: Node, path: str, times: int, *, embedded: bool = False) -> Ruled | None:
        """`times`: of how many places in one object the node may speak at once."""
        rules = self._rules(node, path, times, embedded=embedded) if node.rules else ()
        fields = {}
        for name, each in node.properties.items():
            below = self.node(each, f"{path}.properties[{name}]", times)
            if below is not None:
                fields[name] = below
        values = items = None
        if node.values is not None:
            many = _many(node.bounds.max_properties)
            values = self.node(node.values, f"{path}.additionalProperties", times * many)
        if node.items is not None:
            many = _many(node.bounds.max_items)
            items = self.node(node.items, f"{path}.items", times * many)
        if not (rules or fields or values or items):
            return None
        return Ruled(node, rules, fields, values, items)

    def _rules(self, node: Node, path: str, times: int, *, embedded: bool) -> tuple[Compiled, ...]:
        of = cel_type(node, embedded=embedded)
        made: list[Compiled] = []
        for at, rule in enumerate(node.rules):
            self._count += 1
            self.size += len(rule.rule) + len(rule.message_expression)
            where = f"{path}.x-kubernetes-validations[{at}]"
            if self._count > MAX_RULES or self.size > MAX_TEXT:
                says = f"a schema may have {MAX_RULES} rules of {MAX_TEXT} characters together"
                self.faults.append(forbidden(where, says))
                break
            compiled = self._rule(node, rule, of, where)
            if compiled is None:
                continue
            cost = compiled.program.cost * times
            self.total += cost
            if cost > MAX_COST:
                says = _over(cost, MAX_COST, "estimated rule")
                self.faults.append(invalid(f"{where}.rule", rule.rule, says))
            made.append(compiled)
        return tuple(made)

    def _rule(self, node: Node, rule: Rule, of: CelType, where: str) -> Compiled | None:
        say = self.faults.append
        if not rule.rule.strip():
            say(required(f"{where}.rule", "rule is not specified"))
            return None
        old = optional_of(of) if rule.optional_old_self else of
        program = self._program(rule.rule, {"self": of, "oldSelf": old}, "bool", f"{where}.rule")
        words = None
        if rule.message_expression:
            variables = {"self": of, "oldSelf": old}
            at = f"{where}.messageExpression"
            words = self._program(rule.message_expression, variables, "string", at)
        self._check_words(rule, where)
        field = _field_path(node, rule.field_path)
        if field is None:
            why = "does not lead to a field of the schema"
            say(invalid(f"{where}.fieldPath", rule.field_path, why))
        if program is None:
            return None
        compares = "oldSelf" in program.reads
        if rule.optional_old_self is not None and not compares:
            why = "may not be set if oldSelf is not used in rule"
            say(invalid(f"{where}.optionalOldSelf", rule.optional_old_self, why))
        return Compiled(rule, program, words, compares, field or "")

    def _program(
        self, text: str, variables: Mapping[str, CelType], wants: str, where: str
    ) -> Program | None:
        try:
            program = Program(text, variables)
        except ValueError as fault:
            self.faults.append(invalid(where, text, f"compilation failed: {fault}"))
            return None
        if program.type.name not in (wants, "dyn"):
            says = f"must evaluate to a {wants}, and evaluates to {program.type}"
            self.faults.append(invalid(where, text, says))
            return None
        return program

    def _check_words(self, rule: Rule, where: str) -> None:
        say = self.faults.append
        if rule.reason not in REASONS:
            say(not_supported(f"{where}.reason", rule.reason, REASONS))
        if rule.message and not rule.message.strip():
            says = "message must be non-empty if specified"
            say(invalid(f"{where}.message", rule.message, says))
        if "\n" in rule.message.strip():
            say(invalid(f"{where}.message", rule.message, "message must not contain line breaks"))
        if "\n" in rule.rule.strip() and not rule.message:
            says = "message must be specified if rule contains line breaks"
            say(required(f"{where}.message", says))


def _many(limit: int | None) -> int:
    return MAX_REQUEST // 3 if limit is None else max(1, limit)


def _over(cost: int, most: int, what: str) -> str:
    times = cost / most
    factor = "more than 100x" if times > 100 else f"{times:.1f}x"
    return (
        f"{what} cost exceeds budget by factor of {factor} (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )


def _field_path(node: Node, path: str) -> str | None:
    """The path below a node as faults show it; None if the schema has no such place."""
    if not path:
        return ""
    try:
        steps = jsonpath.parse(path)
    except ValueError:
        return None
    shown, here = "", node
    for step in steps:
        if not isinstance(step, jsonpath.Field):
            return None
        known = here.properties.get(step.name)
        below = known or here.values
        if below is None:
            return None
        shown += f".{step.name}" if known is not None else f"[{step.name}]"
        here = below
    return shown


# -------------------------------------------------------------------------------------------- run


def broken(
    root: Ruled,
    document: Any,  # noqa: ANN401 - JSON
    old: Any = ABSENT,  # noqa: ANN401 - JSON
    *,
    units: int = MAX_UNITS,
) -> list[Cause]:
    """The fault of every rule that does not hold, at most MAX_FAULTS, for at most `units` of work.

    `old` is the object before an update. A rule that does not compare is not asked of what has not
    changed.
    """
    running = _Running(units)
    value = to_cel(root.node, document, root=True)
    before = ABSENT if old is ABSENT else to_cel(root.node, old, root=True)
    found: list[Cause] = []
    try:
        for cause in running.node(root, _At(document, old, value, before, "")):
            found.append(cause)
            if len(found) >= MAX_FAULTS:
                break
    except Spent:
        says = "validation failed due to running out of cost budget, no further validation rules"
        found.append(invalid(running.path, "object", f"{says} will be run"))
    return found


class _At(NamedTuple):
    """A place of the object: as JSON, now and before, and as values of CEL."""

    raw: Any
    old: Any
    value: Any
    before: Any
    path: str


class _Running:
    """One run over an object, with its budget."""

    def __init__(self, units: int) -> None:
        self.budget = Budget(units)
        self.path = ""

    def node(self, ruled: Ruled, at: _At) -> Iterator[Cause]:
        """The broken rules of a place and of all below it."""
        self.path = at.path
        unchanged = at.old is not ABSENT and same(at.raw, at.old)
        for compiled in ruled.rules:
            if unchanged and not compiled.compares:
                continue
            fault = self._rule(ruled.node, compiled, at)
            if fault is not None:
                yield fault
        match at.raw:
            case dict():
                yield from self._fields(ruled, at, at.raw)
            case list():
                yield from self._items(ruled, at, at.raw)
            case _:
                return

    def _fields(self, ruled: Ruled, at: _At, raw: dict[str, Any]) -> Iterator[Cause]:
        old = at.old if isinstance(at.old, dict) else {}
        before = at.before if isinstance(at.before, dict) else {}
        for name, below in ruled.fields.items():
            if name in raw:
                key = escaped(name)
                held = old.get(name, ABSENT), before.get(key, ABSENT)
                place = _At(raw[name], held[0], at.value[key], held[1], join(at.path, name))
                yield from self.node(below, place)
        if ruled.values is not None:
            for name, inner in raw.items():
                self.budget.spend(1)
                held = old.get(name, ABSENT), before.get(name, ABSENT)
                place = _At(inner, held[0], at.value[name], held[1], f"{at.path}[{name}]")
                yield from self.node(ruled.values, place)

    def _items(self, ruled: Ruled, at: _At, raw: list[Any]) -> Iterator[Cause]:
        if ruled.items is None:
            return
        node = ruled.node
        held = correlated(node, at.old)
        # Nothing within an unchanged list has changed, even where its items have no keys.
        alike = at.old if isinstance(at.old, list) and same(at.raw, at.old) else ()
        values = {}
        if held and isinstance(at.before, list):
            pairs = zip(at.old, at.before, strict=True)
            values = {
                list_key(node, each): value for each, value in pairs if isinstance(each, dict)
            }
        for index, inner in enumerate(raw):
            self.budget.spend(1)
            key = list_key(node, inner) if held and isinstance(inner, dict) else ""
            old = alike[index] if alike else held.get(key, ABSENT)
            before = values.get(key, ABSENT)
            place = _At(inner, old, at.value[index], before, f"{at.path}[{index}]")
            yield from self.node(ruled.items, place)

    def _rule(self, node: Node, compiled: Compiled, at: _At) -> Cause | None:
        rule, missing = compiled.rule, at.before is ABSENT
        if compiled.compares and missing and not rule.optional_old_self:
            return None
        before: Any = None if missing else at.before
        if rule.optional_old_self:
            before = NONE if missing else Optional(True, at.before)
        variables = {"self": at.value, "oldSelf": before}
        try:
            if compiled.program.value(variables, self.budget) is True:
                return None
        except CelError as fault:
            says = f"{fault} evaluating rule: {rule.message or rule.rule.strip()}"
            return invalid(at.path, node.type, says)
        return _fault(compiled, node, at.path, self._words(compiled, variables))

    def _words(self, compiled: Compiled, variables: Mapping[str, Any]) -> str:
        """What the rule's author has to say: messageExpression, message, or the rule itself."""
        rule = compiled.rule
        if compiled.words is not None:
            try:
                said = compiled.words.value(variables, self.budget)
            except CelError:
                said = None
            if isinstance(said, str) and said.strip() and "\n" not in said and len(said) <= 5120:
                return said.strip()
        return rule.message.strip() or f"failed rule: {rule.rule.strip()}"


def _fault(compiled: Compiled, node: Node, path: str, words: str) -> Cause:
    reason = compiled.rule.reason
    where = f"{path}{compiled.where}".removeprefix(".")
    kind = f'"{node.type}"'
    match reason:
        case "FieldValueInvalid":
            return invalid(where, node.type, words)
        case "FieldValueDuplicate":
            return Cause(where, f"{_SAID[reason]}: {kind}", reason)
        case _:
            return Cause(where, f"{_SAID.get(reason, 'Invalid value')}: {words}", reason)

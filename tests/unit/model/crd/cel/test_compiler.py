from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.crd.cel import Budget, CelError, Program, Spent, TypeFault
from isthmus.model.crd.cel.types import BOOL, DYN, INT, STRING, CelType, list_of
from isthmus.model.crd.cel.values import NONE, Optional
from tests.unit.model.crd.cel.evaluate import evaluate

THING = CelType(
    "map",
    fields={
        "name": CelType("string", limit=10),
        "count": INT,
        "tags": list_of(STRING, 5),
        "labels": CelType("map", item=STRING, limit=4),
    },
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.a == 1 && self.b.c == 'x'", True),
        ("self['a'] + 1", 2),
        ("has(self.z) || !has(self.a)", False),
        ("self.l[1]", 5),
        ("self.b.c == 'x' ? 1 : 2", 1),
        ("[1, 2] + [3] == [1, 2, 3]", True),
        ("{'a': 1, 'b': [2]} == {'b': [2.0], 'a': 1u}", True),
        ("1 == 1.0 && 1u == 1 && 1 != 1.5", True),
        ("dyn(1) == dyn('1') || dyn(true) == dyn(1)", False),
        ("dyn(null) == dyn(0)", False),
        ("1 < 1.5 && 2u > 1 && 'a' < 'b'", True),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 0.0 > 1e308", True),
        ("2 in self.l || 'a' in self", True),
        ("type(1) == int && type(self) == map && type(type(1)) == type", True),
        ("type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp", True),
        ("cel.bind(x, self.a + 1, x * x)", 4),
    ],
)
def test_values(text: str, value: object) -> None:
    found = evaluate(text, self={"a": 1, "b": {"c": "x"}, "l": [4, 5]})
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.all(x, x > 0)", True),
        ("self.exists(x, x == 3)", True),
        ("self.exists_one(x, x > 1)", False),
        ("self.existsOne(x, x > 2)", True),
        ("self.map(x, x * 2)", [2, 4, 6]),
        ("self.map(x, x > 1, x * 2)", [4, 6]),
        ("self.filter(x, x > 1)", [2, 3]),
        ("self.all(i, x, x == i + 1)", True),
        ("self.transformList(i, x, i * x)", [0, 2, 6]),
        ("self.transformList(i, x, i > 0, i * x)", [2, 6]),
        ("self.transformMap(i, x, x > 1, -x)", {1: -2, 2: -3}),
        ("{'a': 1, 'b': 2}.filter(k, k > 'a')", ["b"]),
        ("{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)", True),
        ("self.map(x, self.map(y, x * y))", [[1, 2, 3], [2, 4, 6], [3, 6, 9]]),
        ("self.all(self, self > 0)", True),
        ("[].all(x, x)", True),
    ],
)
def test_macros(text: str, value: object) -> None:
    assert evaluate(text, self=[1, 2, 3]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.?a.orValue(0)", 1),
        ("self.?z.orValue(0)", 0),
        ("self.?b.c.orValue('')", "x"),
        ("self.?z.y.orValue('none')", "none"),
        ("self.?b.?z.hasValue()", False),
        ("self.l[?7].hasValue()", False),
        ("self[?'a'].value()", 1),
        ("has(self.?b.c) && !has(self.?z.c)", True),
        ("self.?a.optMap(x, x + 1).value()", 2),
        ("self.?z.optMap(x, x + 1).hasValue()", False),
        ("self.?b.optFlatMap(x, x.?c).value()", "x"),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("[?self.?z, ?self.?a, 5]", [1, 5]),
        ("{'k': 1, ?'z': self.?z}", {"k": 1}),
    ],
)
def test_optional_values(text: str, value: object) -> None:
    assert evaluate(text, self={"a": 1, "b": {"c": "x"}, "l": [4]}) == value


def test_logic_does_without_errors_where_something_decides() -> None:
    one = {"l": [{}, {"n": 1}]}
    assert evaluate("self.missing || true", self=one) is True
    assert evaluate("self.missing == 1 && false", self=one) is False
    assert evaluate("self.l.exists(x, x.n == 1)", self=one) is True
    assert evaluate("self.l.all(x, x.n == 2)", self=one) is False
    with pytest.raises(CelError, match="no such key: n"):
        evaluate("self.l.all(x, x.n == 1)", self=one)
    with pytest.raises(CelError, match="no such key: n"):
        evaluate("self.l.exists(x, x.n == 2)", self=one)
    with pytest.raises(CelError):
        evaluate("self.l.exists_one(x, x.n == 1)", self=one)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("self.z", "no such key: z"),
        ("self.l[1]", "index out of bounds: 1"),
        ("self.l[-1]", "index out of bounds: -1"),
        ("self.l['a']", "no such overload"),
        ("self.n / 0", "divide by zero"),
        ("self.n % 0", "modulus by zero"),
        ("self.n + 9223372036854775807", "integer overflow"),
        ("-(-9223372036854775807 - self.n)", "integer overflow"),
        ("self.n.a", "int has no fields"),
        ("self.n + 'a'", "no such overload"),
        ("self.n ? 1 : 2", "no such overload"),
        ("self.n && true", "no such overload"),
        ("self.n.all(x, true)", "cannot be iterated over"),
        ("self.l.filter(x, x)", "no such overload"),
        ("optional.none().value()", "dereference"),
        ("{self.l: 1}", "unsupported key type"),
        ("{'a': 1, 'a': 2}", "twice"),
        ("[?self.n]", "no such overload"),
    ],
)
def test_errors_have_words(text: str, says: str) -> None:
    with pytest.raises(CelError, match=says):
        evaluate(text, self={"n": 1, "l": [1]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("self.nmae == 'a'", "undefined field 'nmae'"),
        ("has(self.nmae)", "undefined field 'nmae'"),
        ("self.name.x", "type 'string' does not support field selection"),
        ("self.name > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.name == 1", "found no matching overload for '_==_'"),
        ("self.count && true", "expected type 'bool' but found 'int'"),
        ("self.count ? 1 : 2", "expected type 'bool'"),
        ("self.tags.all(t, t)", "expected type 'bool'"),
        ("self.count.all(t, true)", "cannot be the range"),
        ("self.tags['a']", "found no matching overload for '_[_]'"),
        ("self.name.frobnicate()", "'frobnicate': the function is not supported"),
        ("frobnicate(self)", "'frobnicate': the function is not supported"),
        ("startsWith(self.name, 'a')", "'startsWith': the function is not supported"),
        ("self.name.startsWith(1)", "found no matching overload for 'startsWith'"),
        ("other.x", "undeclared reference to 'other'"),
        ("math.greatest(1, 2)", "undeclared reference to 'math'"),
        ("self.name.optMap(x, x)", "found no matching overload for 'optMap'"),
    ],
)
def test_what_cannot_mean_anything_is_refused_before_it_runs(text: str, says: str) -> None:
    with pytest.raises(TypeFault) as caught:
        Program(text, {"self": THING})
    assert says in str(caught.value)


def test_types_are_known_through_an_expression() -> None:
    def kind(text: str) -> str:
        return str(Program(text, {"self": THING}).type)

    assert kind("self.tags.map(t, t.size())") == "list(int)"
    assert kind("self.labels['a'] + self.name") == "string"
    assert kind("self.?name") == "optional_type(string)"
    assert kind("self.?name.orValue('')") == "string"
    assert kind("self.tags.filter(t, t != '')[0]") == "string"
    assert kind("self.labels.all(k, v, k != v)") == "bool"
    assert kind("self.count > 1 ? self.count : self.name") == "dyn"
    assert kind("quantity('1').isLessThan(quantity('2'))") == "bool"


def test_a_program_says_what_it_reads() -> None:
    both = {"self": DYN, "oldSelf": DYN}
    assert Program("self == oldSelf", both).reads == {"self", "oldSelf"}
    assert Program("[1].all(oldSelf, oldSelf == self)", both).reads >= {"self"}
    old: dict[str, Any] = {"self": 1, "oldSelf": NONE}
    program = Program("!oldSelf.hasValue() || self >= oldSelf.value()", both)
    assert program.value(old, Budget(100)) is True
    assert program.value(old | {"oldSelf": Optional(True, 2)}, Budget(100)) is False


def test_the_estimate_grows_with_the_limits_of_the_types() -> None:
    def cost(text: str, of: CelType) -> int:
        return Program(text, {"self": of}).cost

    short, long = list_of(INT, 10), list_of(INT, 1000)
    assert cost("self.all(x, x > 0)", long) > 50 * cost("self.all(x, x > 0)", short)
    nested = "self.all(x, self.all(y, x == y))"
    assert cost(nested, long) > 900 * cost("self.all(x, x > 0)", long)
    assert cost(nested, list_of(INT)) > 10**11
    assert cost("self.contains('a')", CelType("string", limit=10)) < 10
    assert cost("self.contains('a')", STRING) > 100_000
    assert Program("true", {}).type == BOOL


def spent(text: str, value: Any, units: int) -> bool:  # noqa: ANN401 - a value of CEL
    try:
        Program(text, {"self": DYN}).value({"self": value}, Budget(units))
    except Spent:
        return True
    return False


def test_every_kind_of_work_is_paid_for() -> None:
    numbers = list(range(1000))
    assert spent("self.all(x, x >= 0)", numbers, 1000)
    assert not spent("self.all(x, x >= 0)", numbers, 10_000)
    assert spent("self.all(x, self.all(y, self.all(z, true)))", numbers, 1_000_000)
    assert spent("self == self.map(x, x)", numbers, 3500)
    assert spent("self.contains('b')", "a" * 100_000, 1000)
    assert spent("999 in self", numbers, 500)
    assert spent("sets.contains(self, self)", numbers, 100_000)
    doubling = "cel.bind(a, self + self, cel.bind(b, a + a, cel.bind(c, b + b, c + c))).size()"
    assert spent(doubling, "a" * 100_000, 100_000)


def test_a_value_that_is_small_and_looks_large_is_paid_for_as_it_looks() -> None:
    """Shared parts are compared as often as they stand there."""
    binds = "[self, self]"
    for _ in range(6):
        binds = f"cel.bind(x, {binds}, [x, x, x, x, x, x, x, x, x, x])"
    assert spent(f"{binds} == {binds}", 1, 500_000)

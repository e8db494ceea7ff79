from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.crd import rules
from isthmus.model.crd.structural import read
from isthmus.model.crd.values import ABSENT

Said = dict[str, Any]
TEXT = {"type": "string", "maxLength": 20}
WHOLE = {"type": "integer"}


def schema(spec: Said, *said: Said | str) -> Said:
    listed = [{"rule": each} if isinstance(each, str) else each for each in said]
    spec = {**spec, "x-kubernetes-validations": listed} if said else spec
    return {"type": "object", "properties": {"spec": spec}}


def refused(spec: Said, *said: Said | str) -> list[str]:
    """Why the rules of a schema cannot be, as `path: message`."""
    found = read(schema(spec, *said), "")
    assert found.faults == ()
    start = ".properties[spec]"
    causes = rules.compile_rules(found.root, "").faults
    return [f"{each.path.removeprefix(start)}: {each.message}" for each in causes]


def broken(whole: Said, value: Any, old: Any = ABSENT) -> list[tuple[str, str]]:  # noqa: ANN401 - JSON
    """The faults of an object with this `spec`: paths and messages."""
    compiled = rules.compile_rules(read(whole, "").root, "")
    assert compiled.faults == ()
    assert compiled.root is not None
    head = {"apiVersion": "e.com/v1", "kind": "E", "metadata": {"name": "n", "labels": {}}}
    before = ABSENT if old is ABSENT else {**head, "spec": old}
    causes = rules.broken(compiled.root, {**head, "spec": value}, before)
    return [(each.path, each.message) for each in causes]


OBJECT = {"type": "object", "properties": {"a": WHOLE, "b": WHOLE, "s": TEXT}}


def test_a_rule_holds_or_not() -> None:
    whole = schema(OBJECT, {"rule": "self.a <= self.b", "message": "a goes before b"})
    assert broken(whole, {"a": 1, "b": 2}) == []
    assert broken(whole, {"a": 3, "b": 2}) == [("spec", 'Invalid value: "object": a goes before b')]
    bare = schema(OBJECT, " self.a <= self.b ")
    assert broken(bare, {"a": 3, "b": 2})[0][1].endswith(": failed rule: self.a <= self.b")
    assert broken(bare, {"a": 3})[0][1] == (
        'Invalid value: "object": no such key: b evaluating rule: self.a <= self.b'
    )


def test_what_a_fault_says_is_the_authors_to_choose() -> None:
    rule = {
        "rule": "self.a < 5",
        "message": "fallback",
        "messageExpression": "'a is ' + string(self.a)",
        "reason": "FieldValueForbidden",
        "fieldPath": ".a",
    }
    assert broken(schema(OBJECT, rule), {"a": 7}) == [("spec.a", "Forbidden: a is 7")]
    fails = {**rule, "messageExpression": "self.s"}
    assert broken(schema(OBJECT, fails), {"a": 7}) == [("spec.a", "Forbidden: fallback")]
    required = {**rule, "reason": "FieldValueRequired"}
    assert broken(schema(OBJECT, required), {"a": 7})[0][1] == "Required value: a is 7"
    twice = {**rule, "reason": "FieldValueDuplicate"}
    assert broken(schema(OBJECT, twice), {"a": 7})[0][1] == 'Duplicate value: "object"'


def test_rules_stand_anywhere() -> None:
    spec = {
        "type": "object",
        "properties": {
            "l": {
                "type": "array",
                "maxItems": 9,
                "items": {**WHOLE, "x-kubernetes-validations": [{"rule": "self > 0"}]},
            },
            "m": {
                "type": "object",
                "maxProperties": 9,
                "additionalProperties": {
                    **TEXT,
                    "x-kubernetes-validations": [{"rule": "self != ''"}],
                },
            },
        },
    }
    paths = [
        path for path, _ in broken(schema(spec), {"l": [1, -1, 2, 0], "m": {"x": "", "y": "z"}})
    ]
    assert paths == ["spec.l[1]", "spec.l[3]", "spec.m[x]"]


def test_the_whole_object_has_a_name_and_no_labels() -> None:
    whole: Said = schema(OBJECT)
    whole["x-kubernetes-validations"] = [{"rule": "self.metadata.name == 'n' && self.kind == 'E'"}]
    assert broken(whole, {}) == []
    whole["x-kubernetes-validations"] = [{"rule": "has(self.metadata.labels)"}]
    faults = rules.compile_rules(read(whole, "").root, "").faults
    assert "undefined field 'labels'" in faults[0].message


def test_values_have_the_types_that_formats_say() -> None:
    def holds(form: str, rule: str, value: str) -> bool:
        return broken(schema({"type": "string", "format": form}, rule), value) == []

    assert holds("date-time", "self < timestamp('2027-01-01T00:00:00Z')", "2026-01-01T00:00:00Z")
    assert holds("date", "self.getFullYear() == 2026", "2026-05-05")
    assert holds("duration", "self > duration('1m')", "1h")
    assert holds("byte", "self == b'abc'", "YWJj")
    number = schema({"type": "number"}, "self == 2.0 && type(self) == double")
    assert broken(number, 2) == []
    either = schema(
        {"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 1 : self != ''"
    )
    assert [broken(either, value) for value in (2, "x")] == [[], []]
    assert broken(either, 1)


def test_names_that_are_no_identifiers_are_escaped() -> None:
    spec = {
        "type": "object",
        "properties": dict.fromkeys(("a-b", "a.b", "for", "x__y", "c/d"), WHOLE),
    }
    rule = " && ".join(
        f"self.{name} == 1"
        for name in ("a__dash__b", "a__dot__b", "__for__", "x__underscores__y", "c__slash__d")
    )
    assert broken(schema(spec, rule), dict.fromkeys(spec["properties"], 1)) == []


# --------------------------------------------------------------------------------- transitions


def test_a_rule_that_compares_needs_something_to_compare_with() -> None:
    whole = schema(WHOLE, {"rule": "self >= oldSelf", "message": "never less"})
    assert broken(whole, 1) == []
    assert broken(whole, 2, 1) == []
    assert broken(whole, 1, 2) == [("spec", 'Invalid value: "integer": never less')]


def test_a_rule_may_ask_whether_there_was_something() -> None:
    rule = {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": True, "message": "m"}
    assert broken(schema(WHOLE, rule), 2) == [("spec", 'Invalid value: "integer": m')]
    assert broken(schema(WHOLE, rule), 1) == []
    assert broken(schema(WHOLE, rule), 2, 1) == []


def test_items_of_keyed_lists_are_compared_by_key() -> None:
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {
            "k": TEXT,
            "v": {**WHOLE, "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
        },
    }
    keyed = {
        "type": "array", "maxItems": 5, "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
    }  # fmt: skip
    old = [{"k": "a", "v": 5}, {"k": "b", "v": 1}]
    new = [{"k": "b", "v": 2}, {"k": "a", "v": 4}, {"k": "c", "v": 0}]
    assert [path for path, _ in broken(schema(keyed), new, old)] == ["spec[1].v"]


def test_rules_are_not_asked_again_of_what_has_not_changed() -> None:
    whole = schema(
        {
            "type": "object",
            "properties": {
                "a": {**WHOLE, "x-kubernetes-validations": [{"rule": "self < 5"}]},
                "b": WHOLE,
            },
        }
    )
    assert broken(whole, {"a": 9, "b": 2}, {"a": 9, "b": 1}) == []
    assert broken(whole, {"a": 8, "b": 1}, {"a": 9, "b": 1})


# ----------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (
            "self.c > 1",
            "[0].rule: Invalid value: \"self.c > 1\": compilation failed: undefined field 'c'",
        ),
        ("self.a >", "compilation failed: unexpected the end"),
        ("self.a", "must evaluate to a bool, and evaluates to int"),
        (
            "self.s.frobnicate()",
            "undeclared reference to 'frobnicate': the function is not supported",
        ),
        ("", "[0].rule: Required value: rule is not specified"),
        ({"rule": "true", "reason": "Because"}, "[0].reason: Unsupported value"),
        ({"rule": "true", "message": " "}, "[0].message: Invalid value"),
        ({"rule": "true", "message": "a\nb"}, "must not contain line breaks"),
        ({"rule": "true\n&& true"}, "[0].message: Required value"),
        ({"rule": "true", "messageExpression": "1"}, "must evaluate to a string"),
        ({"rule": "true", "messageExpression": "self.zz"}, "[0].messageExpression: Invalid value"),
        ({"rule": "true", "fieldPath": ".zz"}, "[0].fieldPath: Invalid value"),
        ({"rule": "true", "fieldPath": ".a[0]"}, "[0].fieldPath: Invalid value"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used"),
    ],
)
def test_rules_that_cannot_be_are_refused(rule: Said | str, says: str) -> None:
    found = refused(OBJECT, rule)
    assert any(says in each for each in found), found


def test_rules_that_could_cost_too_much_are_refused() -> None:
    numbers: Said = {"type": "array", "items": WHOLE}
    nested = "self.all(x, self.all(y, x == y))"
    fault, total = refused(numbers, nested)
    assert "total CEL cost exceeds budget" in total
    assert "estimated rule cost exceeds budget by factor of more than 100x" in fault
    assert refused({**numbers, "maxItems": 100}, nested) == []
    inner = {
        "type": "array",
        "maxItems": 100,
        "items": WHOLE,
        "x-kubernetes-validations": [{"rule": nested}],
    }
    many = {"type": "array", "items": inner}
    assert any("exceeds budget" in each for each in refused(many))
    assert refused({**many, "maxItems": 10}) == []
    text = "a" * 10_000
    crowd = [f"self.s != '{text}{n}'" for n in range(20)]
    assert any("characters together" in each for each in refused(OBJECT, *crowd))
    short = ["self.a > 1"] * (rules.MAX_RULES + 1)
    assert any("may have 2000 rules" in each for each in refused(OBJECT, *short))


def test_rules_that_do_cost_too_much_end_with_the_budget() -> None:
    texts = {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2_000}
    whole = schema(texts, {"rule": "self.all(x, self.exists(y, y != x))", "message": "m"})
    numbers = [str(n) for n in range(10_000)]
    assert broken(whole, numbers) == []
    same = ["x"] * 5_000
    (fault,) = broken(schema(texts, "self.exists(x, self.exists(y, y != x))"), same)
    assert "running out of cost budget" in fault[1]


def test_unknown_fields_that_are_kept_are_not_seen_by_rules() -> None:
    spec = {**OBJECT, "x-kubernetes-preserve-unknown-fields": True}
    assert any("undefined field" in each for each in refused(spec, "self.other == 1"))
    assert broken(schema(spec, "self.a == 1"), {"a": 1, "other": 2}) == []

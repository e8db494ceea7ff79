"""The rules of our own kinds, in CEL, run by what runs the rules of definitions.

A schema of ours has its rules where a definition has them (`shapes.ruled`), and tells them in
OpenAPI alike. From the schema come the nodes that give the rules their types; types, bounds and
patterns of our own kinds are checked by `model.walk`, in its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.crd.nodes import Bounds, Node, Rule
from isthmus.model.crd.rules import UNCHECKED, Compilation, blocked, broken, compile_rules
from isthmus.model.crd.values import ABSENT
from isthmus.model.kind import Document
from isthmus.model.schema import ListType, Schema, Type

__all__ = ["blocked", "compiled", "rule_faults"]

_TYPES: Final[Mapping[Type, str]] = {
    Type.OBJECT: "object",
    Type.MAP: "object",
    Type.ARRAY: "array",
    Type.STRING: "string",
    Type.INTEGER: "integer",
    Type.NUMBER: "number",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "string",
    Type.TIME: "string",
    Type.MICRO_TIME: "string",
    Type.DURATION: "string",
    Type.QUANTITY: "string",
}

MAX_UNITS: Final = 2_000_000
"""Units for one object: the largest HTTPRoute that its schema allows, 700 kB, takes 1,230,000."""

_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of a whole object that rules see in a form of their own."""


def rule_faults(
    schema: Schema, document: Document, old: Document | None, *, blocked: bool
) -> list[Cause]:
    """The rules of a kind's schema that do not hold.

    `blocked`: what they may rely on is missing; none is asked then, and one fault says so.
    """
    ruled = compiled(schema).root
    if ruled is None:
        return []
    if blocked:
        return [Cause("<nil>", f"Invalid value: null: {UNCHECKED}")]
    return broken(ruled, document, ABSENT if old is None else old, units=MAX_UNITS)


_COMPILED: Final[dict[int, tuple[Schema, Compilation]]] = {}


def compiled(schema: Schema) -> Compilation:
    """The rules of a whole kind's schema, compiled when first asked for."""
    held = _COMPILED.get(id(schema))
    if held is None or held[0] is not schema:
        held = _COMPILED[id(schema)] = (schema, compile_rules(_node(schema, root=True), ""))
    return held[1]


def _node(schema: Schema, *, root: bool = False) -> Node:
    fields = schema.fields if schema.type is Type.OBJECT else {}
    return Node(
        type=_TYPES.get(schema.type, ""),
        format=schema.format if schema.type in (Type.STRING, Type.TIME) else "",
        enum=schema.enum or None,
        bounds=Bounds(max_length=schema.max_length, max_items=schema.max_items),
        properties={
            name: _node(each) for name, each in fields.items() if not (root and name in _HEAD)
        },
        values=_node(schema.values) if schema.values is not None else None,
        open=schema.type is Type.MAP and schema.values is None,
        items=_node(schema.items) if schema.items is not None else None,
        int_or_string=schema.type is Type.INT_OR_STRING,
        list_type=schema.list_type.value if schema.list_type is not ListType.ATOMIC else "",
        list_keys=schema.list_keys,
        rules=tuple(_rule(each) for each in schema.keywords.get("x-kubernetes-validations", ())),
    )


def _rule(said: Mapping[str, Any]) -> Rule:
    return Rule(
        said["rule"],
        message=said.get("message", ""),
        message_expression=said.get("messageExpression", ""),
        field_path=said.get("fieldPath", ""),
    )

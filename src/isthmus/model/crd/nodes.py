"""A structural schema as values: what a CustomResourceDefinition says of its objects.

One `Node` for each place of an object. What a node says of the *structure* (types, fields) serves
pruning, defaults and OpenAPI through `shape`; what it says of *values* serves `values`; its rules
serve `rules`. (Kubernetes: "Structural schemas", apiextensions.k8s.io/v1 JSONSchemaProps.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")

NOTHING: Final = msgspec.UNSET
"""Where no default is given; null is one that may be."""


class Rule(msgspec.Struct, frozen=True):
    """One of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool | None = None


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """The numbers that a value may not go beyond. None: no bound."""

    minimum: float | None = None
    maximum: float | None = None
    over_minimum: bool = False
    """exclusiveMinimum: the value must be greater."""
    under_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None


UNBOUNDED: Final = Bounds()


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One place. `type` is "" where any value may stand, or where `int_or_string` says what may.

    Inside allOf, anyOf, oneOf and not a node says something of values only.
    `said` is the JSON it was read from, for whoever publishes it.
    """

    type: str = ""
    description: str = ""
    format: str = ""
    pattern: str = ""
    nullable: bool = False
    default: Any = NOTHING
    enum: tuple[Any, ...] | None = None
    bounds: Bounds = UNBOUNDED
    required: tuple[str, ...] = ()
    properties: Mapping[str, Node] = {}
    values: Node | None = None
    """additionalProperties, where it is a schema."""
    open: bool = False
    """additionalProperties: true."""
    items: Node | None = None
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    negated: Node | None = None
    """`not`."""
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Rule, ...] = ()
    said: Mapping[str, Any] = {}

    @property
    def logical(self) -> bool:
        """Whether it has parts that combine others."""
        return bool(self.all_of or self.any_of or self.one_of or self.negated is not None)

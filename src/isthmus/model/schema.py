"""What a document of a kind may hold: one tree of nodes, whatever the kind came from.

A Schema says the same as a structural OpenAPI v3 schema (Kubernetes: "structural schema"), plus
what strategic merge patch and server-side apply need to know of lists. It serves checking of types
and unknown fields, defaults, OpenAPI, `kubectl explain`, and all patch types. Built-in Kubernetes
kinds get theirs from the wire data of `model.wire`; the mesh's own kinds write theirs down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Type(StrEnum):
    """The JSON type of a node. ANY keeps what it is given (RawExtension, preserve-unknown)."""

    OBJECT = "object"
    MAP = "map"
    ARRAY = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    BYTES = "bytes"
    TIME = "time"
    MICRO_TIME = "micro-time"
    DURATION = "duration"
    ANY = "any"


class ListType(StrEnum):
    """x-kubernetes-list-type: how server-side apply merges a list."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


class Patch(StrEnum):
    """x-kubernetes-patch-strategy: how strategic merge patch treats a field."""

    REPLACE = "replace"
    MERGE = "merge"
    RETAIN_KEYS = "retainKeys"
    MERGE_RETAIN_KEYS = "merge,retainKeys"


class Schema(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node.

    `properties` may be given lazily (a function) so that recursive types (JSONSchemaProps) end.
    `values` is the schema of a MAP's values, `items` of an ARRAY's items.
    `merge_key` belongs to strategic merge (one key), `list_keys` to server-side apply (several).
    `ref` is the name under which OpenAPI shares the node (`io.k8s.api.core.v1.PodSpec`), or "".
    """

    type: Type
    description: str = ""
    ref: str = ""
    ref_description: str = ""
    """What the shared node is, where `description` says what the field is for."""
    properties: Mapping[str, Schema] | Callable[[], Mapping[str, Schema]] = {}
    values: Schema | None = None
    items: Schema | None = None
    required: tuple[str, ...] = ()
    default: Any = None
    nullable: bool = False
    enum: tuple[str, ...] = ()
    pattern: str = ""
    format: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    patch: Patch = Patch.REPLACE
    merge_key: str = ""
    list_type: ListType = ListType.ATOMIC
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    """x-kubernetes-map-type: atomic: server-side apply takes an OBJECT or MAP as one value."""
    preserve: bool = False
    """x-kubernetes-preserve-unknown-fields: fields that an OBJECT does not name stay."""
    keywords: Mapping[str, Any] = {}
    """What OpenAPI says besides, as it was written: what definitions say of values, and rules in
    CEL (x-kubernetes-validations), which our own kinds have too. They are checked by `model.crd`,
    not by walks of this schema."""

    @property
    def fields(self) -> Mapping[str, Schema]:
        """The properties of an OBJECT, by JSON name."""
        return self.properties() if callable(self.properties) else self.properties

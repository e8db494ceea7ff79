"""Short words for writing schemas by hand, as the mesh's own kinds do.

SPEC = structure({"port": INT_OR_STRING, "proxyProtocol": choice("unknown", "HTTP/1")},
required=("port",))
SERVER = resource(SPEC, status=CONDITIONS)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.wire.schemas import schema_of
from isthmus.model.wire.words import ANY as ANY_MESSAGE
from isthmus.model.wire.words import about_field

STRING: Final = Schema(type=Type.STRING)
BOOLEAN: Final = Schema(type=Type.BOOLEAN)
INTEGER: Final = Schema(type=Type.INTEGER, format="int64")
INT32: Final = Schema(type=Type.INTEGER, format="int32")
PORT: Final = Schema(type=Type.INTEGER, format="int32", minimum=1, maximum=65535)
NUMBER: Final = Schema(type=Type.NUMBER)
INT_OR_STRING: Final = Schema(type=Type.INT_OR_STRING)
TIME: Final = Schema(type=Type.TIME, format="date-time")
ANY: Final = Schema(type=Type.ANY)
LABEL_SELECTOR: Final = schema_of("meta.v1.LabelSelector")
METADATA: Final = schema_of("meta.v1.ObjectMeta")
HEAD: Final[Mapping[str, Schema]] = {
    name: msgspec.structs.replace(schema, description=about_field(ANY_MESSAGE, name))
    for name, schema in (("apiVersion", STRING), ("kind", STRING), ("metadata", METADATA))
}
"""The fields that every kind has."""


def structure(
    fields: Mapping[str, Schema],
    *,
    required: tuple[str, ...] = (),
    default: Any = None,  # noqa: ANN401 - a JSON value
    ref: str = "",
    atomic: bool = False,
) -> Schema:
    """An object with these fields."""
    return Schema(
        type=Type.OBJECT,
        properties=fields,
        required=required,
        default=default,
        ref=ref,
        atomic=atomic,
    )


def listed(
    items: Schema,
    *,
    keys: tuple[str, ...] = (),
    unique: bool = False,
    min_items: int | None = None,
    max_items: int | None = None,
) -> Schema:
    """A list: server-side apply merges it by `keys`, as a set if `unique`, else takes it whole."""
    kind = ListType.MAP if keys else ListType.SET if unique else ListType.ATOMIC
    return Schema(
        type=Type.ARRAY,
        items=items,
        list_type=kind,
        list_keys=keys,
        min_items=min_items,
        max_items=max_items,
    )


def mapped(values: Schema) -> Schema:
    """A map from text."""
    return Schema(type=Type.MAP, values=values)


def choice(*words: str, default: str | None = None) -> Schema:
    """A string that is one of these words."""
    return Schema(type=Type.STRING, enum=words, default=default)


def text(
    *,
    pattern: str = "",
    min_length: int | None = None,
    max_length: int | None = None,
    default: str | None = None,
) -> Schema:
    """A string with bounds. `pattern` is searched for, so write `^...$`, without nested stars."""
    return Schema(
        type=Type.STRING,
        pattern=pattern,
        min_length=min_length,
        max_length=max_length,
        default=default,
    )


def whole(
    *, minimum: int | None = None, maximum: int | None = None, default: int | None = None
) -> Schema:
    """An integer with bounds."""
    return Schema(
        type=Type.INTEGER, format="int32", minimum=minimum, maximum=maximum, default=default
    )


def about(schema: Schema, description: str, *, default: Any = None) -> Schema:  # noqa: ANN401 - JSON
    """The same node with words for `kubectl explain`, and a default where one is given."""
    kept = schema.default if default is None else default
    return msgspec.structs.replace(schema, description=description, default=kept)


def rule(expression: str, message: str, *, field: str = "", words: str = "") -> dict[str, str]:
    """A rule in CEL over the value where it stands (`self`); `field` is whose fault it is.

    `words`: the message as an expression, where it depends on the value.
    """
    said = {"rule": expression, "message": message}
    more = {"fieldPath": field, "messageExpression": words}
    return said | {name: value for name, value in more.items() if value}


def ruled(schema: Schema, *rules: Mapping[str, str]) -> Schema:
    """The same node with rules besides those it has (x-kubernetes-validations)."""
    held = [*schema.keywords.get("x-kubernetes-validations", ()), *rules]
    return msgspec.structs.replace(schema, keywords={"x-kubernetes-validations": held})


CONDITION: Final = structure(
    {
        "type": text(max_length=316),
        "status": choice("True", "False", "Unknown"),
        "observedGeneration": INTEGER,
        "lastTransitionTime": TIME,
        "reason": text(max_length=1024),
        "message": text(max_length=32768),
    },
    required=("type", "status", "lastTransitionTime", "reason", "message"),
)
"""meta/v1 Condition."""

CONDITIONS: Final = listed(CONDITION, keys=("type",))


def resource(
    spec: Schema | None = None,
    *,
    status: Schema | None = None,
    more: Mapping[str, Schema] | None = None,
    required: tuple[str, ...] = ("spec",),
    ref: str = "",
) -> Schema:
    """A whole kind: apiVersion, kind, metadata, and `spec`, `status` and `more` where given."""
    fields = dict(HEAD)
    if spec is not None:
        fields["spec"] = spec
    if status is not None:
        fields["status"] = status
    fields.update(more or {})
    kept = tuple(name for name in required if name in fields)
    return structure(fields, required=kept, ref=ref)

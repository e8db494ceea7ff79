"""Schemas of the built-in kinds, made from their messages on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

import msgspec

from isthmus.model.schema import ListType, Schema, Type
from isthmus.model.wire.messages import Field, messages
from isthmus.model.wire.words import ANY, about_field, about_message

_FORMS: Mapping[str, Schema] = {
    "string": Schema(type=Type.STRING),
    "bool": Schema(type=Type.BOOLEAN),
    "int32": Schema(type=Type.INTEGER, format="int32"),
    "int64": Schema(type=Type.INTEGER, format="int64"),
    "double": Schema(type=Type.NUMBER, format="double"),
    "bytes": Schema(type=Type.BYTES, format="byte"),
    "meta.v1.Time": Schema(type=Type.TIME, format="date-time", nullable=True),
    "meta.v1.MicroTime": Schema(type=Type.MICRO_TIME, format="date-time", nullable=True),
    "meta.v1.Duration": Schema(type=Type.DURATION),
    "meta.v1.FieldsV1": Schema(type=Type.ANY),
    "resource.Quantity": Schema(type=Type.QUANTITY),
    "intstr.IntOrString": Schema(type=Type.INT_OR_STRING, format="int-or-string"),
    "runtime.RawExtension": Schema(type=Type.ANY),
    "apiextensions.v1.JSON": Schema(type=Type.ANY),
    "apiextensions.v1.JSONSchemaPropsOrArray": Schema(type=Type.ANY),
    "apiextensions.v1.JSONSchemaPropsOrBool": Schema(type=Type.ANY),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": Schema(type=Type.ANY),
    "authentication.v1.ExtraValue": Schema(type=Type.ARRAY, items=Schema(type=Type.STRING)),
    "authorization.v1.ExtraValue": Schema(type=Type.ARRAY, items=Schema(type=Type.STRING)),
}

_TYPE_META: Mapping[str, Schema] = {
    name: Schema(type=Type.STRING, description=about_field(ANY, name))
    for name in ("apiVersion", "kind")
}


@cache
def schema_of(message: str) -> Schema:
    """The schema of a message by its short name, such as `core.v1.Service`.

    Messages with metadata, and DeleteOptions, also have `apiVersion` and `kind`, which the wire
    keeps outside. Properties are made when first looked at. KeyError for a message that no served
    kind reaches.
    """
    form = _FORMS.get(message)
    if form is not None:
        return form
    about = about_message(message)
    return Schema(
        type=Type.OBJECT,
        description=about,
        ref=_reference(message),
        ref_description=about,
        properties=partial(_properties, message),
        required=_required(message),
        atomic=messages()[message].atomic,
    )


@cache
def _properties(message: str) -> Mapping[str, Schema]:
    found: dict[str, Schema] = dict(_TYPE_META) if _is_root(message) else {}
    for field in messages()[message].fields:
        if field.inline:
            found.update(_properties(field.type))
        else:
            found[field.name] = _of_field(field, about_field(message, field.name))
    return found


def _required(message: str) -> tuple[str, ...]:
    names: list[str] = []
    for field in messages()[message].fields:
        if field.inline:
            names.extend(_required(field.type))
        elif field.required:
            names.append(field.name)
    return tuple(sorted(names))


def _is_root(message: str) -> bool:
    """Whether its documents say apiVersion and kind: kinds do, templates of pods do not."""
    if message == "meta.v1.DeleteOptions":
        return True
    has_metadata = any(field.name == "metadata" for field in messages()[message].fields)
    return (
        has_metadata and not message.endswith("Template") and not message.endswith("TemplateSpec")
    )


def _of_field(field: Field, about: str) -> Schema:
    inner = schema_of(field.type)
    if field.mapped:
        return Schema(
            type=Type.MAP, description=about, values=inner, atomic=field.atomic, patch=field.patch
        )
    if not field.repeated:
        return msgspec.structs.replace(
            inner,
            description=about or inner.description,
            patch=field.patch,
            atomic=inner.atomic or field.atomic,
            default=field.default,
        )
    return Schema(
        type=Type.ARRAY,
        description=about,
        items=inner,
        patch=field.patch,
        merge_key=field.merge_key,
        list_type=_list_type(field),
        list_keys=field.list_keys,
    )


def _list_type(field: Field) -> ListType:
    if field.list_keys:
        return ListType.MAP
    return ListType.SET if field.set else ListType.ATOMIC


def _reference(message: str) -> str:
    """The name that Kubernetes' OpenAPI uses: `io.k8s.api.core.v1.PodSpec`."""
    if message.startswith("meta."):
        return f"io.k8s.apimachinery.pkg.apis.{message}"
    if message.startswith("apiextensions."):
        return f"io.k8s.apiextensions-apiserver.pkg.apis.{message}"
    return f"io.k8s.api.{message}"

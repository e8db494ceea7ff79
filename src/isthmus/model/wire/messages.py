"""The messages of messages.txt as values. Read once, at first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from isthmus.model.schema import Patch

SCALARS = frozenset({"string", "bool", "int32", "int64", "bytes", "double"})

FORMS = frozenset(
    {
        "meta.v1.Time",
        "meta.v1.MicroTime",
        "meta.v1.Duration",
        "meta.v1.FieldsV1",
        "resource.Quantity",
        "intstr.IntOrString",
        "runtime.RawExtension",
        "apiextensions.v1.JSON",
        "apiextensions.v1.JSONSchemaPropsOrArray",
        "apiextensions.v1.JSONSchemaPropsOrBool",
        "apiextensions.v1.JSONSchemaPropsOrStringArray",
        "authentication.v1.ExtraValue",
        "authorization.v1.ExtraValue",
    }
)
"""Messages whose JSON is not an object with their fields."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a message. `type` is a scalar of SCALARS or the short name of a message."""

    number: int
    name: str
    type: str
    repeated: bool = False
    mapped: bool = False
    required: bool = False
    keepzero: bool = False
    inline: bool = False
    atomic: bool = False
    patch: Patch = Patch.REPLACE
    merge_key: str = ""
    list_keys: tuple[str, ...] = ()
    set: bool = False
    default: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message type; `atomic`: server-side apply takes its values whole."""

    name: str
    fields: tuple[Field, ...]
    atomic: bool = False

    @property
    def package(self) -> str:
        """`core.v1` of `core.v1.PodSpec`."""
        return self.name.rpartition(".")[0]


@cache
def messages() -> Mapping[str, Message]:
    """Every message, by short name."""
    text = files("isthmus.model.wire").joinpath("messages.txt").read_text(encoding="utf-8")
    return {message.name: message for message in _parse(text)}


@cache
def numbered(message: str) -> Mapping[int, Field]:
    """The fields of a message by wire number."""
    return {field.number: field for field in messages()[message].fields}


def _parse(text: str) -> Iterator[Message]:
    head: list[str] = []
    fields: list[Field] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            fields.append(_field(line.split()))
        elif line:
            head = line.split()
        elif head:
            yield Message(head[0], tuple(fields), atomic="atomic" in head[1:])
            head, fields = [], []


def _field(words: list[str]) -> Field:
    number, name, kind, *marks = words
    said = dict(mark.partition("=")[::2] for mark in marks)
    strategy, _, key = said.get("patch", Patch.REPLACE.value).partition(":")
    return Field(
        number=int(number),
        name=name,
        type=kind.removeprefix("[]").removeprefix("map:"),
        repeated=kind.startswith("[]"),
        mapped=kind.startswith("map:"),
        required="required" in said,
        keepzero="keepzero" in said,
        inline="inline" in said,
        atomic="atomic" in said,
        patch=Patch(strategy.replace("+", ",")),
        merge_key=key,
        list_keys=tuple(said["keys"].split(",")) if "keys" in said else (),
        set="set" in said,
        default=said.get("default"),
    )

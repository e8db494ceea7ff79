"""`application/vnd.kubernetes.protobuf` bodies as documents.

A body is MAGIC and a runtime.Unknown: the type's names, and the object's own message as bytes. The
document is what the same object would be as JSON. Unknown fields are skipped, as protobuf asks.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from isthmus.errors import BadRequest, TooLarge
from isthmus.model.document import MAX_BODY, MAX_DEPTH, MAX_VALUES, check_bounds
from isthmus.model.kind import Document
from isthmus.model.wire.forms import FROM_WIRE
from isthmus.model.wire.messages import FORMS, SCALARS, Field, messages, numbered
from isthmus.model.wire.reader import Cursor, WireType, signed

MAGIC: Final = b"k8s\x00"

_PACKAGES: Final[Mapping[str, str]] = {
    "": "core",
    "apps": "apps",
    "batch": "batch",
    "autoscaling": "autoscaling",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "rbac.authorization.k8s.io": "rbac",
    "apiextensions.k8s.io": "apiextensions",
    "meta.k8s.io": "meta",
}


def decode(body: bytes, *, limit: int = MAX_BODY) -> Document:
    """The document in a protobuf body.

    TooLarge over `limit`; BadRequest, saying where, for everything else that is wrong with it,
    among that a kind that is not served as protobuf.
    """
    if len(body) > limit:
        raise TooLarge(f"the body is {len(body)} bytes long, the limit is {limit}")
    if not body.startswith(MAGIC):
        raise BadRequest("the body does not start with the four bytes of Kubernetes protobuf")
    envelope = _envelope(Cursor(body, len(MAGIC), len(body)))
    message = message_of(envelope.api_version, envelope.kind)
    document: Document = {"apiVersion": envelope.api_version, "kind": envelope.kind}
    if message == "meta.v1.DeleteOptions":
        document = {"kind": envelope.kind}
    _Decoder(envelope.kind).fill(document, message, envelope.raw)
    return document


def decode_message(message: str, data: bytes) -> Document:
    """One message without the envelope, by its short name; BadRequest as for `decode`."""
    document: Document = {}
    _Decoder(message).fill(document, message, Cursor(data, 0, len(data)))
    return document


def message_of(api_version: str, kind: str) -> str:
    """The short name of the message of a kind; BadRequest if it has none here."""
    if kind == "DeleteOptions":  # every group version has its own; they are one message
        return "meta.v1.DeleteOptions"
    group, _, version = api_version.rpartition("/")
    name = f"{_PACKAGES.get(group, group)}.{version}.{kind}"
    if group not in _PACKAGES or name not in messages() or name in FORMS:
        raise BadRequest(f"no kind {kind!r} in version {api_version!r} is known as protobuf")
    return name


class _Envelope:
    """runtime.Unknown."""

    api_version = ""
    kind = ""
    encoding = ""
    content_type = ""

    def __init__(self, raw: Cursor) -> None:
        self.raw = raw


def _envelope(cursor: Cursor) -> _Envelope:
    found = _Envelope(Cursor(cursor.data, cursor.end, cursor.end))
    try:
        while cursor:
            _envelope_field(found, cursor)
    except BadRequest as fault:
        raise BadRequest(f"runtime.Unknown: {fault.message}") from None
    if found.encoding:
        raise BadRequest(f"the content encoding {found.encoding!r} is not supported")
    if found.content_type not in ("", "application/vnd.kubernetes.protobuf"):
        raise BadRequest(f"protobuf holds an object of content type {found.content_type!r}")
    return found


def _envelope_field(found: _Envelope, cursor: Cursor) -> None:
    number, wire_type = cursor.tag()
    if wire_type is not WireType.BYTES:
        cursor.skip(wire_type)
        return
    match number:
        case 1:
            _type_meta(found, cursor.window())
        case 2:
            found.raw = cursor.window()
        case 3:
            found.encoding = _text(cursor)
        case 4:
            found.content_type = _text(cursor)
        case _:
            cursor.skip(wire_type)


def _type_meta(found: _Envelope, cursor: Cursor) -> None:
    while cursor:
        number, wire_type = cursor.tag()
        if number == 1 and wire_type is WireType.BYTES:
            found.api_version = _text(cursor)
        elif number == 2 and wire_type is WireType.BYTES:
            found.kind = _text(cursor)
        else:
            cursor.skip(wire_type)


def _text(cursor: Cursor) -> str:
    start = cursor.at
    try:
        return cursor.bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"byte {start}: the text is not UTF-8") from None


class _Decoder:
    """Fills documents from messages; knows where it is, for faults, and how much it has made."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._path: list[str] = []
        self._values = 0

    def fill(self, document: Document, message: str, cursor: Cursor) -> None:
        """Read a whole message into `document`; a fault names the field it stands in."""
        try:
            self._fill(document, message, cursor)
        except BadRequest as fault:
            where = "".join(self._path).removeprefix(".")
            at = f"{self._kind} at {where}" if where else self._kind
            raise BadRequest(f"{at}: {fault.message}") from None
        check_bounds(document)  # raw JSON inside adds to the depth of messages

    def _fill(self, document: Document, message: str, cursor: Cursor) -> None:
        known = numbered(message)
        while cursor:
            number, wire_type = cursor.tag()
            field = known.get(number)
            if field is None:
                cursor.skip(wire_type)
            elif field.inline:
                self._expect(wire_type, WireType.BYTES)
                self._nested(document, field, cursor.window())
            else:
                self._path.append(f".{field.name}")
                self._field(document, field, wire_type, cursor)
                self._path.pop()

    def _nested(self, document: Document, field: Field, cursor: Cursor) -> None:
        if len(self._path) >= MAX_DEPTH:
            raise BadRequest(f"messages are nested more than {MAX_DEPTH} deep")
        self._fill(document, field.type, cursor)

    def _field(self, document: Document, field: Field, wire_type: WireType, cursor: Cursor) -> None:
        if field.mapped:
            self._expect(wire_type, WireType.BYTES)
            self._entry(document.setdefault(field.name, {}), field, cursor.window())
        elif field.repeated:
            self._repeated(document.setdefault(field.name, []), field, wire_type, cursor)
        else:
            before = document.get(field.name)
            value = self._value(field, wire_type, cursor, before)
            if value is None or (not value and field.type in SCALARS and not field.keepzero):
                document.pop(field.name, None)
            else:
                document[field.name] = value

    def _repeated(
        self, values: list[Any], field: Field, wire_type: WireType, cursor: Cursor
    ) -> None:
        if wire_type is WireType.BYTES and field.type in ("bool", "int32", "int64"):  # packed
            inner = cursor.window()
            while inner:
                self._count()
                values.append(self._scalar(field, WireType.VARINT, inner))
            return
        self._path.append(f"[{len(values)}]")
        values.append(self._value(field, wire_type, cursor, None))
        self._path.pop()

    def _entry(self, values: dict[str, Any], field: Field, cursor: Cursor) -> None:
        """One pair of a map. A missing key or value is its type's zero."""
        key, value = "", _zero(field)
        while cursor:
            number, wire_type = cursor.tag()
            if number == 1:
                self._expect(wire_type, WireType.BYTES)
                key = _text(cursor)
            elif number == 2:
                self._path.append(f"[{key}]")
                value = self._value(field, wire_type, cursor, None)
                self._path.pop()
            else:
                cursor.skip(wire_type)
        values[key] = value

    def _value(self, field: Field, wire_type: WireType, cursor: Cursor, before: Any) -> Any:  # noqa: ANN401 - bytes become values
        self._count()
        if field.type in SCALARS:
            return self._scalar(field, wire_type, cursor)
        self._expect(wire_type, WireType.BYTES)
        form = FROM_WIRE.get(field.type)
        inner: Document = before if form is None and isinstance(before, dict) else {}
        self._nested(inner, field, cursor.window())
        return inner if form is None else form(inner)

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise BadRequest(f"the body holds more than {MAX_VALUES} values")

    def _scalar(self, field: Field, wire_type: WireType, cursor: Cursor) -> Any:  # noqa: ANN401 - bytes become values
        self._expect(wire_type, _WIRE_TYPES[field.type])
        match field.type:
            case "string":
                return _text(cursor)
            case "bytes":
                return b64encode(cursor.bytes()).decode("ascii")
            case "bool":
                return cursor.varint() != 0
            case "double":
                return _finite(cursor.double())
            case _:
                return signed(cursor.varint(), 32 if field.type == "int32" else 64)

    def _expect(self, got: WireType, wanted: WireType) -> None:
        if got is not wanted:
            raise BadRequest(f"wire type {got.value} where {wanted.value} belongs")


_WIRE_TYPES: Final[Mapping[str, WireType]] = {
    "string": WireType.BYTES,
    "bytes": WireType.BYTES,
    "bool": WireType.VARINT,
    "int32": WireType.VARINT,
    "int64": WireType.VARINT,
    "double": WireType.FIXED64,
}


def _finite(value: float) -> float | int:
    """A double as JSON can say it: whole numbers without a fraction."""
    if not isfinite(value):
        raise BadRequest(f"{value} is not a JSON number")
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def _zero(field: Field) -> Any:  # noqa: ANN401 - a JSON value
    if field.type in SCALARS:
        return {"string": "", "bytes": "", "bool": False}.get(field.type, 0)
    form = FROM_WIRE.get(field.type)
    return {} if form is None else form({})

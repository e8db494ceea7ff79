"""Whatever bytes arrive, the protobuf reader answers with a document or with one of our errors."""

from __future__ import annotations

import json
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import IsthmusError
from isthmus.model.document import read_json
from isthmus.model.wire import MAGIC, decode
from isthmus.model.wire.messages import Field, messages
from tests.unit.model.encoder import body, double, lend, num

KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("coordination.k8s.io/v1", "Lease"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ]
)

NUMBERS = st.integers(0, 50)
WIRE = st.recursive(
    st.one_of(
        st.builds(num, NUMBERS, st.integers(-(2**63), 2**64 - 1)),
        st.builds(lend, NUMBERS, st.binary(max_size=8)),
        st.builds(lend, NUMBERS, st.text(max_size=8)),
        st.builds(double, NUMBERS, st.floats()),
        st.binary(max_size=3),
    ),
    lambda inner: st.builds(lend, NUMBERS, st.lists(inner, max_size=6).map(b"".join)),
    max_leaves=30,
)


def answers(data: bytes) -> None:
    try:
        document = decode(data)
    except IsthmusError:
        return
    assert read_json(json.dumps(document).encode()) == document


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    answers(data)
    answers(MAGIC + data)


@given(KINDS, st.lists(WIRE, max_size=6).map(b"".join))
def test_any_fields_in_a_good_envelope(kind: tuple[str, str], raw: bytes) -> None:
    answers(body(*kind, raw))


@given(KINDS, st.data())
def test_a_real_message_with_flipped_bytes(kind: tuple[str, str], data: st.DataObject) -> None:
    group, _, version = kind[0].rpartition("/")
    package = {"": "core", "apiextensions.k8s.io": "apiextensions"}.get(
        group, group.partition(".")[0]
    )
    name = f"{package}.{version}.{kind[1]}"
    raw = data.draw(filled(name, 4))
    good = bytearray(body(*kind, raw))
    decode(bytes(good))
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    answers(bytes(good))


def filled(name: str, depth: int) -> st.SearchStrategy[bytes]:
    """A well-formed message of this name with some of its fields."""
    if name in RAW:
        return st.just(lend(1, b'{"a": [1]}'))
    if name.endswith("Time"):
        return st.integers(1, 2**31).map(lambda seconds: num(1, seconds))
    if name == "intstr.IntOrString":
        return st.just(num(1, 0) + num(2, 80))
    fields = [
        field
        for field in messages()[name].fields
        if depth or field.type in ("string", "bool", "int32", "int64")
    ]
    if not fields:
        return st.just(b"")
    chosen = st.lists(st.sampled_from(fields), max_size=4)
    return chosen.flatmap(lambda some: st.tuples(*(one(each, depth) for each in some))).map(
        b"".join
    )


def one(field: Field, depth: int) -> st.SearchStrategy[bytes]:
    if field.mapped:
        return st.just(lend(field.number, lend(1, "k")))
    value = scalar(field.number, field.type)
    if value is not None:
        return value
    return filled(field.type, depth - 1).map(partial(lend, field.number))


RAW = ("meta.v1.FieldsV1", "runtime.RawExtension", "apiextensions.v1.JSON")


def scalar(number: int, kind: str) -> st.SearchStrategy[bytes] | None:
    match kind:
        case "string" | "bytes":
            return st.text(max_size=5).map(lambda text: lend(number, text))
        case "bool" | "int32" | "int64":
            return st.integers(0, 3).map(lambda value: num(number, value))
        case "double":
            return st.just(double(number, 1.5))
        case _:
            return None

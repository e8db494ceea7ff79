from __future__ import annotations

from collections.abc import Iterator

import pytest

from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN
from isthmus.model.schema import Schema, Type
from isthmus.model.wire.messages import messages
from isthmus.model.wire.words import ANY, about_field, words

FIELDS = {(name, field.name) for name, message in messages().items() for field in message.fields}
LONGEST = 140


def test_words_are_of_what_there_is() -> None:
    for message, field in words():
        if message == ANY or not field:
            assert message == ANY or message in messages(), message
        else:
            assert (message, field) in inlined(), (message, field)


def inlined() -> set[tuple[str, str]]:
    """Also fields that stand in a message because it holds another inline."""
    found = set(FIELDS)
    for name, message in messages().items():
        for field in message.fields:
            if field.inline:
                found |= {(name, below.name) for below in messages()[field.type].fields}
    return found


def test_words_are_short_sentences() -> None:
    for where, said in words().items():
        if where != (ANY, ""):
            assert said.endswith("."), where
            assert 2 < len(said) <= LONGEST, where
            assert said.isascii(), where


def test_what_is_described_is_described_in_full() -> None:
    """A message whose fields have words has them for all, so that explain has no gaps."""
    begun = {message for message, field in words() if field and message != ANY}
    for message in begun:
        for field in messages()[message].fields:
            said = field.inline or about_field(message, field.name)
            assert said, (message, field.name)


def first(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The fields of a kind, and those of its spec."""
    for name, field in schema.fields.items():
        yield name, field
        if field.type is Type.OBJECT and name in ("spec", "status"):
            yield from ((f"{name}.{below}", each) for below, each in field.fields.items())


@pytest.mark.parametrize("kind", BUILT_IN.kinds, ids=lambda kind: kind.resource)
def test_every_kind_and_what_it_asks_for_is_described(kind: Kind) -> None:
    for version in kind.versions:
        assert version.schema.description, version.name
        for path, field in first(version.schema):
            assert field.description, path

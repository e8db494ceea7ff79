"""Label and field selectors of lists and watches: parsed once, then asked of many objects.

Grammar and meaning are those of the Kubernetes API: `a=b,c!=d,e in (x,y),f notin (z),g,!h,n>3` for
labels, `metadata.name=x,status.phase!=Running` for fields. An absent label satisfies `!=`, `notin`
and `!`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

import msgspec

from isthmus.errors import BadRequest
from isthmus.model.kind import Document, Kind
from isthmus.model.names import label_value_problems, qualified_problems

MAX_SELECTOR = 65536
"""Longest selector text in characters."""

MAX_REQUIREMENTS = 1024
"""Most requirements in one selector, and most values in one requirement."""


MAX_KEY = 317
"""Longest label key: a prefix of 253 characters, a slash, and 63."""


class Operator(StrEnum):
    """How a requirement compares."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "!"
    GREATER = ">"
    LESS = "<"


class Requirement(NamedTuple):
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy it."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)
            case _:
                assert_never(self.operator)

    def _compares(self, value: str | None) -> bool:
        if value is None or not _INTEGER.fullmatch(value):
            return False
        limit = int(next(iter(self.values)))
        return int(value) > limit if self.operator is Operator.GREATER else int(value) < limit


class Term(NamedTuple):
    """One condition on one field, found at a dotted path; `equal` is False for `!=`."""

    field: str
    path: tuple[str, ...]
    value: str
    equal: bool

    def holds(self, document: Document) -> bool:
        """Whether the document's field, as text, is (or is not) the value; an absent one is ""."""
        return (_text_at(document, self.path) == self.value) is self.equal


class _Metadata(msgspec.Struct, gc=False):
    """The part of the metadata that selectors look at."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata


_HEAD = msgspec.json.Decoder(_Head)
_ANY = msgspec.json.Decoder()


class Selector(msgspec.Struct, frozen=True):
    """Every requirement and every term must hold; the empty Selector selects everything."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Term, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether no object can be left out."""
        return not self.labels and not self.fields

    @property
    def name(self) -> str:
        """The one name that can match (`metadata.name=x`), or "": a list of it is a get."""
        return next((t.value for t in self.fields if t.field == "metadata.name" and t.equal), "")

    def matches(self, document: Document) -> bool:
        """Whether the object is selected."""
        metadata = document.get("metadata") or {}
        labels = metadata.get("labels") or {}
        return all(r.holds(labels) for r in self.labels) and all(
            t.holds(document) for t in self.fields
        )

    def matches_raw(self, raw: bytes) -> bool:
        """The same of stored bytes; decodes no more than it needs."""
        if self.everything:
            return True
        try:
            return self._matches_raw(raw)
        except msgspec.MsgspecError:  # bytes that are no object, or one without readable metadata
            return False

    def _matches_raw(self, raw: bytes) -> bool:
        if any(term.path[0] != "metadata" for term in self.fields):
            return self.matches(_ANY.decode(raw))
        head = _HEAD.decode(raw).metadata
        short = {"metadata": {"name": head.name, "namespace": head.namespace}}
        labels = head.labels or {}
        return all(r.holds(labels) for r in self.labels) and all(
            t.holds(short) for t in self.fields
        )


EVERYTHING = Selector()


def _text_at(document: Document, path: tuple[str, ...]) -> str:
    value: Any = document
    for name in path:
        if not isinstance(value, dict):
            return ""
        value = value.get(name)
    match value:
        case None | dict() | list():
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


# ------------------------------------------------------------------------------------------- labels

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_TOKEN = re.compile(r"\s*(?:(?P<op>==|!=|[=!<>(),])|(?P<word>[^\s=!<>(),]+))")
_SYMBOLS = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN,
            ">": Operator.GREATER, "<": Operator.LESS}  # fmt: skip
_WORDS = {"in": Operator.IN, "notin": Operator.NOT_IN}


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The requirements of a labelSelector, or BadRequest saying where it stops making sense."""
    if not text.strip():
        return ()
    return tuple(_Labels(_bounded(text, "labelSelector")).requirements())


def _bounded(text: str, what: str) -> str:
    if len(text) > MAX_SELECTOR:
        raise BadRequest(f"{what}: longer than {MAX_SELECTOR} characters")
    return text


class _Labels:
    """A reader of one label selector, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next = ""
        self._symbol = False
        self._advance()

    def requirements(self) -> Iterator[Requirement]:
        for count in range(MAX_REQUIREMENTS + 1):
            if count == MAX_REQUIREMENTS:
                raise self._fault(f"more than {MAX_REQUIREMENTS} requirements")
            yield self._requirement()
            if not self._next:
                return
            self._expect(",")

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:  # only blanks are left
            self._next, self._symbol, self._at = "", False, len(self._text)
            return
        self._symbol = found["op"] is not None
        self._next = found["op"] or found["word"]
        self._at = found.end()

    def _fault(self, what: str) -> BadRequest:
        shown = self._text if len(self._text) <= 120 else self._text[:120] + "..."
        return BadRequest(f"unable to parse requirement: {what} in labelSelector {shown!r}")

    def _sees(self, symbol: str) -> bool:
        return self._symbol and self._next == symbol

    def _found(self) -> str:
        return f"found '{self._next}'" if self._next else "found end of selector"

    def _expect(self, symbol: str) -> None:
        if not self._sees(symbol):
            raise self._fault(f"{self._found()}, expected: '{symbol}'")
        self._advance()

    def _word(self, what: str) -> str:
        if self._symbol or not self._next:
            raise self._fault(f"{self._found()}, expected: {what}")
        word = self._next
        self._advance()
        return word

    def _requirement(self) -> Requirement:
        if self._sees("!"):
            self._advance()
            return Requirement(self._key(), Operator.ABSENT)
        key = self._key()
        if not self._next or self._sees(","):
            return Requirement(key, Operator.EXISTS)
        return Requirement(key, *self._condition())

    def _key(self) -> str:
        key = self._word("a label key")
        problems = qualified_problems(key) if len(key) <= MAX_KEY else ["too long"]
        if problems:
            raise self._fault(f"'{key:.80}' is no label key: {problems[0]}")
        return key

    def _condition(self) -> tuple[Operator, frozenset[str]]:
        operator = (_SYMBOLS if self._symbol else _WORDS).get(self._next)
        if operator is None:
            expected = "in, notin, =, ==, !=, >, <"
            raise self._fault(f"{self._found()}, expected one of: {expected}")
        symbol = self._symbol
        self._advance()
        if not symbol:
            return operator, self._set()
        return operator, frozenset((self._single(operator),))

    def _single(self, operator: Operator) -> str:
        """The value after a symbol; `a=` asks for the empty value."""
        value = ""
        if self._next and not self._sees(","):
            value = self._word("a label value")
        if operator in (Operator.GREATER, Operator.LESS) and not _INTEGER.fullmatch(value):
            raise self._fault(f"'{value}' after '{operator}' is no integer")
        return self._checked(value)

    def _checked(self, value: str) -> str:
        problems = label_value_problems(value) if len(value) <= MAX_KEY else ["too long"]
        if problems:
            raise self._fault(f"'{value:.80}' is no label value: {problems[0]}")
        return value

    def _set(self) -> frozenset[str]:
        self._expect("(")
        if self._sees(")"):
            raise self._fault("an empty set of values")
        values: set[str] = set()
        while True:
            if self._sees(",") or self._sees(")"):
                values.add("")  # `in (a,)` holds the empty value, as Kubernetes has it
            else:
                values.add(self._checked(self._word("a label value")))
            if len(values) > MAX_REQUIREMENTS:
                raise self._fault(f"more than {MAX_REQUIREMENTS} values")
            if not self._sees(","):
                self._expect(")")
                return frozenset(values)
            self._advance()


# ------------------------------------------------------------------------------------------- fields

_METADATA_FIELDS = {"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace"}
_ESCAPED = re.compile(r"(?:[^\\]|\\[\\,=])*")
_TERM = re.compile(r"(?:[^,\\]|\\.)+")
_SPLIT = re.compile(r"(?P<field>[^=!\\]*)(?P<op>==|!=|=)(?P<value>(?:[^=\\]|\\.)*)")
_ESCAPE = re.compile(r"\\([\\,=])")


def parse_fields(text: str, kind: Kind) -> tuple[Term, ...]:
    """The terms of a fieldSelector over the fields that the kind knows, or BadRequest."""
    if not _ESCAPED.fullmatch(_bounded(text, "fieldSelector")):
        raise BadRequest(f"invalid field selector: invalid escape sequence in {text[:120]!r}")
    parts = _TERM.findall(text)
    if len(parts) > MAX_REQUIREMENTS:
        raise BadRequest(f"fieldSelector: more than {MAX_REQUIREMENTS} terms")
    return tuple(_term(part, kind) for part in parts)


def _term(text: str, kind: Kind) -> Term:
    found = _SPLIT.fullmatch(text)
    if found is None:
        raise BadRequest(f"invalid selector: {text[:120]!r}; can't understand {text[:120]!r}")
    field = found["field"].strip()
    path = _METADATA_FIELDS.get(field) or kind.field_selectors.get(field)
    if path is None:
        raise BadRequest(f"field label not supported: {field[:120]}")
    value = _ESCAPE.sub(r"\1", found["value"])
    return Term(field, tuple(path.split(".")), value, found["op"] != "!=")


def selected_name(text: str) -> str:
    """The one name that a fieldSelector leaves, or "": for who asks before the kind is known.

    Whatever else it says, nothing of another name is selected by it; and a text that nobody can
    read selects nothing.
    """
    for part in _TERM.findall(text[:MAX_SELECTOR]):
        found = _SPLIT.fullmatch(part)
        if found and found["field"].strip() == "metadata.name" and found["op"] != "!=":
            return _ESCAPE.sub(r"\1", found["value"])
    return ""

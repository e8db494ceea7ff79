"""YAML bodies: one document, read into what the same object would be as JSON.

Scalars are read as kubectl reads them (YAML 1.1 booleans, octal integers; times stay text). A field
said twice is noted, not lost. Anchors are refused: a few lines of them can stand for gigabytes.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from isthmus.errors import BadRequest, TooLarge
from isthmus.model.document import MAX_DEPTH, MAX_DUPLICATES, check_bounds
from isthmus.model.kind import Document

MAX_YAML = 512 * 1024
"""Bytes of a YAML body; reading it takes twenty times as long as reading JSON."""

_TAGS = "tag:yaml.org,2002:"


_BOOL = "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_INT = "[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)"
_FLOAT = "[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN)"

_SCALARS = (
    ("bool", _BOOL, [*"yYnNtTfFoO"]),
    ("int", _INT, [*"-+0123456789"]),
    ("float", _FLOAT, [*"-+.0123456789"]),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
)
"""Tags of plain scalars: their pattern, and what they begin with. The first that fits counts."""


class _Loader(yaml.CSafeLoader):
    """Resolves scalars by our own table: no dates, no numbers to the base 60, no merges."""


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"{_TAGS}{_name}", re.compile(f"(?:{_pattern})$"), _first)


def strict_yaml(body: bytes) -> tuple[Document, tuple[str, ...]]:
    """The one object in a YAML body, and the paths of fields that it says twice (the last counts).

    BadRequest for what is not one YAML mapping or holds what JSON cannot; TooLarge over MAX_YAML.
    """
    if len(body) > MAX_YAML:
        raise TooLarge(f"a YAML body may have {MAX_YAML} bytes, this one has {len(body)}")
    reader = _Reader()
    try:
        document = reader.read(body)
    except (yaml.YAMLError, ValueError, UnicodeError) as fault:
        problem = " ".join(str(fault).split())[:300]
        raise BadRequest(f"the body is not valid YAML: {problem}") from None
    except RecursionError:
        raise BadRequest(f"the body is nested more than {MAX_DEPTH} deep") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a YAML mapping")
    check_bounds(document)
    return document, tuple(reader.repeated[:MAX_DUPLICATES])


class _Reader:
    """Turns the node tree into values, noting where it is."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._loader: Any = None

    def read(self, body: bytes) -> Any:  # noqa: ANN401 - bytes become values
        self._loader = _Loader(body)
        try:
            for event in yaml.parse(body, Loader=yaml.CSafeLoader):
                if isinstance(event, yaml.AliasEvent):
                    raise BadRequest("YAML aliases are not taken; write the value out")
            node = self._loader.get_single_node()
            return None if node is None else self._value(node, "", 0)
        finally:
            self._loader.dispose()

    def _value(self, node: yaml.Node, path: str, depth: int) -> Any:  # noqa: ANN401 - bytes become values
        if depth > MAX_DEPTH:
            raise BadRequest(f"the body is nested more than {MAX_DEPTH} deep")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path, depth)
            case yaml.SequenceNode():
                items = enumerate(node.value)
                return [self._value(item, f"{path}[{n}]", depth + 1) for n, item in items]
            case _:
                return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> Document:
        found: Document = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise BadRequest(f"{path or 'the body'}: a key that is no plain text")
            name = str(key.value)
            where = f"{path}.{name}" if path else name
            if name in found:
                self.repeated.append(where)
            found[name] = self._value(value, where, depth + 1)
        return found

    def _scalar(self, node: yaml.Node, path: str) -> Any:  # noqa: ANN401 - bytes become values
        kind = node.tag.removeprefix(_TAGS)
        if kind not in {"str", "int", "float", "bool", "null"}:
            raise BadRequest(f"{path or 'the body'}: YAML type {node.tag[:64]!r} is not taken")
        value = self._loader.construct_object(node)
        if isinstance(value, float) and not math.isfinite(value):
            raise BadRequest(f"{path}: {value} is not a JSON number")
        return value

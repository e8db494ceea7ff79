"""A CustomResourceDefinition read: its versions with their schemas, and everything wrong with it.

What `apiextensions` says of names and groups is checked there; here is what needs the schemas.
Definitions change seldom and are read often, so the newest readings are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.errors import Cause
from isthmus.model.crd import jsonpath, printed
from isthmus.model.crd.nodes import NOTHING, Node
from isthmus.model.crd.rules import Ruled, compile_rules
from isthmus.model.crd.shape import shape
from isthmus.model.crd.structural import read
from isthmus.model.crd.values import faults as value_faults
from isthmus.model.document import get, items, mapping, strings, text, truth
from isthmus.model.faults import forbidden, invalid, not_supported, required, too_many
from isthmus.model.kind import Document
from isthmus.model.names import label_1035_problems
from isthmus.model.schema import Schema
from isthmus.model.walk import MAX_FAULTS, unknown_fields

MAX_SIZE: Final = 30_000
MAX_WORDS: Final = 200_000
"""Nodes, and characters of rules, of all schemas of one definition that differ."""

MAX_VERSIONS: Final = 32
MAX_SELECTABLE: Final = 8
MAX_NAMES: Final = 100
"""Short names, or categories, of one kind."""


class Surveyed(NamedTuple):
    """A version's schema, read. `faults` have paths that begin at the schema: `.properties[x]`.

    `size` counts nodes, `words` the characters of rules.
    """

    root: Node
    ruled: Ruled | None
    schema: Schema
    size: int
    words: int
    faults: tuple[Cause, ...]


def survey(said: object) -> Surveyed:
    """A version's openAPIV3Schema, read and compiled."""
    return _survey(msgspec.json.encode(said, order="deterministic"))


@lru_cache(maxsize=16)
def _survey(raw: bytes) -> Surveyed:
    found = read(msgspec.json.decode(raw), "")
    faults = list(found.faults)
    ruled, words = None, 0
    if not faults:
        compiled = compile_rules(found.root, "")
        ruled, words = compiled.root, compiled.size
        faults += compiled.faults
        faults += _default_faults(found.root, "")
    schema = shape(found.root)
    told = tuple(faults[:MAX_FAULTS])
    return Surveyed(found.root, ruled, schema, _size(found.root), words, told)


def _size(root: Node) -> int:
    size, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        size += 1
        waiting += node.properties.values()
        waiting += (each for each in (node.values, node.items, node.negated) if each is not None)
        waiting += (*node.all_of, *node.any_of, *node.one_of)
    return size


def _default_faults(node: Node, path: str) -> Iterator[Cause]:
    """Defaults must themselves fit their schema, and hold nothing that it does not know."""
    if node.default is not NOTHING and not (node.default is None and node.nullable):
        where = f"{path}.default"
        for cause in value_faults(node, node.default):
            yield cause._replace(path=f"{where}.{cause.path}" if cause.path else where)
        if isinstance(node.default, dict | list):
            for unknown in unknown_fields(shape(node), node.default):  # type: ignore[arg-type]
                yield invalid(where, node.default, f"must not have the unknown field {unknown}")
    for name, each in node.properties.items():
        yield from _default_faults(each, f"{path}.properties[{name}]")
    if node.values is not None:
        yield from _default_faults(node.values, f"{path}.additionalProperties")
    if node.items is not None:
        yield from _default_faults(node.items, f"{path}.items")


# ----------------------------------------------------------------------------------------- checks


def faults(document: Document, old: Document | None) -> Iterator[Cause]:
    """Every fault of a definition's versions; those of schemas only where the spec has changed."""
    spec = mapping(document, "spec")
    yield from _conversion_faults(spec)
    yield from _word_faults(spec)
    yield from _stored_faults(document)
    if old is not None and mapping(old, "spec") == spec:
        return
    versions, seen = items(spec, "versions"), dict[int, Surveyed]()
    if len(versions) > MAX_VERSIONS:
        yield too_many("spec.versions", len(versions), MAX_VERSIONS)
        return
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from _version_faults(version, path)
        said = get(version, "schema.openAPIV3Schema")
        if not isinstance(said, dict):
            continue
        found = survey(said)
        seen[id(found)] = found
        size, words = sum(s.size for s in seen.values()), sum(s.words for s in seen.values())
        if size > MAX_SIZE or words > MAX_WORDS:
            why = f"the schemas of a definition may have at most {MAX_SIZE} nodes, and rules of"
            why = f"{why} {MAX_WORDS} characters, together"
            yield forbidden(f"{path}.schema.openAPIV3Schema", why)
            return
        for cause in found.faults:
            yield cause._replace(path=f"{path}.schema.openAPIV3Schema{cause.path}")
        yield from _selectable_faults(version, found.root, path)


def _conversion_faults(spec: Document) -> Iterator[Cause]:
    strategy = text(spec, "conversion.strategy")
    if strategy == "Webhook":
        says = "conversion webhooks are not supported: objects are converted by apiVersion alone"
        yield forbidden("spec.conversion.strategy", f"{says} (strategy None)")
    elif strategy not in ("", "None"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif get(spec, "conversion.webhook") is not None:
        yield forbidden("spec.conversion.webhook", "should not be set when strategy is None")
    if truth(spec, "preserveUnknownFields"):
        says = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
        yield invalid("spec.preserveUnknownFields", True, f"{says} spec.versions[*].schema instead")


def _word_faults(spec: Document) -> Iterator[Cause]:
    for name in ("shortNames", "categories"):
        words = strings(spec, f"names.{name}")
        if len(words) > MAX_NAMES:
            yield too_many(f"spec.names.{name}", len(words), MAX_NAMES)
            continue
        for at, word in enumerate(words):
            for problem in label_1035_problems(word):
                yield invalid(f"spec.names.{name}[{at}]", word, problem)


def _stored_faults(document: Document) -> Iterator[Cause]:
    """A version that objects may be stored in cannot be taken away."""
    names = {text(each, "name") for each in items(document, "spec.versions")}
    stored = strings(document, "status.storedVersions")
    for at, name in enumerate(stored):
        if name not in names:
            yield invalid(f"status.storedVersions[{at}]", name, "must appear in spec.versions")


def _version_faults(version: Document, path: str) -> Iterator[Cause]:
    yield from printed.faults(version, path)
    warning = text(version, "deprecationWarning")
    where = f"{path}.deprecationWarning"
    if warning and not truth(version, "deprecated"):
        yield invalid(where, warning, "can only be set for deprecated versions")
    if len(warning) > 256 or not warning.isprintable():
        yield invalid(where, warning, "must be at most 256 printable characters")
    yield from _scale_faults(version, path)


def _scale_faults(version: Document, path: str) -> Iterator[Cause]:
    if not isinstance(get(version, "subresources.scale"), dict):
        return
    scale, where = mapping(version, "subresources.scale"), f"{path}.subresources.scale"
    wanted = (("specReplicasPath", "spec", True), ("statusReplicasPath", "status", True),
              ("labelSelectorPath", "", False))  # fmt: skip
    for name, below, must in wanted:
        said = text(scale, name)
        if not said:
            if must:
                yield required(f"{where}.{name}")
            continue
        steps = jsonpath.simple(said)
        if steps is None:
            yield invalid(
                f"{where}.{name}", said, "must be a simple json path such as .spec.replicas"
            )
        elif steps[0] != below and (below or steps[0] not in ("spec", "status")):
            start = f".{below}" if below else ".spec or .status"
            yield invalid(f"{where}.{name}", said, f"should be a json path under {start}")


def _selectable_faults(version: Document, root: Node, path: str) -> Iterator[Cause]:
    fields = items(version, "selectableFields")
    if len(fields) > MAX_SELECTABLE:
        yield too_many(f"{path}.selectableFields", len(fields), MAX_SELECTABLE)
        return
    seen = set[str]()
    for at, each in enumerate(fields):
        where, said = f"{path}.selectableFields[{at}].jsonPath", text(each, "jsonPath")
        steps = jsonpath.simple(said)
        if steps is None:
            yield invalid(where, said, "must be a simple json path such as .spec.color")
            continue
        if said in seen:
            yield Cause(where, f'Duplicate value: "{said}"', "FieldValueDuplicate")
        seen.add(said)
        if steps[0] in ("metadata", "apiVersion", "kind"):
            yield invalid(where, said, "must not point to fields in metadata")
            continue
        node: Any = root
        for name in steps:
            node = node.properties.get(name) if node is not None else None
        if node is None or node.type not in ("string", "boolean", "integer"):
            yield invalid(where, said, "must point to a field of type string, boolean or integer")

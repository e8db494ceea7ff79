"""A Kind from a CustomResourceDefinition: everything that serves built-in kinds then serves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from isthmus.errors import Cause, TooLarge
from isthmus.model.crd import jsonpath, printed, rules
from isthmus.model.crd.definition import Surveyed, survey
from isthmus.model.crd.values import ABSENT
from isthmus.model.crd.values import faults as value_faults
from isthmus.model.document import get, items, mapping, strings, text, truth
from isthmus.model.kind import Check, Convert, Document, Kind, Own, Scale, Version
from isthmus.model.meta import Object
from isthmus.model.schema import Schema
from isthmus.model.walk import defaults, drop_nulls, prune

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Unusable(ValueError):
    """The definition cannot be served; the message says why."""


def kind_of(spec: Document, uid: str, *, ending: bool = False) -> Kind:
    """The kind that a definition's spec describes; Unusable.

    `uid` is the definition's. While it is `ending`, objects go and none are created.
    """
    versions = items(spec, "versions")
    surveyed = {
        text(each, "name"): survey(get(each, "schema.openAPIV3Schema")) for each in versions
    }
    for name, found in surveyed.items():
        if found.faults:
            first = found.faults[0]
            raise Unusable(f"version {name}: schema{first.path}: {first.message}")
    stored = next((each for each in versions if truth(each, "storage")), None)
    if stored is None:
        raise Unusable("no version is the storage version")
    storage = text(stored, "name")
    names = mapping(spec, "names")
    convert = _convert({name: each.schema for name, each in surveyed.items()}, storage)
    return Kind(
        group=text(spec, "group"),
        name=text(names, "kind"),
        plural=text(names, "plural"),
        singular=text(names, "singular"),
        versions=tuple(
            _version(each, surveyed[text(each, "name")], spec, convert) for each in versions
        ),
        stored=storage,
        view=Object,
        namespaced=text(spec, "scope") == "Namespaced",
        short_names=tuple(strings(names, "shortNames")),
        categories=tuple(strings(names, "categories")),
        status=_own(stored).status,
        scale=_own(stored).scale,
        check=(check(surveyed[storage]),),
        convert=convert,
        field_selectors=_own(stored).field_selectors,
        verbs=tuple(verb for verb in VERBS if not ending or verb != "create"),
        definition=uid,
        edition=sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest(),
    )


def _version(said: Document, surveyed: Surveyed, spec: Document, convert: Convert) -> Version:
    name = text(said, "name")
    stored = next(text(each, "name") for each in items(spec, "versions") if truth(each, "storage"))
    view = _View(convert, stored, name, f"{text(spec, 'group')}/{name}")
    deprecated = ""
    if truth(said, "deprecated"):
        called = f"{text(spec, 'group')}/{name} {text(spec, 'names.kind')}"
        deprecated = text(said, "deprecationWarning") or f"{called} is deprecated"
    return Version(
        name,
        surveyed.schema,
        columns=printed.columns(said),
        served=truth(said, "served"),
        deprecated=deprecated,
        check=() if name == stored else (_seen(view, check(surveyed)),),
        own=_own(said),
    )


def _own(version: Document) -> Own:
    status = isinstance(get(version, "subresources.status"), dict)
    return Own(status, _scale(version), dict(_selectable(version)))


def _scale(version: Document) -> Scale | None:
    said = mapping(version, "subresources.scale")
    if not said:
        return None
    return Scale(
        text(said, "specReplicasPath").removeprefix("."),
        text(said, "statusReplicasPath").removeprefix("."),
        text(said, "labelSelectorPath").removeprefix("."),
    )


def _selectable(version: Document) -> Iterator[tuple[str, str]]:
    for each in items(version, "selectableFields"):
        steps = jsonpath.simple(text(each, "jsonPath"))
        if steps is not None:
            yield ".".join(steps), ".".join(steps)


def check(surveyed: Surveyed) -> Check:
    """The check of a kind: types, values and rules of its schema, all faults at once."""

    def faults(document: Document, old: Document | None) -> Iterator[Cause]:
        before: Any = ABSENT if old is None else old
        found = value_faults(surveyed.root, document, before)
        yield from found
        if surveyed.ruled is None:
            return
        if rules.blocked(found):
            yield Cause("<nil>", f"Invalid value: null: {rules.UNCHECKED}")
            return
        yield from rules.broken(surveyed.ruled, document, before)

    return faults


class _View(NamedTuple):
    """A version that objects are not stored in."""

    convert: Convert
    stored: str
    name: str
    api_version: str

    def of(self, document: Document) -> Document:
        """A stored document as this version shows it."""
        shown = self.convert(document, self.stored, self.name)
        return {**shown, "apiVersion": self.api_version}


def _seen(view: _View, check: Check) -> Check:
    """The check of stored documents by the rules of another version."""

    def faults(document: Document, old: Document | None) -> Iterable[Cause]:
        return check(view.of(document), None if old is None else view.of(old))

    return faults


def _convert(schemas: Mapping[str, Schema], stored: str) -> Convert:
    """Strategy None: another apiVersion on the same fields.

    On its way to the store an object keeps the fields that only the writer's version knows. Read in
    any version, the stored one too, it is fitted to that version's schema: the definition may have
    changed since.
    """

    def convert(document: Document, present: str, wanted: str) -> Document:
        if wanted == stored and present != stored:
            return dict(document)
        copy = deepcopy(document)
        schema = schemas[wanted]
        prune(schema, copy)
        drop_nulls(schema, copy)
        # Where the definition now asks for too many defaults, what is there is shown without.
        with suppress(TooLarge):
            defaults(schema, copy)
        return copy

    return convert

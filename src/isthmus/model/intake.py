"""What a document goes through before it is stored, and how stored bytes become a view.

    prepare    a stranger's document: types, unknown fields, nulls, defaults
    faults     every broken rule of a whole object, metadata and kind together
    view       stored bytes as the frozen facts that the mesh reads, or Unreadable

A built-in Kubernetes kind refuses a wrong type as a body that cannot be read (400), a custom kind
as an object that breaks its rules (422); so does Kubernetes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from isthmus.errors import BadRequest, Cause, Invalid, Subject
from isthmus.model.crd import declared
from isthmus.model.document import text
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.metacheck import metadata_faults
from isthmus.model.walk import (
    MAX_FAULTS,
    defaults,
    drop_nulls,
    normalise,
    prune,
    rule_faults,
    type_faults,
    unknown_fields,
)

MAX_WARNINGS = 32
"""Warning headers of one answer."""

_HEAD = ("metadata", "apiVersion", "kind")
"""Where types must be right before anybody else looks."""


class Prepared(NamedTuple):
    """A document that fits its schema, and the paths that were not in it.

    They are dropped by now, unless the kind keeps them.
    """

    document: Document
    unknown: tuple[str, ...]


def prepare(kind: Kind, version: Version, document: Document, *, fill: bool = True) -> Prepared:
    """Make a document fit its schema, in place: unknown fields and nulls out, defaults in.

    Without `fill` no defaults, and nothing unknown is kept: a configuration that somebody applies
    says only what it says.
    BadRequest (built-in kinds) or Invalid (custom kinds) naming every value of a wrong type.
    Whether unknown fields are an error is the caller's business (fieldValidation).
    """
    wrong = type_faults(version.schema, document)
    if kind.definition and version.name == kind.stored:
        # The kind's check tells those of the rest, together with every other fault.
        wrong = [cause for cause in wrong if cause.path.startswith(_HEAD)]
    if wrong:
        raise _wrong_types(kind, document, wrong)
    unknown = tuple(unknown_fields(version.schema, document))
    if unknown and not (kind.keeps_unknown and fill):
        prune(version.schema, document)
    if kind.definition:
        drop_nulls(version.schema, document)
    else:
        normalise(version.schema, document)
    if kind.custom and fill:
        defaults(version.schema, document)
    for default in kind.default if fill else ():
        default(document)
    return Prepared(document, unknown)


def _wrong_types(kind: Kind, document: Document, wrong: Sequence[Cause]) -> BadRequest | Invalid:
    if kind.custom:
        return invalid_object(kind, text(document, "metadata.name"), wrong)
    said = "; ".join(f"{cause.path}: {cause.message}" for cause in wrong[:8])
    problem = f"{kind.name} in version {document.get('apiVersion')!r} cannot be handled"
    return BadRequest(f"{problem} as a {kind.name}: {said}", causes=wrong)


def strict_fault(unknown: Sequence[str], duplicates: Sequence[str] = ()) -> BadRequest:
    """What fieldValidation=Strict answers."""
    return BadRequest(f"strict decoding error: {', '.join(strict_warnings(unknown, duplicates))}")


def strict_warnings(unknown: Sequence[str], duplicates: Sequence[str] = ()) -> tuple[str, ...]:
    """What fieldValidation=Warn warns of, one text for each field."""
    return (
        *(f'unknown field "{path}"' for path in unknown),
        *(f'duplicate field "{path}"' for path in duplicates),
    )


def faults(kind: Kind, document: Document, old: Document | None = None) -> list[Cause]:
    """Every fault of a document in the stored version, at most MAX_FAULTS.

    With `old`, also the faults of the change. The rules of the schema count for custom kinds only:
    built-in kinds have theirs in checks, with Kubernetes' own words.
    """
    found = metadata_faults(document, kind, old)
    schemas = [version.schema for version in kind.versions if version.name == kind.stored]
    for schema in schemas if kind.custom and not kind.definition else ():
        found += rule_faults(schema, document)
    blocked = declared.blocked(found)
    for check in kind.check:
        found += islice(check(document, old), MAX_FAULTS)
    for schema in schemas if kind.ruled else ():
        found += declared.rule_faults(schema, document, old, blocked=blocked)
    return list(dict.fromkeys(found))[:MAX_FAULTS]


def warnings(kind: Kind, document: Document, old: Document | None = None) -> tuple[str, ...]:
    """What looks like a mistake in a document in the stored version and is allowed, bounded."""
    found = (said for warn in kind.warn for said in warn(document, old))
    return tuple(dict.fromkeys(islice(found, MAX_WARNINGS)))


def invalid_object(kind: Kind, name: str, causes: Sequence[Cause]) -> Invalid:
    """The error of an object with these faults: `Service "x" is invalid: spec.ports: ...`."""
    said = [f"{cause.path}: {cause.message}" if cause.path else cause.message for cause in causes]
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    qualified = f"{kind.name}.{kind.group}" if kind.group else kind.name
    about = Subject(kind.group, kind.plural, kind.name, name)
    return Invalid(f'{qualified} "{name}" is invalid: {listed}', about=about, causes=causes)


class Unreadable(NamedTuple):
    """Stored bytes that do not make a view: the object is left out alone, and `reason` says why."""

    reason: str


def view(kind: Kind, raw: bytes) -> msgspec.Struct | Unreadable:
    """The typed view of stored bytes (in the stored version).

    Views take what checks would refuse (an unknown word, a port of 0) as long as the JSON types
    fit, so that one bad object, stored by an older or newer version, is skipped alone.
    """
    try:
        found: msgspec.Struct = _decoder(kind.view).decode(raw)
    except msgspec.MsgspecError as fault:
        return Unreadable(f"{kind.name}: {fault}")
    except RecursionError:
        return Unreadable(f"{kind.name}: nested too deep")
    return found


_DECODERS: dict[type[msgspec.Struct], msgspec.json.Decoder[Any]] = {}


def _decoder(view_type: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    found = _DECODERS.get(view_type)
    if found is None:
        found = _DECODERS[view_type] = msgspec.json.Decoder(view_type)
    return found

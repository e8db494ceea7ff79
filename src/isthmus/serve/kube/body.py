"""Bodies of creates and updates: bytes of a known media type become a document of a known kind.

What comes is hostile: too large, too deep, cut off, a field said twice, fields nobody knows,
numbers where text belongs. fieldValidation says what unknown and repeated fields are worth
(Strict: an error that names them all; Warn: warnings; Ignore: nothing); they never get into the
store. Wrong types are always an error, all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from isthmus.errors import BadRequest
from isthmus.model import intake, wire
from isthmus.model.document import read_json, strict_json
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.registry import split_api_version
from isthmus.serve.kube.negotiate import MediaType
from isthmus.serve.kube.options import Validation
from isthmus.serve.kube.yaml_body import strict_yaml


class Parsed(NamedTuple):
    """A body as a document, and the paths of fields that it says twice."""

    document: Document
    repeated: tuple[str, ...] = ()


def parse(raw: bytes, media: MediaType, *, strict: bool = True) -> Parsed:
    """The JSON object, YAML document or protobuf message in a body; BadRequest or TooLarge."""
    match media:
        case MediaType.PROTOBUF:
            return Parsed(wire.decode(raw))
        case MediaType.YAML:
            return Parsed(*strict_yaml(raw))
        case MediaType.APPLY_PATCH:
            return _json_or_yaml(raw)
        case _ if strict:
            return Parsed(*strict_json(raw))
        case _:
            return Parsed(read_json(raw))


def _json_or_yaml(raw: bytes) -> Parsed:
    """What clients call YAML is mostly JSON, which is read faster, and whole."""
    if raw.lstrip().startswith(b"{"):
        with suppress(BadRequest):
            return Parsed(*strict_json(raw))
    return Parsed(*strict_yaml(raw))


def of_kind(document: Document, kind: Kind, version: Version) -> None:
    """Make sure that the document is of the kind and version of the URL, or BadRequest.

    A body may leave both out: the URL says it.
    """
    api_version = document.setdefault("apiVersion", kind.api_version(version.name))
    name = document.setdefault("kind", kind.name)
    wanted = kind.api_version(version.name)
    if not isinstance(api_version, str) or api_version != wanted:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match "
            f"the expected API version ({wanted})"
        )
    if name != kind.name:
        shown = split_api_version(wanted)[1]
        raise BadRequest(f'{name} in version "{shown}" cannot be handled as a {kind.name}')


def checked(
    document: Document,
    repeated: Sequence[str],
    kind: Kind,
    version: Version,
    validation: Validation,
    *,
    fill: bool = True,
) -> tuple[Document, tuple[str, ...]]:
    """The document with nothing in it that the kind does not know, and the warnings for its writer.

    BadRequest under Strict, naming every unknown and repeated field; BadRequest or Invalid with
    every value of a wrong type. The document is changed in place; `fill` puts defaults in.
    """
    prepared = intake.prepare(kind, version, document, fill=fill)
    if not prepared.unknown and not repeated:
        return prepared.document, ()
    if validation is Validation.STRICT:
        raise intake.strict_fault(prepared.unknown, repeated)
    warned = validation is Validation.WARN
    warnings = intake.strict_warnings(prepared.unknown, repeated) if warned else ()
    return prepared.document, warnings


def place(document: Document, kind: Kind, namespace: str, name: str) -> None:
    """Let the document say the namespace and name of its URL, or BadRequest if it says others.

    `name` "" leaves the name to the document (create).
    """
    metadata = document.setdefault("metadata", {})
    if kind.namespaced:
        if not namespace:
            raise BadRequest("an empty namespace may not be set during creation")
        if metadata.setdefault("namespace", namespace) != namespace:
            raise BadRequest(
                "the namespace of the provided object does not match "
                "the namespace sent on the request"
            )
    if name and metadata.setdefault("name", name) != name:
        raise BadRequest(
            f"the name of the object ({metadata['name'] or ''}) does not match "
            f"the name on the URL ({name})"
        )

"""What form an answer takes and what form a body has: media types, without I/O.

Reads never fail on an Accept header: what cannot be made is passed over, and JSON is what is left
(kubectl asks for protobuf first and takes JSON). Bodies are strict: a type that the resource does
not take is UnsupportedMediaType with the list of those it does (Kubernetes API conventions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from isthmus.errors import UnsupportedMediaType

MAX_HEADER = 4096
"""Longer headers are read as far as this; the rest is passed over."""

MAX_CLAUSES = 64
"""At most so many media ranges of one Accept header are looked at."""


class Form(StrEnum):
    """How an object, a list or a discovery document is shown."""

    JSON = "application/json"
    TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
    METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    @property
    def content_type(self) -> str:
        """The answer's Content-Type. Discovery must name itself, or kubectl reads it as legacy."""
        return self.value if self is Form.DISCOVERY else "application/json"


_FORMS: Mapping[tuple[str, str, str], Form] = {
    ("Table", "v1", "meta.k8s.io"): Form.TABLE,
    ("PartialObjectMetadata", "v1", "meta.k8s.io"): Form.METADATA,
    ("PartialObjectMetadataList", "v1", "meta.k8s.io"): Form.METADATA_LIST,
    ("APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io"): Form.DISCOVERY,
}

OBJECTS: frozenset[Form] = frozenset({Form.JSON, Form.TABLE, Form.METADATA, Form.METADATA_LIST})
"""What a resource (an object, a list, a watch) can be shown as."""

DISCOVERIES: frozenset[Form] = frozenset({Form.JSON, Form.DISCOVERY})
"""What `/api` and `/apis` can be shown as."""

_JSON_RANGES = frozenset({"application/json", "application/*", "*/*"})


class MediaType(StrEnum):
    """The content types of bodies."""

    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"
    JSON_PATCH = "application/json-patch+json"
    MERGE_PATCH = "application/merge-patch+json"
    STRATEGIC_PATCH = "application/strategic-merge-patch+json"
    APPLY_PATCH = "application/apply-patch+yaml"


OBJECT_BODIES: tuple[MediaType, ...] = (MediaType.JSON, MediaType.YAML, MediaType.PROTOBUF)
"""What create and update take of built-in kinds."""

CUSTOM_BODIES: tuple[MediaType, ...] = (MediaType.JSON, MediaType.YAML)
"""What create and update take of custom resources: there is no protobuf of them."""

PATCH_BODIES: tuple[MediaType, ...] = (
    MediaType.JSON_PATCH,
    MediaType.MERGE_PATCH,
    MediaType.STRATEGIC_PATCH,
    MediaType.APPLY_PATCH,
)
"""What PATCH takes of built-in kinds."""

CUSTOM_PATCH_BODIES: tuple[MediaType, ...] = (
    MediaType.JSON_PATCH,
    MediaType.MERGE_PATCH,
    MediaType.APPLY_PATCH,
)
"""What PATCH takes of custom resources: strategic merge needs compiled-in types."""


class Clause(NamedTuple):
    """One media range with its parameters (names in lower case) and its weight."""

    media: str
    parameters: Mapping[str, str]
    quality: float


def clauses(header: str) -> list[Clause]:
    """The media ranges of an Accept header, the most wanted first, equals in written order.

    Never fails: a clause that cannot be read is left out, weight 0 means "not this".
    """
    # A limit on splits, so that the unread rest costs nothing.
    parts = header[:MAX_HEADER].split(",", MAX_CLAUSES)[:MAX_CLAUSES]
    read = [clause for part in parts if (clause := _clause(part)) and clause.quality > 0]
    return sorted(read, key=lambda clause: -clause.quality)


def _clause(text: str) -> Clause | None:
    media, *pairs = (part.strip() for part in text.split(";"))
    if "/" not in media:
        return None
    parameters = dict(_parameters(pairs))
    return Clause(media.lower(), parameters, _quality(parameters.pop("q", "1")))


def _parameters(pairs: Sequence[str]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, _, value = pair.partition("=")
        yield name.strip().lower(), value.strip().strip('"')


def _quality(text: str) -> float:
    """RFC 9110 section 12.4.2; what is no number between 0 and 1 counts as 1."""
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return value if 0.0 <= value <= 1.0 else 1.0


def accept(header: str | None, made: frozenset[Form] = OBJECTS) -> Form:
    """The form to answer in: the first that is asked for and can be made, else JSON."""
    for clause in clauses(header or ""):
        form = _form(clause)
        if form in made:
            return form
    return Form.JSON


def _form(clause: Clause) -> Form | None:
    if clause.media not in _JSON_RANGES:
        return None
    if "as" not in clause.parameters:
        return Form.JSON
    asked = tuple(clause.parameters.get(name, "") for name in ("as", "v", "g"))
    return _FORMS.get(asked) if len(asked) == 3 else None


def wants_protobuf(header: str | None, media: str) -> bool:
    """Whether an Accept header names this very media type (OpenAPI v2 is served as protobuf)."""
    return any(clause.media == media.lower() for clause in clauses(header or ""))


def body(header: str | None, taken: Sequence[MediaType]) -> MediaType:
    """The type of a body, of those that the resource takes, or UnsupportedMediaType naming them.

    Without a Content-Type a body is JSON where JSON is taken (Kubernetes does so). Parameters such
    as charset are passed over: JSON and YAML are UTF-8.
    """
    media = (header or "")[:MAX_HEADER].partition(";")[0].strip().lower()
    if not media and MediaType.JSON in taken:
        return MediaType.JSON
    if media in taken:
        return MediaType(media)
    accepted = ", ".join(taken)
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - "
        f"accepted media types include: {accepted}"
    )

"""One door for all patch types, by the Content-Type of the request."""

from __future__ import annotations

from typing import assert_never

from isthmus.errors import TooLarge, UnsupportedMediaType
from isthmus.model.kind import Document
from isthmus.model.schema import Schema
from isthmus.serve.kube import negotiate
from isthmus.serve.kube.negotiate import MediaType
from isthmus.serve.kube.patch.json_patch import json_patch
from isthmus.serve.kube.patch.merge import merge_patch
from isthmus.serve.kube.patch.strategic import strategic_merge_patch
from isthmus.serve.kube.patch.values import decode

MAX_BODY = 3 * 1024 * 1024
"""Largest patch body in bytes (as in Kubernetes)."""


def apply(
    content_type: str | None, schema: Schema, document: Document, body: bytes, *, custom: bool
) -> Document:
    """The document as the patch wants it; `document` stays as it is, in the version of `schema`.

    `custom` kinds take no strategic merge patch. UnsupportedMediaType names the accepted types;
    server-side apply is not a patch of a document and is refused here.
    """
    taken = negotiate.CUSTOM_PATCH_BODIES if custom else negotiate.PATCH_BODIES
    media = negotiate.body(content_type, taken)
    if len(body) > MAX_BODY:
        raise TooLarge(f"the patch is larger than {MAX_BODY} bytes")
    match media:
        case MediaType.JSON_PATCH:
            return json_patch(document, decode(body))
        case MediaType.MERGE_PATCH:
            return merge_patch(document, decode(body))
        case MediaType.STRATEGIC_PATCH:
            return strategic_merge_patch(schema, document, decode(body))
        case MediaType.APPLY_PATCH | MediaType.JSON | MediaType.YAML | MediaType.PROTOBUF:
            raise UnsupportedMediaType(f"{media} is not a patch of a document")
        case _:
            assert_never(media)

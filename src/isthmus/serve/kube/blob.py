"""Answers made once and given to many: discovery and OpenAPI documents."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgspec


class Blob(NamedTuple):
    """Bytes to answer with. `etag` is quoted, as the header wants it."""

    body: bytes
    content_type: str
    etag: str

    @property
    def digest(self) -> str:
        """The etag without its quotes."""
        return self.etag.strip('"')

    def unchanged(self, if_none_match: str | None) -> bool:
        """Whether the asker holds these very bytes (RFC 9110 section 13.1.2): answer 304."""
        held = (if_none_match or "")[:4096].split(",")
        return any(tag.strip().removeprefix("W/") in (self.etag, "*") for tag in held)


def blob(body: bytes, content_type: str = "application/json") -> Blob:
    """A Blob of these bytes, named by their SHA-256."""
    return Blob(body, content_type, f'"{sha256(body).hexdigest().upper()}"')


def json_blob(value: object, content_type: str = "application/json") -> Blob:
    """A Blob of a value as JSON."""
    return blob(msgspec.json.encode(value), content_type)

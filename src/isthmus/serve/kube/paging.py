"""Continue tokens: where a list that was cut by `limit` goes on, and at which revision.

A token is opaque to its holder: base64 of a checksum and a small JSON value. The checksum is keyed
with the server's secret when it has one; replicas that share a store must share the secret too.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

import msgspec

from isthmus.errors import BadRequest, Compacted
from isthmus.model.key import Key
from isthmus.model.kind import Kind

MAX_TOKEN = 4096
_DIGEST = 12


class _Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    revision: int
    scope: str
    resource: str
    namespace: str
    name: str


_VERSION = 1
_DECODER = msgspec.json.Decoder(_Token)


def write_continue(revision: int, last: Key, scope: str = "", secret: bytes = b"") -> str:
    """The token for what follows `last` at `revision`; `scope` is the listed namespace or ""."""
    raw = msgspec.json.encode(_Token(_VERSION, revision, scope, *last))
    return urlsafe_b64encode(_digest(raw, secret) + raw).rstrip(b"=").decode()


def read_continue(token: str, kind: Kind, scope: str, secret: bytes = b"") -> tuple[int, Key]:
    """The revision and the last key of a token made for this very list; else BadRequest."""
    if len(token) > MAX_TOKEN:
        raise _bad("too long")
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise _bad("not base64") from None
    raw = data[_DIGEST:]
    if not hmac.compare_digest(data[:_DIGEST], _digest(raw, secret)):
        raise _bad("not one of this server's")
    try:
        found = _DECODER.decode(raw)
    except msgspec.MsgspecError:
        raise _bad("cannot be read") from None
    if (found.version, found.scope, found.resource) != (_VERSION, scope, kind.resource):
        raise _bad("of another list")
    return found.revision, Key(found.resource, found.namespace, found.name)


def _digest(raw: bytes, secret: bytes) -> bytes:
    return blake2b(
        raw, key=secret[:64], digest_size=_DIGEST, person=b"isthmus-continue"[:16]
    ).digest()


def _bad(why: str) -> BadRequest:
    return BadRequest(f"continue key is not valid: {why}")


def list_expired(*, continued: bool) -> Compacted:
    """What a list at a forgotten revision gets, in Kubernetes' words: 410, reason Expired."""
    if continued:
        return Compacted(
            "The provided continue parameter is too old to display a consistent list result. "
            "You must start a new list without the continue parameter."
        )
    return Compacted("The resourceVersion for the provided list is too old.")

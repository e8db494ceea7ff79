"""Join tokens: how the agent of a new host proves that it was invited, once.

A token carries where to go, what to trust there, and a secret. The control plane keeps only the
secret's hash, so that whoever reads its objects cannot join. `isthmus-join.` and base64url of JSON,
so that it survives terminals and files.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Self

import msgspec
from cryptography import x509

from isthmus.ca.chains import fingerprint
from isthmus.errors import BadRequest
from isthmus.model.kind import Document

PREFIX: Final = "isthmus-join."
LIFETIME: Final = timedelta(hours=1)
LONGEST: Final = 4096
MOST_ANCHORS: Final = 16

SECRET_TYPE: Final = "isthmus.dev/join-token"  # noqa: S105  # a type of Secrets


class Invitation(msgspec.Struct, frozen=True):
    """What a token carries.

    `at` is host:port of the identity listener; `anchors` are the SHA-256 of the trust anchors, one
    of which the server's certificate must end in; `name` is expected in that certificate.
    """

    id: str
    secret: str
    uri: str
    """The identity that the host will have."""
    at: str
    name: str
    anchors: tuple[str, ...]

    @classmethod
    def make(cls, uri: str, at: str, name: str, anchors: tuple[str, ...]) -> Self:
        """A new one, with fresh secrets."""
        return cls(
            secrets.token_hex(8), secrets.token_urlsafe(32), uri, at, name, anchors[:MOST_ANCHORS]
        )

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Invitation({self.id})"

    @property
    def token(self) -> str:
        """As it is handed over."""
        raw = base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=")
        return PREFIX + raw.decode()

    @property
    def hash(self) -> str:
        """What the control plane keeps of the secret."""
        return hash_of(self.secret)

    @property
    def object_name(self) -> str:
        """The name of the Secret it is kept in."""
        return object_name(self.id)


def object_name(token_id: str) -> str:
    """The Secret of a token."""
    return f"isthmus-join-{token_id}"


def hash_of(secret: str) -> str:
    """SHA-256 of a token's secret, hexadecimal. The secret has 256 bits: no salt is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def fits(secret: str, kept: str) -> bool:
    """Whether a secret is the one whose hash is kept; takes the same time either way."""
    return hmac.compare_digest(hash_of(secret).encode(), kept.encode())


def read(text: str) -> Invitation:
    """The invitation in a token.

    Raises:
        BadRequest: this is no join token.
    """
    if len(text) > LONGEST or not text.startswith(PREFIX) or not text.isascii():
        raise BadRequest("this is no join token")
    raw = text.removeprefix(PREFIX)
    try:
        data = base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(data, type=Invitation)
    except (ValueError, RecursionError) as fault:  # msgspec's errors are ValueErrors
        raise BadRequest("this is no join token") from fault
    if not (found.id.isascii() and found.id.isalnum() and len(found.id) <= 64):
        raise BadRequest("this is no join token")
    return found


def hashes(anchors: Sequence[x509.Certificate]) -> tuple[str, ...]:
    """What a token says of the anchors."""
    return tuple(fingerprint(each) for each in anchors[:MOST_ANCHORS])


def document(invitation: Invitation, host: str, namespace: str, expires: float) -> Document:
    """The Secret that the control plane keeps of an invitation; `expires`: seconds since 1970."""
    data = {"hash": invitation.hash, "host": host, "expires": str(int(expires))}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": invitation.object_name, "namespace": namespace},
        "type": SECRET_TYPE,
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
    }

"""ServiceAccount tokens: JSON Web Tokens signed with ES256, with the claims Kubernetes gives them.

Rules: RFC 7515 (JWS), RFC 7518 §3.4 (ES256: r and s, 32 bytes each), RFC 7519 (claims), RFC 7638
(the key id is the key's thumbprint), "Kubernetes: service account token claims".

A token comes from outside. It is bounded before it is decoded, its algorithm is never taken from
itself (`none`, or an HMAC with our public key as secret, is how such verifiers are broken), and
whatever its header or claims hold, the answer is Claims or Unauthenticated.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from isthmus.ca.authority import load_key
from isthmus.ca.files import private_directory, write_atomic
from isthmus.errors import Unauthenticated

LONGEST = 8192
"""Bytes of a token; ours are under 1,000. Headers hold no more anyway."""
SKEW = 60
"""Seconds by which another control plane's clock may run ahead (`nbf` only)."""
SIGNING_KEY = "service-account.key"

_ES256 = ec.ECDSA(hashes.SHA256())
T = TypeVar("T")


class Bound(NamedTuple):
    """An object that must still exist, with this uid, for the token to hold."""

    resource: str
    namespace: str
    name: str
    uid: str


class Claims(NamedTuple):
    """What a verified token says. `expires` and `issued` are seconds since the epoch."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    expires: int
    issued: int
    id: str
    bound: tuple[Bound, ...]

    @property
    def user(self) -> str:
        """The user name Kubernetes derives: system:serviceaccount:NAMESPACE:NAME."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups Kubernetes derives."""
        everyone = "system:serviceaccounts"
        return (everyone, f"{everyone}:{self.namespace}", "system:authenticated")


class _Ref(msgspec.Struct):
    name: str
    uid: str = ""


class _Kubernetes(msgspec.Struct):
    namespace: str
    serviceaccount: _Ref
    pod: _Ref | None = None
    secret: _Ref | None = None
    node: _Ref | None = None


class _Header(msgspec.Struct):
    alg: str
    kid: str
    crit: list[object] | None = None


_Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Payload(msgspec.Struct):
    iss: str
    sub: str
    aud: str | list[str]
    exp: _Seconds
    iat: _Seconds
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")
    nbf: _Seconds = 0
    jti: str = ""


class Keyring:
    """Signs with one key, verifies with several, so that a key can be replaced without a gap."""

    def __init__(
        self,
        issuer: str,
        signing: ec.EllipticCurvePrivateKey,
        verifying: Sequence[ec.EllipticCurvePublicKey] = (),
    ) -> None:
        self.issuer = issuer
        self._signing = signing
        self._kid = thumbprint(signing.public_key())
        self._keys = {thumbprint(key): key for key in (*verifying, signing.public_key())}

    def sign(
        self,
        account: Bound,
        *,
        now: datetime,
        lifetime: timedelta,
        audiences: Sequence[str] = (),
        bound: Bound | None = None,
    ) -> str:
        """A token for `account` (resource serviceaccounts), perhaps bound to a pod, secret or node.

        Without audiences the token is for this API server, whose audience is the issuer.
        """
        issued = int(now.timestamp())
        private: dict[str, object] = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        if bound is not None:
            private[bound.resource.removesuffix("s")] = {"name": bound.name, "uid": bound.uid}
        payload = {
            "aud": list(audiences) or [self.issuer],
            "exp": issued + int(lifetime.total_seconds()),
            "iat": issued,
            "iss": self.issuer,
            "jti": secrets.token_hex(16),
            "kubernetes.io": private,
            "nbf": issued,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        signed = f"{_part({'alg': 'ES256', 'kid': self._kid})}.{_part(payload)}"
        r, s = decode_dss_signature(self._signing.sign(signed.encode(), _ES256))
        return f"{signed}.{_encode(r.to_bytes(32) + s.to_bytes(32))}"

    def verify(self, token: str, *, now: datetime, audiences: Sequence[str] = ()) -> Claims:
        """What the token says, if it is ours, for one of `audiences` (the issuer), and in its time.

        Unauthenticated otherwise, always. Whether the bound objects still exist is another
        question: `require_bound`.
        """
        first, payload, signature = _split(token)
        header = _read(first, _Header)
        if header.alg != "ES256" or header.crit is not None:
            raise Unauthenticated("the token is not signed with plain ES256")
        key = self._keys.get(header.kid)
        if key is None:
            raise Unauthenticated("the token is signed with a key that is not known here")
        _check_signature(key, token.rpartition(".")[0], signature)
        return self._claims(_read(payload, _Payload), int(now.timestamp()), audiences)

    def _claims(self, read: _Payload, now: int, audiences: Sequence[str]) -> Claims:
        account = read.kubernetes.serviceaccount
        namespace = read.kubernetes.namespace
        named = tuple([read.aud] if isinstance(read.aud, str) else read.aud)
        agreed = tuple(a for a in named if a in (audiences or (self.issuer,)))
        if read.iss != self.issuer:
            raise Unauthenticated("the token was issued by somebody else")
        if not agreed:
            raise Unauthenticated("the token is meant for another audience")
        if read.exp <= now:
            raise Unauthenticated("the token has expired")
        if max(read.nbf, read.iat) > now + SKEW:
            raise Unauthenticated("the token is not valid yet")
        if read.sub != f"system:serviceaccount:{namespace}:{account.name}" or not account.uid:
            raise Unauthenticated("the token contradicts itself about whose it is")
        return Claims(
            namespace, account.name, account.uid, agreed, read.exp, read.iat, read.jti,
            _bound(read.kubernetes),
        )  # fmt: skip


async def require_bound(claims: Claims, uid_of: Callable[[Bound], Awaitable[str | None]]) -> None:
    """Unauthenticated unless everything the token hangs on still exists under the same uid.

    `uid_of` asks the store for the present uid of an object, None if there is none: a token of a
    deleted account (or pod) must not outlive it, nor serve its successor of the same name.
    """
    for bound in claims.bound:
        if not bound.uid or await uid_of(bound) != bound.uid:
            raise Unauthenticated(f"the token's {bound.resource} {bound.name!r} no longer exists")


def load_keyring(directory: Path, issuer: str) -> Keyring:
    """The keyring kept in `directory`: signs with service-account.key, made the first time.

    Every further `service-account*.key` there verifies only: to rotate, rename the present key
    (service-account-2026.key) and restart; remove the old one once its tokens have expired.
    """
    private_directory(directory)
    path = directory / SIGNING_KEY
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        write_atomic(path, _pem(made))
    remedy = "restore it, or move it away to get a new one (present tokens stop working)"
    others = [file for file in sorted(directory.glob("service-account*.key")) if file != path]
    keys = [load_key(file, remedy).public_key() for file in others]
    return Keyring(issuer, load_key(path, remedy), keys)


def thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """RFC 7638: SHA-256 over the key's canonical JWK, base64url."""
    numbers = key.public_numbers()
    jwk = {
        "crv": "P-256",
        "kty": "EC",
        "x": _encode(numbers.x.to_bytes(32)),
        "y": _encode(numbers.y.to_bytes(32)),
    }
    return _encode(hashlib.sha256(_canonical(jwk)).digest())


def _split(token: str) -> tuple[bytes, bytes, bytes]:
    if len(token) > LONGEST or not token.isascii():
        raise Unauthenticated("this is no token of ours: too long, or not text")
    parts = token.split(".")
    if len(parts) != 3:
        raise Unauthenticated("this is no JSON Web Token")
    header, payload, signature = (_decode(part) for part in parts)
    return header, payload, signature


def _read(part: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(part, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
        raise Unauthenticated("this is no token of ours: it does not read as one") from fault


def _check_signature(key: ec.EllipticCurvePublicKey, signed: str, signature: bytes) -> None:
    if len(signature) != 64:
        raise Unauthenticated("the token's signature is not of ES256")
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    try:
        key.verify(encode_dss_signature(r, s), signed.encode(), _ES256)
    except InvalidSignature as fault:
        raise Unauthenticated("the token's signature is wrong") from fault


def _bound(said: _Kubernetes) -> tuple[Bound, ...]:
    account = said.serviceaccount
    bound = [Bound("serviceaccounts", said.namespace, account.name, account.uid)]
    if said.pod is not None:
        bound.append(Bound("pods", said.namespace, said.pod.name, said.pod.uid))
    if said.secret is not None:
        bound.append(Bound("secrets", said.namespace, said.secret.name, said.secret.uid))
    if said.node is not None:
        bound.append(Bound("nodes", "", said.node.name, said.node.uid))
    return tuple(bound)


def _part(value: dict[str, object]) -> str:
    return _encode(_canonical(value))


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Base64url without padding, strictly: one token, one spelling."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as fault:
        raise Unauthenticated("this is no JSON Web Token") from fault
    if _encode(data) != text:
        raise Unauthenticated("this is no JSON Web Token")
    return data


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

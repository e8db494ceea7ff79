"""ServiceAccount tokens: JSON Web Tokens signed with ES256, with the claims Kubernetes gives them.

Rules: RFC 7515 (JWS), RFC 7518 §3.4 (ES256: r and s, 32 bytes each), RFC 7519 (claims), RFC 7638
(the key id is the key's thumbprint), "Kubernetes: service account token claims".

A token comes from outside. It is bounded before it is decoded, its algorithm is never taken from
itself (`none`, or an HMAC with our public key as secret, is how such verifiers are broken), and
whatever its header or claims hold, the answer is Claims or Unauthenticated.

There are two sorts. *Requested* tokens expire, name their audiences, and may be bound to a pod, a
secret or a node. *Kept* tokens lie in a Secret of their own, for as long as it exists ("legacy
tokens" to Kubernetes): they have no end and no audience, and their claims have other names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from isthmus.errors import Unauthenticated

LONGEST = 8192
"""Bytes of a token; ours are under 1,000. Headers hold no more anyway."""
SKEW = 60
"""Seconds by which another control plane's clock may run ahead (`nbf` only)."""
MOST_AUDIENCES = 64
"""Audiences that are read of one token."""
KEPT_ISSUER = "kubernetes/serviceaccount"
"""Who issues tokens that are kept in Secrets; every Kubernetes says so of itself."""

_ES256 = ec.ECDSA(hashes.SHA256())
T = TypeVar("T")


class Bound(NamedTuple):
    """An object that must still exist, with this uid, for the token to hold."""

    resource: str
    namespace: str
    name: str
    uid: str


class Claims(NamedTuple):
    """What a verified token says. `expires` and `issued` are seconds since the epoch.

    `secret` names the Secret that a kept token must still lie in, word for word; such a token has
    no `expires`, no `issued` and no `id` (0 and "").
    """

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    expires: int
    issued: int
    id: str
    bound: tuple[Bound, ...]
    secret: str = ""

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


_CLAIM = "kubernetes.io/serviceaccount/"


class _Kept(msgspec.Struct):
    """The claims of a token that is kept in a Secret."""

    sub: str
    namespace: str = msgspec.field(name=f"{_CLAIM}namespace")
    secret: str = msgspec.field(name=f"{_CLAIM}secret.name")
    name: str = msgspec.field(name=f"{_CLAIM}service-account.name")
    uid: str = msgspec.field(name=f"{_CLAIM}service-account.uid")


class _Issuer(msgspec.Struct):
    iss: str


class Keyring:
    """Signs with one key, verifies with several, so that a key can be replaced without a gap."""

    def __init__(
        self,
        issuer: str,
        signing: ec.EllipticCurvePrivateKey,
        verifying: Sequence[ec.EllipticCurvePublicKey] = (),
    ) -> None:
        self.issuer = issuer
        self.use(signing, verifying)

    def use(
        self,
        signing: ec.EllipticCurvePrivateKey,
        verifying: Sequence[ec.EllipticCurvePublicKey] = (),
    ) -> None:
        """From now on sign with this key, and verify with it and these alone."""
        self._signing = signing
        self._kid = thumbprint(signing.public_key())
        keys = (signing.public_key(), *verifying)
        self._keys = {thumbprint(key): key for key in keys}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys that verify, the signing one first."""
        return tuple(self._keys)

    def jwks(self) -> dict[str, Any]:
        """The public keys as a JSON Web Key Set (RFC 7517), for whoever verifies our tokens."""
        more = {"use": "sig", "alg": "ES256"}
        keys = self._keys.items()
        return {"keys": [{**_jwk(key), **more, "kid": name} for name, key in keys]}

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
        return self._signed(payload)

    def sign_kept(self, account: Bound, secret: str) -> str:
        """A token for `account` that holds while it lies in the Secret of this name."""
        return self._signed(
            {
                "iss": KEPT_ISSUER,
                f"{_CLAIM}namespace": account.namespace,
                f"{_CLAIM}secret.name": secret,
                f"{_CLAIM}service-account.name": account.name,
                f"{_CLAIM}service-account.uid": account.uid,
                "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
            }
        )

    def _signed(self, payload: dict[str, object]) -> str:
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
        if _read(payload, _Issuer).iss == KEPT_ISSUER:
            return self._kept(_read(payload, _Kept), audiences)
        return self._claims(_read(payload, _Payload), int(now.timestamp()), audiences)

    def _kept(self, read: _Kept, audiences: Sequence[str]) -> Claims:
        if audiences and self.issuer not in audiences:
            raise Unauthenticated("the token is meant for another audience")
        wanted = f"system:serviceaccount:{read.namespace}:{read.name}"
        if read.sub != wanted or not (read.uid and read.secret):
            raise Unauthenticated("the token contradicts itself about whose it is")
        bound = Bound("serviceaccounts", read.namespace, read.name, read.uid)
        mine = (self.issuer,)
        return Claims(read.namespace, read.name, read.uid, mine, 0, 0, "", (bound,), read.secret)

    def _claims(self, read: _Payload, now: int, audiences: Sequence[str]) -> Claims:
        account = read.kubernetes.serviceaccount
        namespace = read.kubernetes.namespace
        named = tuple([read.aud] if isinstance(read.aud, str) else read.aud)
        wanted = audiences or (self.issuer,)
        agreed = tuple(a for a in named[:MOST_AUDIENCES] if a in wanted)
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


def thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """RFC 7638: SHA-256 over the key's canonical JWK, base64url."""
    return _encode(hashlib.sha256(_canonical(_jwk(key))).digest())


def _jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """RFC 7518 section 6.2: the public key's members."""
    numbers = key.public_numbers()
    return {
        "crv": "P-256",
        "kty": "EC",
        "x": _encode(numbers.x.to_bytes(32)),
        "y": _encode(numbers.y.to_bytes(32)),
    }


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

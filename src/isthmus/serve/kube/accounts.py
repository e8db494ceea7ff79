"""Bearer tokens of ServiceAccounts: signed by our keyring, and all they hang on still exists."""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

import msgspec

from isthmus.aio import Clock
from isthmus.ca.tokens import Bound, Claims, Keyring, require_bound
from isthmus.errors import Unauthenticated
from isthmus.model.registry import Registry
from isthmus.model.times import parse_seconds
from isthmus.serve.kube.auth import Bearer, User
from isthmus.store.contract import Store

LEEWAY: Final = 60.0
"""Seconds for which the token of something that is being deleted still holds: it ends in order."""

_EXTRA: Final = "authentication.kubernetes.io/"
ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105  # a type of Secrets


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Secret(_Object):
    type: str = ""
    data: dict[str, str] = msgspec.field(default_factory=dict)


class AccountTokens:
    """Verifies them, in one cluster."""

    def __init__(self, keyring: Keyring, store: Store, kinds: Registry, clock: Clock) -> None:
        self._keyring = keyring
        self._store = store
        self._kinds = kinds
        self._clock = clock

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> Bearer:
        """The account as a user; Unauthenticated if the token, or what it hangs on, is no more."""
        claims = self._keyring.verify(token, now=self._clock.utc(), audiences=audiences)
        await require_bound(claims, self._uid_of)
        if claims.secret:
            await self._require_secret(claims, token)
        user = User(claims.user, claims.groups, claims.uid, _extra(claims))
        return Bearer(user, claims.audiences)

    async def _uid_of(self, bound: Bound) -> str | None:
        raw = await self._read(bound.resource, bound.namespace, bound.name)
        if raw is None:
            return None
        meta = msgspec.json.decode(raw, type=_Object).metadata
        return None if self._gone(meta) else meta.uid

    async def _require_secret(self, claims: Claims, token: str) -> None:
        """A token without an end lives in its Secret: taken out there, it is no longer valid."""
        raw = await self._read("secrets", claims.namespace, claims.secret)
        secret = msgspec.json.decode(raw or b"{}", type=_Secret)
        held = _decoded(secret.data.get("token", ""))
        same = hmac.compare_digest(held, token.encode())
        if secret.type != ACCOUNT_TOKEN or not same or self._gone(secret.metadata):
            raise Unauthenticated(f"the token is no longer in the Secret {claims.secret!r}")

    async def _read(self, resource: str, namespace: str, name: str) -> bytes | None:
        kind = self._kinds.by_resource("", resource)
        record = await self._store.get(kind.key(namespace, name)) if kind is not None else None
        return record.value if record is not None else None

    def _gone(self, meta: _Meta) -> bool:
        marked = parse_seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None
        return marked is not None and marked + LEEWAY < self._clock.time()


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""


def _extra(claims: Claims) -> dict[str, tuple[str, ...]]:
    """What the token says beside the account, under Kubernetes' names."""
    extra: dict[str, tuple[str, ...]] = {}
    if claims.id:
        extra[f"{_EXTRA}credential-id"] = (f"JTI={claims.id}",)
    for bound in claims.bound:
        if bound.resource in ("pods", "nodes"):
            what = bound.resource.removesuffix("s")
            extra[f"{_EXTRA}{what}-name"] = (bound.name,)
            extra[f"{_EXTRA}{what}-uid"] = (bound.uid,)
    return extra

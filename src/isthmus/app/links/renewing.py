"""The token of a link, renewed at two thirds of its life.

The account of a Link may request tokens of its own. A new one is tried before it is kept, and kept
in every Secret that holds the old one, by compare-and-swap: whoever rotated it meanwhile wins. Then
it is taken up like any other change of a Secret. A token without an end is left alone: it lives in
a Secret of the other cluster, and one with an end would make a link die while nobody can renew it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from isthmus.aio import Backoff, Clock
from isthmus.errors import Conflict, IsthmusError, NotFound, PeerFault
from isthmus.mesh.credentials import KUBECONFIG
from isthmus.model.document import read_json, text, texts
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Document, Kind
from isthmus.model.registry import BUILT_IN
from isthmus.store.kubernetes import Access, Client
from isthmus.store.objects import Writer

if TYPE_CHECKING:
    from isthmus.app.links.watcher import Watcher

SHARE: Final = 2 / 3
SHORTEST: Final = 600
"""Seconds of a token's life; Kubernetes grants no less."""
LONGEST_SLEEP: Final = 3600.0
"""Clocks are set and machines sleep: look again."""
AGAIN: Final = Backoff(first=5.0, most=300.0)
LARGEST: Final = 64 * 1024
_ACCOUNT: Final = "system:serviceaccount:"


class Claims(NamedTuple):
    """What a token says of itself; unverified, for it is ours. Seconds since the epoch."""

    namespace: str
    account: str
    issued: float
    expires: float

    @property
    def due(self) -> float:
        """When it is to be renewed."""
        return self.issued + (self.expires - self.issued) * SHARE


class _Payload(msgspec.Struct):
    sub: str
    iat: float
    exp: float


def claims_of(token: str) -> Claims | None:
    """The claims of an account's token that ends; None for any other."""
    part = token.split(".")[1:2]
    if not part or len(token) > LARGEST:
        return None
    try:
        raw = base64.urlsafe_b64decode(part[0] + "=" * (-len(part[0]) % 4))
        read = msgspec.json.decode(raw, type=_Payload)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        return None
    namespace, colon, account = read.sub.removeprefix(_ACCOUNT).partition(":")
    good = read.sub.startswith(_ACCOUNT) and colon and namespace.isascii() and account.isascii()
    safe = "/" not in read.sub and "?" not in read.sub and "#" not in read.sub
    if not good or not safe or read.exp <= read.iat:
        return None
    return Claims(namespace, account, read.iat, read.exp)


class Renewing:
    """Keeps one watcher's token alive."""

    def __init__(self, watcher: Watcher, objects: Writer, clock: Clock) -> None:
        self._watcher = watcher
        self._health = watcher.health
        self._objects = objects
        self._clock = clock

    async def run(self) -> None:
        """Renew until cancelled."""
        async with asyncio.TaskGroup() as group:
            task: asyncio.Task[None] | None = None
            with self._watcher.access.watch() as watch:
                while True:
                    access = await watch.next()
                    if task is not None:
                        task.cancel()
                    claims = claims_of(access.token) if access is not None else None
                    self._say("")
                    self._health.expires = claims.expires if claims is not None else None
                    if access is not None and claims is not None:
                        task = group.create_task(self._keep(access, claims))

    async def _keep(self, access: Access, claims: Claims) -> None:
        """Until it is renewed: the Secret's change then brings the next one."""
        failures = 0
        while True:
            while (left := claims.due - self._now()) > 0:
                await self._clock.sleep(min(left, LONGEST_SLEEP))
            try:
                await self._renew(access, claims)
            except IsthmusError as fault:
                failures += 1
                self._say(f"the token ends {self._left(claims)}: {fault.message}")
            else:
                self._say("")
                return
            await self._clock.sleep(AGAIN.pause(failures, self._watcher.random))

    def _now(self) -> float:
        """By the clock of the cluster that issued the token."""
        return self._clock.time() + self._health.skew

    def _left(self, claims: Claims) -> str:
        left = claims.expires - self._now()
        return f"in {left:.0f} s" if left > 0 else "now"

    def _say(self, why: str) -> None:
        if self._health.renewal != why:
            self._health.renewal = why
            self._watcher.publish()

    async def _renew(self, access: Access, claims: Claims) -> None:
        token = await self._request(access, claims)
        async with Client(msgspec.structs.replace(access, token=token), self._clock) as client:
            await client.ask("/version")
        linked = self._watcher.wanted.value
        kept = [await self._put(key, access.token, token) for key in (linked.secret, *linked.also)]
        if not any(kept):
            raise Conflict("no Secret holds the token any more that was renewed")

    async def _request(self, access: Access, claims: Claims) -> str:
        where = f"/api/v1/namespaces/{claims.namespace}/serviceaccounts/{claims.account}/token"
        life = max(SHORTEST, int(claims.expires - claims.issued))
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": life},
        }
        async with Client(access, self._clock) as client:
            answer = await client.ask(where, body=msgspec.json.encode(asked), most=LARGEST)
        token = text(read_json(answer), "status.token")
        if claims_of(token) is None:
            raise PeerFault("the answer to a TokenRequest holds no token that ends")
        return token

    async def _put(self, secret: ObjectKey, old: str, new: str) -> bool:
        """Put the new token in the old one's place; whether it was there."""
        found = False

        def change(document: Document) -> Document:
            nonlocal found
            changed = replaced(document, old, new)
            found = changed is not document
            return changed

        try:
            await self._objects.update(_secrets(), secret.namespace, secret.name, change)
        except NotFound:
            return False
        return found


def replaced(secret: Document, old: str, new: str) -> Document:
    """The Secret with another token, the rest to the byte; itself if the old one is not there."""
    data = texts(secret, "data")
    try:
        held = base64.b64decode(data.get(KUBECONFIG, ""), validate=True)
    except (binascii.Error, ValueError):
        return secret
    if old.encode() not in held:
        return secret
    kept = base64.b64encode(held.replace(old.encode(), new.encode())).decode()
    return {**secret, "data": {**data, KUBECONFIG: kept}}


def _secrets() -> Kind:
    kind = BUILT_IN.by_key_resource("secrets")
    if kind is None:
        raise LookupError("the kind of secrets is not registered")
    return kind

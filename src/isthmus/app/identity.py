"""The mesh's trust and the identity service: where trust lies, who reviews tokens, who serves."""

from __future__ import annotations

import asyncio
import socket

from isthmus.aio import Clock
from isthmus.app.means import Means
from isthmus.ca import Files, Keeper, Leaf, Realm, Shelf, Trust, server_leaf
from isthmus.config import ServerConfig
from isthmus.errors import Unavailable, UserFault
from isthmus.serve.identity import (
    Certifier,
    Hosts,
    IdentityServer,
    ObjectShelf,
    Reviewed,
)
from isthmus.serve.kube.accounts import AccountTokens
from isthmus.store import Store
from isthmus.store.objects import Writer

RENEW_AT = 2 / 3
"""Share of a listener's certificate's life after which it shows another."""
LOOK = 60.0
"""Seconds between two looks at its age."""


class Reviews:
    """In-process TokenReview."""

    def __init__(self, tokens: AccountTokens) -> None:
        self._tokens = tokens

    async def review(self, token: str, audience: str) -> Reviewed:
        """See `serve.identity.Reviewer`."""
        return Reviewed((await self._tokens.verify(token, (audience,))).user.name)


def realm(config: ServerConfig) -> Realm:
    """What all identities of this cluster end in."""
    return Realm(config.trust_domain, config.control_plane_namespace)


async def keeper(config: ServerConfig, means: Means, store: Store, objects: Writer) -> Keeper:
    """Finds and follows the mesh's trust.

    Raises:
        UserFault: flags name files that cannot be used.
    """
    clock, _, log = means
    shelf: Shelf
    anchors, issuer, key = config.trust_anchors, config.issuer_cert, config.issuer_key
    if anchors is not None and issuer is not None and key is not None:
        shelf = Files(anchors, issuer, key, clock)
    else:
        shelf = ObjectShelf(config.control_plane_namespace, store, objects, clock)
    made = Keeper(shelf, f"isthmus {config.cluster}", clock, log)
    try:
        await made.load()
    except UserFault as fault:
        if isinstance(shelf, Files):
            raise  # somebody named them: better no start than another trust
        log.warning("the mesh's trust cannot be used yet", why=fault.message)
    return made


def server(
    listening: socket.socket,
    config: ServerConfig,
    means: Means,
    trust: Keeper,
    tokens: AccountTokens,
    stored: tuple[Store, Writer],
) -> IdentityServer:
    """The identity service on a socket."""
    clock, _, log = means
    store, objects = stored
    own = realm(config)
    hosts = Hosts(own, config.cluster, store, objects, clock)
    certifier = Certifier(own, trust, Reviews(tokens), hosts, clock, log)
    return IdentityServer(listening, certifier, trust, own, config.cluster, clock=clock, log=log)


class Serving:
    """A listener's own certificate, from the issuer in use: renewed in time, and when that changes.

    Others read `leaf` from any thread.
    """

    def __init__(self, config: ServerConfig, trust: Keeper, clock: Clock) -> None:
        own = realm(config)
        self._names = (own.server_name, own.server_uri(config.cluster))
        self._trust = trust
        self._clock = clock
        self._held: tuple[Trust, Leaf] | None = None
        self._until = 0.0

    @property
    def leaf(self) -> tuple[Leaf, bytes]:
        """The certificate, and the anchors that clients' must end in (PEM).

        Raises:
            Unavailable: there is no trust yet.
        """
        if self._held is None:
            raise Unavailable("the mesh has no trust yet")
        trust, leaf = self._held
        return leaf, trust.bundle

    def look(self) -> None:
        """Have a certificate now, if there is trust already."""
        trust = self._trust.now.value
        if trust is not None:
            self._renew(trust)

    async def ready(self) -> None:
        """Have a certificate; the mesh's trust is made if there is none."""
        self._renew(await self._trust.trust())

    async def run(self) -> None:
        """Keep it fresh until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._age())

    async def _follow(self) -> None:
        with self._trust.now.watch() as watch:
            while True:
                trust = await watch.next()
                if trust is not None:
                    self._renew(trust)

    async def _age(self) -> None:
        while True:
            await self._clock.sleep(LOOK)
            held = self._held
            if held is not None and self._clock.time() >= self._until:
                self._renew(held[0])

    def _renew(self, trust: Trust) -> None:
        now = self._clock.time()
        leaf = server_leaf(trust, self._names, now=self._clock.utc())
        self._held = (trust, leaf)
        self._until = now + (leaf.not_after.timestamp() - now) * RENEW_AT

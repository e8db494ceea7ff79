"""Certify: the checks, in Linkerd's order, and the leaf that follows from them.

Whoever asks must show one of four things:

- a ServiceAccount token with the audience of this service: the leaf is that account's;
- a host's certificate, and in place of a token the name of a Pod or an ExternalWorkload
  (`pod/NS/NAME`) that is bound to the host: the leaf is its account's;
- a host's certificate, and nothing else: the host's own leaf is renewed, for the same key;
- an invitation: the first leaf of a host.

The identity that is asked for is only ever compared with the one that was proven.
"""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import Clock, Log
from isthmus.ca import AUDIENCE, Account, Issued, Keeper, Realm, chains, issue, join, request
from isthmus.ca.request import Request
from isthmus.calls import Refused
from isthmus.errors import BadRequest, Unauthenticated, UserFault
from isthmus.serve.identity.contract import Caller, Reviewer
from isthmus.serve.identity.hosts import Hosts

LONGEST_IDENTITY = 2048
LONGEST_TOKEN = 8192


class Certifier:
    """Answers one realm's requests for certificates."""

    def __init__(
        self,
        realm: Realm,
        keeper: Keeper,
        reviewer: Reviewer,
        hosts: Hosts,
        clock: Clock,
        log: Log,
    ) -> None:
        self._realm = realm
        self._keeper = keeper
        self._reviewer = reviewer
        self._hosts = hosts
        self._clock = clock
        self._log = log

    async def tell(self, caller: Caller, path: str, *, leaving: bool) -> None:
        """See `Hosts.tell`."""
        await self._hosts.tell(caller, path, leaving=leaving)

    async def sweep(self) -> int:
        """See `Hosts.sweep`."""
        return await self._hosts.sweep()

    async def certify(self, identity: str, token: bytes, csr: bytes, caller: Caller) -> Issued:
        """A leaf for `identity`.

        Raises:
            Refused: it was not proven, or the request asks for more than that. linkerd2-proxy asks
                again after any status, with a growing pause.
        """
        shown = self._shown(identity, token, csr, caller)
        asked = _asked(csr, identity)
        names = await self._proven(identity, shown, caller, asked)
        trust = await self._keeper.trust()
        made = issue(trust, asked.key, names, common_name=asked.common_name, now=self._clock.utc())
        self._log.info(
            "certificate issued",
            identity=identity,
            until=made.until.isoformat(),
            hash=chains.fingerprint(made.leaf),
        )
        return made

    def _shown(self, identity: str, token: bytes, csr: bytes, caller: Caller) -> str:
        """The token as text. Only a host that renews its own leaf may do without."""
        renews = bool(caller.host) and identity == self._realm.host_uri(caller.host)
        for what, given in (("identity", identity), ("token", token or renews), ("CSR", csr)):
            if not given:
                raise Refused("INVALID_ARGUMENT", f"missing {what}")
        if len(identity) > LONGEST_IDENTITY or len(token) > LONGEST_TOKEN:
            raise Refused("INVALID_ARGUMENT", "the identity or the token is too long")
        try:
            return token.decode("ascii")
        except UnicodeDecodeError:
            raise Refused("INVALID_ARGUMENT", "the token is not text") from None

    async def _proven(
        self, identity: str, shown: str, caller: Caller, asked: Request
    ) -> tuple[str, ...]:
        """Every name of the leaf, once it is proven that the caller bears them."""
        host = self._realm.host(identity)
        if shown.startswith(join.PREFIX):
            return await self._invited(identity, host, shown, asked)
        if host is not None:
            return await self._renewed(identity, host, caller, asked)
        account = await self._account(shown, caller)
        found = self._realm.name(account) if account.fits else ""
        if found != identity:
            raise Refused(
                "FAILED_PRECONDITION",
                "requested identity did not match provided token:"
                f" requested={identity}; found={found}",
            )
        return (found, self._realm.uri(account))  # the DNS name first: decision 23

    async def _account(self, shown: str, caller: Caller) -> Account:
        if caller.host and "/" in shown:
            await self._hosts.require(caller)
            return await self._hosts.account(caller.host, shown)
        if shown.count(".") != 2:
            raise Refused("INVALID_ARGUMENT", "the token is no JSON Web Token")
        try:
            user = (await self._reviewer.review(shown, AUDIENCE)).user
        except Unauthenticated as fault:
            raise Refused("FAILED_PRECONDITION", fault.message) from fault
        match user.split(":"):
            case ["system", "serviceaccount", namespace, name]:
                return Account(namespace, name)
        raise Refused("FAILED_PRECONDITION", "the token is no ServiceAccount's")

    async def _invited(
        self, identity: str, host: str | None, shown: str, asked: Request
    ) -> tuple[str, ...]:
        try:
            invitation = join.read(shown)
        except BadRequest as fault:
            raise Refused("INVALID_ARGUMENT", fault.message) from fault
        if host is None or invitation.uri != identity:
            raise Refused("FAILED_PRECONDITION", "the join token is for another identity")
        await self._keeper.trust()  # an invitation must not be spent on a leaf that cannot be made
        await self._hosts.join(invitation, host, key_hash(asked.key))
        return (identity,)

    async def _renewed(
        self, identity: str, host: str, caller: Caller, asked: Request
    ) -> tuple[str, ...]:
        if caller.host != host:
            raise Refused("PERMISSION_DENIED", "only a host itself renews its certificate")
        await self._hosts.require(caller)
        if key_hash(asked.key) != caller.key:
            raise Refused("FAILED_PRECONDITION", "a host keeps its key: join again for another")
        return (identity,)


def _asked(csr: bytes, identity: str) -> Request:
    try:
        asked = request.read(csr)
        request.require_only(asked, identity)
    except BadRequest as fault:
        raise Refused("INVALID_ARGUMENT", fault.message) from fault
    except UserFault as fault:
        raise Refused("FAILED_PRECONDITION", fault.message) from fault
    return asked


def key_hash(key: ec.EllipticCurvePublicKey) -> str:
    """SHA-256 of a public key (SubjectPublicKeyInfo, DER), hexadecimal."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()

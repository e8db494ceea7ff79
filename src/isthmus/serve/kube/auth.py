"""Who asks, and whether they may.

Who: a client certificate (CN is the user, each O a group), a bearer token, or nobody (anonymous);
only ever from the channel or the Authorization header, never from the content of a message. Then,
if they may impersonate, somebody else. Whether: an `Authorizer`, one question per request;
`MastersOnly` until RBAC comes. Wording and group names are those of Kubernetes ("Authenticating",
"Authorization").
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from isthmus.aio import Clock
from isthmus.ca.tokens import Bound, Keyring, require_bound
from isthmus.errors import BadRequest, Forbidden, Subject, Unauthenticated
from isthmus.model.kind import Document
from isthmus.model.registry import Registry
from isthmus.serve.kube.routes import Plain, Route, Target
from isthmus.store.contract import Store

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"

MAX_IMPERSONATED = 64
"""Most groups and extras that one request may put on."""


class User(msgspec.Struct, frozen=True):
    """Who a request comes from. `extra` holds what else the authenticator knows, by key."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class TokenVerifier(Protocol):
    """Knows the bearer tokens of this cluster."""

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> User:
        """The user, or Unauthenticated."""
        ...


class NoTokens:
    """Where no tokens are issued, none is valid."""

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> User:
        raise Unauthenticated("this server takes no tokens")


class AccountTokens:
    """ServiceAccount tokens: signed by our keyring, and everything they hang on still exists."""

    def __init__(self, keyring: Keyring, store: Store, kinds: Registry, clock: Clock) -> None:
        self._keyring = keyring
        self._store = store
        self._kinds = kinds
        self._clock = clock

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> User:
        claims = self._keyring.verify(token, now=self._clock.utc(), audiences=audiences)
        await require_bound(claims, self._uid_of)
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.id}",)}
        for bound in claims.bound:
            if bound.resource == "pods":
                extra["authentication.kubernetes.io/pod-name"] = (bound.name,)
                extra["authentication.kubernetes.io/pod-uid"] = (bound.uid,)
        return User(claims.user, claims.groups, claims.uid, extra)

    async def _uid_of(self, bound: Bound) -> str | None:
        kind = self._kinds.by_resource("", bound.resource)
        if kind is None:
            return None
        record = await self._store.get(kind.key(bound.namespace, bound.name))
        return _Uid.of(record.value) if record is not None else None


class _UidMeta(msgspec.Struct):
    uid: str = ""


class _Uid(msgspec.Struct):
    metadata: _UidMeta

    @staticmethod
    def of(raw: bytes) -> str:
        return msgspec.json.decode(raw, type=_Uid).metadata.uid


# -------------------------------------------------------------------------------------- certificate


def user_of_certificate(certificate: Mapping[str, Any], now: float) -> User:
    """The user of a client certificate that TLS has verified (as `SSLObject.getpeercert` tells it).

    Unauthenticated if it names nobody (a certificate without a common name is no anonymous user),
    or if it expired since the connection was made. `now` is seconds since the epoch.
    """
    until = certificate.get("notAfter")
    if until is not None and ssl.cert_time_to_seconds(until) < now:
        raise Unauthenticated("the client certificate has expired")
    subject = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((value for field, value in subject if field == "commonName"), "")
    if not name or not name.isprintable():
        raise Unauthenticated("the client certificate has no usable common name")
    groups = [value for field, value in subject if field == "organizationName"]
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))


_BEARER = re.compile(r"[Bb]earer +([A-Za-z0-9\-._~+/]+=*) *")


def bearer(header: str | None) -> str:
    """The token of an Authorization header, "" without one; Unauthenticated for other schemes."""
    if not header:
        return ""
    found = _BEARER.fullmatch(header)
    if found is None:
        raise Unauthenticated("the Authorization header holds no bearer token")
    return found[1]


async def authenticate(
    certificate: Mapping[str, Any] | None,
    authorization: str | None,
    tokens: TokenVerifier,
    now: float,
) -> User:
    """Who asks. A certificate beats a token; a wrong token is an error, no token is anonymous."""
    if certificate:
        return user_of_certificate(certificate, now)
    token = bearer(authorization)
    return await tokens.verify(token) if token else ANONYMOUS


# ------------------------------------------------------------------------------------ authorization


class Attributes(NamedTuple):
    """One question to an authorizer: may they do `verb` on this resource, or on this `path`."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """`deployments`, or `deployments/scale`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Decision(NamedTuple):
    """The answer; `reason` says which rule allowed, or why nothing did."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides, from what it holds, at once."""

    def decide(self, user: User, asked: Attributes) -> Decision:
        """Whether the user may."""
        ...


_PUBLIC = frozenset({"healthz", "livez", "readyz", "version"})
_DISCOVERY = frozenset({"api", "apis", "openapi"})
_SELF_REVIEWS = frozenset(
    {
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    }
)


class MastersOnly:
    """`system:masters` may everything; others may find out what there is and who they are."""

    def decide(self, user: User, asked: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(True, f"group {MASTERS}")
        if asked.path:
            first = asked.path.strip("/").partition("/")[0]
            known = first in _DISCOVERY and AUTHENTICATED in user.groups
            return Decision(asked.verb == "get" and (first in _PUBLIC or known))
        about = (asked.group, asked.resource)
        itself = asked.verb == "create" and about in _SELF_REVIEWS
        return Decision(itself and AUTHENTICATED in user.groups)


def attributes(method: str, verb: str, route: Route) -> Attributes:
    """The question that a request raises; of paths without a resource, by HTTP method."""
    match route:
        case Plain():
            return Attributes("get" if method == "HEAD" else method.lower(), path=route.path)
        case Target():
            return Attributes(
                verb, route.group, route.version, route.resource, route.subresource,
                route.namespace, route.name,
            )  # fmt: skip


def require(authorizer: Authorizer, user: User, asked: Attributes) -> Decision:
    """The decision, if it is yes; else Forbidden in Kubernetes' words."""
    decision = authorizer.decide(user, asked)
    if not decision.allowed:
        raise forbidden(user, asked, decision.reason)
    return decision


def forbidden(user: User, asked: Attributes, reason: str = "") -> Forbidden:
    """`services is forbidden: User "x" cannot list resource "services" in API group "" ...`."""
    why = f": {reason}" if reason else ""
    if asked.path:
        message = f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"{why}'
        return Forbidden(message)
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    message = (
        f'User "{user.name}" cannot {asked.verb} resource "{asked.full_resource}" '
        f'in API group "{asked.group}" {where}{why}'
    )
    about = Subject(group=asked.group, resource=asked.resource, name=asked.name)
    return Forbidden(message, about=about)


# ------------------------------------------------------------------------------------ impersonation

_EXTRA = "impersonate-extra-"


def impersonate(headers: Sequence[tuple[str, str]], user: User, authorizer: Authorizer) -> User:
    """Who the request counts as: `user`, or whom its Impersonate headers name if `user` may.

    Each name, group, uid and extra put on is one question with the verb `impersonate`. Groups or
    extras without a user are BadRequest.
    """
    worn = [
        (key.lower(), value) for key, value in headers if key.lower().startswith("impersonate-")
    ]
    if not worn:
        return user
    if len(worn) > MAX_IMPERSONATED:
        raise BadRequest(f"more than {MAX_IMPERSONATED} Impersonate headers")
    names = [value for key, value in worn if key == "impersonate-user"]
    if len(names) != 1 or not names[0]:
        raise BadRequest("impersonation needs exactly one Impersonate-User header")
    groups = tuple(value for key, value in worn if key == "impersonate-group")
    uid = next((value for key, value in worn if key == "impersonate-uid"), "")
    extra = _extra(worn)
    for asked in _worn(names[0], groups, uid, extra):
        require(authorizer, user, asked)
    return User(names[0], _groups_of(names[0], groups), uid, extra)


def _extra(worn: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in worn:
        if key.startswith(_EXTRA):
            name = key.removeprefix(_EXTRA)
            extra[name] = (*extra.get(name, ()), value)
    return extra


def _worn(
    name: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]
) -> list[Attributes]:
    asked = [_impersonated_user(name)]
    asked += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    about = Attributes("impersonate", group="authentication.k8s.io", version="v1")
    if uid:
        asked.append(about._replace(resource="uids", name=uid))
    for key, values in extra.items():
        asked += [about._replace(resource="userextras", subresource=key, name=v) for v in values]
    return asked


def _impersonated_user(name: str) -> Attributes:
    prefix, _, account = name.rpartition(":")
    namespace = prefix.removeprefix("system:serviceaccount:")
    if namespace != prefix and namespace and ":" not in namespace:
        about = Attributes("impersonate", resource="serviceaccounts")
        return about._replace(namespace=namespace, name=account)
    return Attributes("impersonate", resource="users", name=name)


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    asked = _impersonated_user(name)
    derived: tuple[str, ...] = ()
    if asked.resource == "serviceaccounts" and not groups:
        derived = ("system:serviceaccounts", f"system:serviceaccounts:{asked.namespace}")
    if name == ANONYMOUS.name:
        return tuple(dict.fromkeys((*groups, UNAUTHENTICATED)))
    return tuple(dict.fromkeys((*groups, *derived, AUTHENTICATED)))


def user_info(user: User) -> Document:
    """The user as the review kinds show it (authentication.k8s.io/v1 UserInfo)."""
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info

"""Who asks, and the question whether they may.

Who: a client certificate (CN is the user, each O a group), a bearer token, or nobody (anonymous);
only ever from the channel or the Authorization header, never from the content of a message, nor
from headers that say what some proxy in front would know. Whether: an `Authorizer`, one question
per request (`rbac` answers it). Wording and group names are those of Kubernetes ("Authenticating",
"Authorization").
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from isthmus.errors import Forbidden, Subject, Unauthenticated
from isthmus.model.kind import Document
from isthmus.model.rbac import PolicyRule
from isthmus.serve.kube.query import Query
from isthmus.serve.kube.routes import Plain, Route, Target
from isthmus.serve.kube.selector import selected_name

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"

NO_QUERY: Final[Query] = {}


class User(msgspec.Struct, frozen=True):
    """Who a request comes from. `extra` holds what else the authenticator knows, by key."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class Bearer(NamedTuple):
    """Who bears a token, and for which of the audiences that were asked about it is meant."""

    user: User
    audiences: tuple[str, ...] = ()


class TokenVerifier(Protocol):
    """Knows the bearer tokens of this cluster."""

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> Bearer:
        """Whose the token is, if it is for one of `audiences` (this API); or Unauthenticated."""
        ...


class NoTokens:
    """Where no tokens are issued, none is valid."""

    async def verify(self, token: str, audiences: Sequence[str] = ()) -> Bearer:
        raise Unauthenticated("this server takes no tokens")


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
    return (await tokens.verify(token)).user if token else ANONYMOUS


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

    def rights(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        """All that the user may in a namespace and in the whole cluster; "": only the latter."""
        ...


_OF_MANY = frozenset({"list", "watch", "deletecollection"})


def attributes(method: str, verb: str, route: Route, query: Query = NO_QUERY) -> Attributes:
    """The question that a request raises; of paths without a resource, by HTTP method.

    As in Kubernetes, a Namespace is asked about inside itself, and a list that its field selector
    narrows to one name is a question about that name.
    """
    match route:
        case Plain():
            return Attributes("get" if method == "HEAD" else method.lower(), path=route.path)
        case Target():
            namespace, name = route.namespace, route.name
            if (route.group, route.resource) == ("", "namespaces") and name:
                namespace = name
            if verb in _OF_MANY and not name and "fieldSelector" in query:
                name = selected_name(query["fieldSelector"][0])
            return Attributes(
                verb, route.group, route.version, route.resource, route.subresource, namespace, name
            )


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

"""What an explanation consists of, and the short words for objects in it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from isthmus.ir.inbound import ANYWHERE, Anybody, Authentication, Authorization, TlsOnly
from isthmus.ir.names import (
    AnyIdentity,
    Default,
    Dns,
    Identity,
    IdentityMatch,
    IdentitySuffix,
    Ref,
    Source,
)


class Outcome(StrEnum):
    """What comes of a request.

    ANSWERED: a proxy answers itself. OUTSIDE: it leaves the mesh. ELSEWHERE: another cluster's
    objects decide, which are not known here. DEPENDS: it depends on the endpoint.
    """

    DELIVERED = "delivered"
    ANSWERED = "answered"
    REFUSED = "refused"
    OUTSIDE = "sent outside"
    ELSEWHERE = "decided elsewhere"
    DEPENDS = "depends"


class Line(msgspec.Struct, frozen=True):
    """One thing on the way: which part of the mesh, which object of it, what it does."""

    part: str
    object: str
    text: str


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a way. `status` is of HTTP, `grpc` a code, `by` the object that decided."""

    outcome: Outcome
    text: str = ""
    by: str = ""
    status: int | None = None
    grpc: int | None = None


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """An endpoint and what its proxy does. `ask` is the command that tells more elsewhere."""

    cluster: str
    endpoint: str
    lines: tuple[Line, ...]
    verdict: Verdict
    ask: str = ""


class Explained(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole answer, or why there is none (`problem`)."""

    cluster: str = ""
    lines: tuple[Line, ...] = ()
    ends: tuple[End, ...] = ()
    verdict: Verdict | None = None
    problem: str = ""


def words(source: Source, home: str) -> str:
    """`HTTPRoute shop/split rules[0]`, `Service shop/cart:80 in east`, `default http`."""
    if isinstance(source, Default):
        return f"default {source.name}"
    port = f":{source.port}" if source.port else ""
    path = f" {source.path}" if source.path else ""
    return f"{ref_words(source.ref, port)}{path}{elsewhere(source.ref.cluster, home)}"


def ref_words(ref: Ref, port: str = "") -> str:
    """`Pod shop/cart-a`."""
    return f"{ref.kind} {ref.namespace}/{ref.name}{port}"


def elsewhere(cluster: str, home: str) -> str:
    """` in east` for what is not of the cluster that is asked."""
    return f" in {cluster}" if cluster not in ("", home) else ""


def identity_words(identity: Identity | None) -> str:
    """A name as a certificate has it; `nobody` without one."""
    match identity:
        case None:
            return "nobody"
        case Dns(name):
            return name
        case _:
            return identity.uri


def admitted(said: Authorization) -> str:
    """Whom an authorization lets in: `cart.shop... from 10.0.0.0/8`, `anybody`."""
    proof = _proof(said.authentication)
    if said.networks == ANYWHERE:
        return proof
    networks = (
        f"{each.cidr} without {', '.join(each.excepts)}" if each.excepts else each.cidr
        for each in said.networks
    )
    return f"{proof} from {' or '.join(networks) or 'nowhere'}"


def _proof(said: Authentication) -> str:
    match said:
        case Anybody():
            return "anybody"
        case TlsOnly():
            return "anybody with TLS"
        case _:
            return " or ".join(map(_match, said.identities)) or "nobody"


def _match(said: IdentityMatch) -> str:
    match said:
        case AnyIdentity():
            return "any identity"
        case IdentitySuffix(labels):
            return f"*.{'.'.join(labels)}"
        case _:
            return identity_words(said)

"""Rate limits: the HTTPLocalRateLimitPolicy that counts on a Server, and why others do not."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.inbound import RateLimit, RateOverride
from isthmus.ir.names import Origin, Ref
from isthmus.mesh.authentication import ACCOUNT, account_identity
from isthmus.mesh.policy_tables import (
    POLICY_GROUP,
    RATE_LIMITS,
    RATE_LIMITS_BY_SERVER,
    SERVER,
    SERVERS,
    kind_name,
)
from isthmus.model.key import ObjectKey
from isthmus.model.policy import Override, Rate

_MOST: Final = 2**32 - 1
"""Proxies count in 32 bits."""


class LimitState(StrEnum):
    """Whether a rate limit counts (Linkerd's reasons: Accepted, NoMatchingTarget, ...)."""

    ACCEPTED = "accepted"
    NO_TARGET = "no-target"
    ALREADY_EXISTS = "already-exists"


@query
def limit_of(db: View, server: ObjectKey) -> ObjectKey | None:
    """The rate limit that counts on a Server: the oldest, then the first by name."""
    found = [
        (age, key)
        for key in RATE_LIMITS_BY_SERVER.get(db, server)
        if (age := limit_age(db, key)) is not None
    ]
    return min(found)[1] if found and SERVERS.get(db, server) is not None else None


@query
def limit_age(db: View, key: ObjectKey) -> str | None:
    """When a rate limit was created; None if there is none."""
    row = RATE_LIMITS.get(db, key)
    return row.metadata.creation_timestamp if row is not None else None


@query
def limit_state(db: View, key: ObjectKey) -> LimitState | None:
    """Whether a rate limit counts; None if there is none."""
    row = RATE_LIMITS.get(db, key)
    if row is None:
        return None
    ref = row.spec.target_ref
    server = key._replace(name=ref.name)
    if kind_name(ref.group, ref.kind) != SERVER or SERVERS.get(db, server) is None:
        return LimitState.NO_TARGET
    return LimitState.ACCEPTED if limit_of(db, server) == key else LimitState.ALREADY_EXISTS


@query
def rate_limit(db: View, server: ObjectKey) -> RateLimit | None:
    """How many requests a second each proxy of a Server lets in."""
    key = limit_of(db, server)
    row = RATE_LIMITS.get(db, key) if key is not None else None
    if key is None or row is None:
        return None
    spec = row.spec
    made = (_override(db, key, one) for one in spec.overrides)
    return RateLimit(
        Origin(Ref(key.cluster, POLICY_GROUP, "HTTPLocalRateLimitPolicy", key.namespace, key.name)),
        total=_rate(spec.total),
        each=_rate(spec.identity),
        overrides=tuple(one for one in made if one.identities and one.per_second),
    )


def _rate(said: Rate | None) -> int | None:
    """A rate that no API lets in limits nothing."""
    per_second = said.requests_per_second if said is not None else 0
    return per_second if 1 <= per_second <= _MOST else None


def _override(db: View, key: ObjectKey, said: Override) -> RateOverride:
    clients = (
        account_identity(db, key.cluster, ref.namespace or key.namespace, ref.name)
        for ref in said.client_refs
        if kind_name(ref.group, ref.kind) == ACCOUNT and ref.name
    )
    per_second = said.requests_per_second if 1 <= said.requests_per_second <= _MOST else 0
    return RateOverride(tuple(dict.fromkeys(clients)), per_second)

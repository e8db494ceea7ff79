"""Targets and backends: what a route sends to, and what happens when that is not there.

Durations are milliseconds, everywhere in the IR; None means that nobody set one.
"""

from __future__ import annotations

from enum import StrEnum

from isthmus.ir.names import Identity, Source, TargetId, Value
from isthmus.ir.rules import BackendFilter


class Tls(StrEnum):
    """MESH: mutual, mesh identities. EXTERNAL: server authentication only. NONE: plaintext."""

    MESH = "mesh"
    EXTERNAL = "external"
    NONE = "none"


class Via(StrEnum):
    """Where the connection goes first: straight, this side's gateway, the other side's gateway."""

    DIRECT = "direct"
    LOCAL_GATEWAY = "local-gateway"
    REMOTE_GATEWAY = "remote-gateway"


class Balance(StrEnum):
    """Load balancing policies that every data plane can be told, or must say that it cannot."""

    EWMA = "ewma"
    LEAST_REQUEST = "least-request"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    RING_HASH = "ring-hash"
    MAGLEV = "maglev"


class HashPolicy(Value, frozen=True):
    """What a hashing balancer hashes: `kind` is header, cookie, query or source-ip."""

    kind: str
    name: str = ""
    terminal: bool = False
    ttl: int | None = None
    path: str = ""


class Breaking(Value, frozen=True):
    """Circuit breaking.

    Limits beyond which new work is refused at once. None = the proxy's own default.
    """

    connections: int | None = None
    pending: int | None = None
    requests: int | None = None
    retries: int | None = None


class Ejection(Value, frozen=True):
    """Outlier ejection (linkerd: failure accrual): after `failures` in a row an endpoint rests.

    `base` and `maximum` bound the rest in milliseconds, `jitter` is a ratio in thousandths.
    `share` is the most of the set, in percent, that may rest at once.
    """

    failures: int
    base: int = 1_000
    maximum: int = 60_000
    jitter: int = 500
    share: int = 100


class Queue(Value, frozen=True):
    """Requests that may wait for a ready endpoint, and how long until they fail fast."""

    capacity: int = 100
    failfast: int = 3_000


class Target(Value, frozen=True):
    """A set of endpoints to balance over (looked up by `id`), and how to talk to it.

    `peers` is who may answer: with mesh TLS an empty set means that nobody may (decision 16), never
    that anybody does. `authority` is the name a linkerd2-proxy resolves the endpoints by.

    `server_name` is asked for where it is not the id's own. `linkerd`: some who answer are behind a
    linkerd2-proxy. `foreign`: some have another trust domain, and are asked for by their own names.
    `native`: all who answer are behind our own sidecars. `remote`: some are in another cluster, so
    that one which says nothing must be found out soon.
    """

    id: TargetId
    peers: frozenset[Identity] = frozenset()
    trust_domain: str = ""
    tls: Tls = Tls.NONE
    via: Via = Via.DIRECT
    authority: str = ""
    connect_timeout: int = 1_000
    balance: Balance = Balance.EWMA
    hashing: tuple[HashPolicy, ...] = ()
    breaking: Breaking = Breaking()
    ejection: Ejection | None = None
    queue: Queue = Queue()
    http2: bool = False
    server_name: str = ""
    linkerd: bool = False
    native: bool = False
    foreign: bool = False
    remote: bool = False


class To(Value, frozen=True, tag="to"):
    """Send to a target; when it has no healthy endpoint, to the first of `failover` that has."""

    target: Target
    source: Source
    weight: int = 1
    failover: tuple[Target, ...] = ()
    filters: tuple[BackendFilter, ...] = ()


class OriginalDst(Value, frozen=True, tag="original-dst"):
    """Send where the client was going in the first place."""

    source: Source
    weight: int = 1
    filters: tuple[BackendFilter, ...] = ()


class Refuse(Value, frozen=True, tag="refuse"):
    """A backend that cannot be: it keeps its share and answers `status` (HTTP) with `message`."""

    status: int
    message: str
    source: Source
    weight: int = 1


Backend = To | OriginalDst | Refuse

"""Matches and filters of routes: the Gateway API's, which include Linkerd's and Consul's."""

from __future__ import annotations

from enum import StrEnum

from isthmus.ir.names import TargetId, Value


class Match(StrEnum):
    """How text is compared.

    REGEX is RE2 and must match the whole value (decision 26). PRESENT and ABSENT look at nothing
    but whether there is a value; all others need one, also when the answer is turned round.
    """

    EXACT = "exact"
    PREFIX = "prefix"
    REGEX = "regex"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    PRESENT = "present"
    ABSENT = "absent"


class PathMatch(Value, frozen=True):
    """EXACT, PREFIX (whole segments: `/v2` covers `/v2/x`, not `/v2x`) or REGEX.

    The path is compared without its query, after normalisation (`ir.paths`).
    """

    match: Match
    value: str
    ignore_case: bool = False


class ValueMatch(Value, frozen=True):
    """A header (name in lower case) or query parameter; `invert` turns the answer round."""

    name: str
    match: Match
    value: str = ""
    invert: bool = False
    ignore_case: bool = False


class HttpMatch(Value, frozen=True):
    """Everything that is set must hold. An empty one matches every request."""

    path: PathMatch | None = None
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()
    method: tuple[str, ...] = ()


class GrpcMatch(Value, frozen=True):
    """Service and method, "" for any; `regex` reads both as RE2."""

    service: str = ""
    method: str = ""
    regex: bool = False
    headers: tuple[ValueMatch, ...] = ()


class HeaderChange(Value, frozen=True, tag="header-change"):
    """Applied in the order set, add, remove (Gateway API). Names keep the writer's case."""

    on_response: bool = False
    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


class PathChange(Value, frozen=True):
    """Replaces the whole path, or the prefix that matched."""

    full: str | None = None
    prefix: str | None = None


class Redirect(Value, frozen=True, tag="redirect"):
    """Answers with a redirection; what is None is taken from the request."""

    status: int = 302
    scheme: str | None = None
    host: str | None = None
    path: PathChange | None = None
    port: int | None = None


class Rewrite(Value, frozen=True, tag="rewrite"):
    """Changes host and path on the way to the backend."""

    host: str | None = None
    path: PathChange | None = None


class Fail(Value, frozen=True, tag="fail"):
    """Answers at once, for a share of requests: `numerator` of `denominator`.

    `status` is an HTTP status, `grpc` a gRPC code used where the route speaks gRPC.
    """

    status: int
    grpc: int
    message: str
    numerator: int = 1
    denominator: int = 1


class Forbid(Value, frozen=True, tag="forbid"):
    """Refuses the connection (TLS and TCP routes) or the request (403, PERMISSION_DENIED)."""

    message: str = ""


class Mirror(Value, frozen=True, tag="mirror"):
    """Copies a share of requests to another target; answers to copies are dropped.

    `trust_domain` is the target's.
    """

    target: TargetId
    numerator: int = 1
    denominator: int = 1
    trust_domain: str = ""


RuleFilter = HeaderChange | Redirect | Rewrite | Fail | Forbid | Mirror
BackendFilter = HeaderChange | Redirect | Rewrite | Fail | Forbid


class Timeouts(Value, frozen=True):
    """Milliseconds; None = no limit.

    `request` spans all attempts, `attempt` bounds one answer's headers, `response` the time from
    the request's end to the response's, `idle` the silence in either direction.
    """

    request: int | None = None
    attempt: int | None = None
    response: int | None = None
    idle: int | None = None


class Retry(Value, frozen=True):
    """At most `limit` further attempts.

    `statuses` are inclusive ranges of HTTP codes, `grpc` code numbers.
    """

    limit: int
    statuses: tuple[tuple[int, int], ...] = ()
    grpc: tuple[int, ...] = ()
    connect_failure: bool = False
    attempt_timeout: int | None = None
    backoff_min: int = 25
    backoff_max: int = 250


class Budget(Value, frozen=True):
    """A retry budget.

    `ratio` (thousandths of requests) and `floor` per second, over `ttl` milliseconds.
    """

    ratio: int = 200
    floor: int = 10
    ttl: int = 10_000

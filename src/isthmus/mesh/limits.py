"""Timeouts and retries of routes: their own, or else those of their parent, never a mixture.

An annotation of the route comes before the field of the rule (Linkerd). A route that says anything
of its own about limits takes none of its parent's; the same holds for retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Ref
from isthmus.ir.rules import Retry, Timeouts
from isthmus.mesh.egress import EGRESS_NETWORKS
from isthmus.mesh.routes import SERVICE, key_of
from isthmus.mesh.tables import SERVICES
from isthmus.model import annotations as notes
from isthmus.model.annotations import Problem
from isthmus.model.duration import parse_duration
from isthmus.model.gateway.views import Retry as RetryRow
from isthmus.model.gateway.views import Timeouts as TimeoutsRow

_MILLISECOND: Final = 1_000_000
_LONGEST: Final = 100 * 365 * 86_400_000
"""Milliseconds of a limit; longer ones are as good as none, and do not fit every wire."""

_SLOWEST: Final = 3_600_000
_MOST: Final = 2**16 - 1
"""Milliseconds of the first pause, and attempts; as many as annotations may ask for."""

_BACKOFF: Final = Retry(1)
_NOTHING: Final = TimeoutsRow()


def _annotations(db: View, parent: Ref) -> Mapping[str, str]:
    row = (SERVICES if parent.kind == SERVICE else EGRESS_NETWORKS).get(db, key_of(parent))
    return row.metadata.annotations if row is not None else {}


# ------------------------------------------------------------------------------- of parents


@query
def parent_timeouts(db: View, parent: Ref) -> Timeouts:
    """The limits that a Service's or EgressNetwork's annotations set; none if not understood."""
    found = notes.timeouts(_annotations(db, parent))
    return Timeouts() if isinstance(found, Problem) else _limits(found)


@query
def parent_http_retry(db: View, parent: Ref) -> Retry | None:
    """The retry of requests that a parent's annotations ask for, if it is understood."""
    return _http_retry(_annotations(db, parent))


@query
def parent_grpc_retry(db: View, parent: Ref) -> Retry | None:
    """The retry of calls that a parent's annotations ask for, if it is understood."""
    return _grpc_retry(_annotations(db, parent))


# -------------------------------------------------------------------------------- of routes


def timeouts(
    db: View, said: Mapping[str, str], parent: Ref, rule: TimeoutsRow = _NOTHING
) -> Timeouts:
    """The limits of a rule, by its route's annotations, its own fields or its parent's annotations.

    A request limit of 0 is none at all, and keeps the parent's off.
    """
    found = notes.timeouts(said)
    own = notes.Timeouts() if isinstance(found, Problem) else found
    if own.request is None:
        own = own._replace(request=milliseconds(rule.request))
    attempt = milliseconds(rule.backend_request) or None
    inherited = own == notes.Timeouts()
    limits = parent_timeouts(db, parent) if inherited else _limits(own)
    return Timeouts(limits.request, attempt, limits.response, limits.idle)


def _limits(said: notes.Timeouts) -> Timeouts:
    request, response, idle = map(_bounded, said)
    return Timeouts(request, None, response, idle)


def _bounded(millis: int | None) -> int | None:
    """No limit at all for 0."""
    return min(millis, _LONGEST) if millis else None


def http_retry(
    db: View, said: Mapping[str, str], parent: Ref, rule: RetryRow | None
) -> Retry | None:
    """The retry of a rule of an HTTPRoute."""
    own = _http_retry(said) or _by_field(rule)
    return own if own is not None else parent_http_retry(db, parent)


def grpc_retry(db: View, said: Mapping[str, str], parent: Ref) -> Retry | None:
    """The retry of a rule of a GRPCRoute."""
    own = _grpc_retry(said)
    return own if own is not None else parent_grpc_retry(db, parent)


def _http_retry(said: Mapping[str, str]) -> Retry | None:
    found = notes.http_retry(said)
    if found is None or isinstance(found, Problem):
        return None
    return Retry(found.limit, found.statuses, attempt_timeout=_bounded(found.timeout))


def _grpc_retry(said: Mapping[str, str]) -> Retry | None:
    found = notes.grpc_retry(said)
    if found is None or isinstance(found, Problem):
        return None
    return Retry(found.limit, grpc=found.codes, attempt_timeout=_bounded(found.timeout))


def _by_field(rule: RetryRow | None) -> Retry | None:
    """The field `retry` (GEP-1731): connections that break are tried again whatever the codes."""
    if rule is None:
        return None
    least = min(milliseconds(rule.backoff) or _BACKOFF.backoff_min, _SLOWEST)
    return Retry(
        min(max(1, rule.attempts or 1), _MOST),
        tuple((code, code) for code in sorted(set(rule.codes)) if is_status(code)),
        connect_failure=True,
        backoff_min=least,
        backoff_max=max(_BACKOFF.backoff_max, 10 * least),
    )


def is_status(code: int) -> bool:
    """Whether a number may be a status of HTTP."""
    return 100 <= code <= 599


def milliseconds(text: str) -> int | None:
    """A duration of a rule, rounded up to milliseconds; None if there is none that can be read."""
    found = parse_duration(text) if text else None
    if found is None or found < 0:
        return None
    return min(-(-found // _MILLISECOND), _LONGEST)

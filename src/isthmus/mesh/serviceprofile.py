"""ServiceProfiles as what they mean: routes, retry budget, overrides. An invalid part is left out.

What is left out becomes a fault, for a condition on the object (decision 15); the rest is served.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from isthmus.engine import View, query
from isthmus.ir.names import Value
from isthmus.ir.profile import (
    All,
    Any,
    Condition,
    Method,
    Not,
    PathRegex,
    ProfileRoute,
    ResponseClass,
    Status,
)
from isthmus.ir.rules import Budget
from isthmus.mesh.policy_tables import SERVICE_PROFILES, SPLITS_BY_SERVICE, TRAFFIC_SPLITS
from isthmus.model import serviceprofile as written
from isthmus.model.duration import parse_duration
from isthmus.model.key import ObjectKey
from isthmus.model.quantity import parse_quantity
from isthmus.model.regex import regex_problems
from isthmus.model.serviceprofile import in_route

_DEEPEST: Final = 32
_UNIT: Final = 10_000
"""The wire weight of quantity 1."""

_LARGEST: Final = 2**32 - 1
_MILLISECOND: Final = 1_000_000


class Fault(Value, frozen=True):
    """A part of an object that was left out, and why."""

    path: str
    why: str


class Share(Value, frozen=True):
    """Part of the traffic for another authority; it may lack a port."""

    authority: str
    weight: int


class Meaning(Value, frozen=True):
    """What a ServiceProfile says."""

    routes: tuple[ProfileRoute, ...] = ()
    budget: Budget = Budget()
    shares: tuple[Share, ...] = ()
    faults: tuple[Fault, ...] = ()


class _Bad(Exception):
    """A part that means nothing; never leaves this module."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.fault = Fault(path, why)


@query
def meaning(db: View, profile: ObjectKey) -> Meaning | None:
    """What a ServiceProfile says, None if there is none."""
    row = SERVICE_PROFILES.get(db, profile)
    if row is None:
        return None
    faults: list[Fault] = []
    spec = row.profile.spec
    strange = {in_route(path) for path in row.unknown}
    faults += [Fault(path, "unknown field") for path in row.unknown]
    routes = [
        _route(each, f"spec.routes[{at}]", faults)
        for at, each in enumerate(spec.routes)
        if at not in strange  # what it was to say is not known: nobody wrote the rest of it alone
    ]
    shares = [
        _share(each, f"spec.dstOverrides[{at}]", faults)
        for at, each in enumerate(spec.dst_overrides)
    ]
    budget = _budget(spec.retry_budget, "spec.retryBudget", faults)
    return Meaning(
        tuple(route for route in routes if route is not None),
        budget,
        tuple(share for share in shares if share is not None),
        tuple(faults),
    )


# -------------------------------------------------------------------------------- routes


def _route(each: written.ProfileRoute, path: str, faults: list[Fault]) -> ProfileRoute | None:
    """The route, or a fault: half of a route would treat requests as nobody wrote."""
    try:
        condition = _request(each.condition, f"{path}.condition")
        classes = tuple(
            _response_class(one, f"{path}.responseClasses[{at}]")
            for at, one in enumerate(each.response_classes)
        )
    except _Bad as bad:
        faults.append(bad.fault)
        return None
    timeout = _timeout(each.timeout, f"{path}.timeout", faults)
    return ProfileRoute(each.name, condition, classes, each.is_retryable, timeout)


def _timeout(text: str, path: str, faults: list[Fault]) -> int | None:
    """Milliseconds, rounded up; None for none. A bad one is left out alone, the route stays."""
    span = parse_duration(text) if text else 0
    if span is None or span < 0:
        faults.append(Fault(path, f"{text[:64]!r} is no duration; there is no limit"))
        return None
    return math.ceil(span / _MILLISECOND) or None


def _response_class(each: written.ResponseClass, path: str) -> ResponseClass:
    return ResponseClass(_response(each.condition, f"{path}.condition"), each.is_failure)


def _request(said: written.RequestCondition, path: str, depth: int = 0) -> Condition:
    """A request condition; several fields are `all` of them: all, any, method, not, pathRegex."""
    _check_depth(path, depth)
    parts: list[Condition] = []
    if said.all is not None:
        parts.append(All(_requests(said.all, f"{path}.all", depth)))
    if said.any is not None:
        parts.append(Any(_requests(said.any, f"{path}.any", depth)))
    if said.method:
        parts.append(Method(said.method.upper()))
    if said.negated is not None:
        parts.append(Not(_request(said.negated, f"{path}.not", depth + 1)))
    if said.path_regex:
        parts.append(_path(said.path_regex, f"{path}.pathRegex"))
    return _joined(parts, path)


def _requests(
    said: Iterable[written.RequestCondition], path: str, depth: int
) -> tuple[Condition, ...]:
    return tuple(_request(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(said))


def _response(said: written.ResponseCondition, path: str, depth: int = 0) -> Condition:
    """A response condition; several fields are `all` of them: all, any, status, not."""
    _check_depth(path, depth)
    parts: list[Condition] = []
    if said.all is not None:
        parts.append(All(_responses(said.all, f"{path}.all", depth)))
    if said.any is not None:
        parts.append(Any(_responses(said.any, f"{path}.any", depth)))
    if said.status is not None:
        parts.append(_status(said.status, f"{path}.status"))
    if said.negated is not None:
        parts.append(Not(_response(said.negated, f"{path}.not", depth + 1)))
    return _joined(parts, path)


def _responses(
    said: Iterable[written.ResponseCondition], path: str, depth: int
) -> tuple[Condition, ...]:
    return tuple(_response(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(said))


def _check_depth(path: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise _Bad(path[:256], f"nested more than {_DEEPEST} deep")


def _joined(parts: list[Condition], path: str) -> Condition:
    if not parts:
        raise _Bad(path, "a condition must say something")
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _path(regex: str, path: str) -> PathRegex:
    for problem in regex_problems(regex):
        raise _Bad(path, problem)
    return PathRegex(regex)


def _status(said: written.StatusRange, path: str) -> Status:
    for bound in filter(None, (said.min, said.max)):
        if not 100 <= bound <= 599:
            raise _Bad(path, f"{bound} is no HTTP status")
    if said.min and said.max and said.min > said.max:
        raise _Bad(path, "min is more than max")
    return Status(said.min, said.max)


# --------------------------------------------------------------------- budget and shares


def _budget(said: written.RetryBudget | None, path: str, faults: list[Fault]) -> Budget:
    """As written, the default where nothing is, or nothing that makes sense."""
    if said is None:
        return Budget()
    ttl = parse_duration(said.ttl)
    if ttl is None or ttl <= 0:
        faults.append(Fault(f"{path}.ttl", f"{said.ttl[:64]!r} is no duration"))
    elif not 0 <= said.retry_ratio <= 1000:
        faults.append(Fault(f"{path}.retryRatio", "must be between 0 and 1000"))
    elif not 0 <= said.min_retries_per_second <= _LARGEST:
        faults.append(Fault(f"{path}.minRetriesPerSecond", "must not be negative"))
    else:
        ratio = round(said.retry_ratio * 1000)
        return Budget(ratio, said.min_retries_per_second, math.ceil(ttl / _MILLISECOND))
    return Budget()


def _share(said: written.WeightedDestination, path: str, faults: list[Fault]) -> Share | None:
    quantity = parse_quantity(str(said.weight))
    weight = None if quantity is None else _weight(quantity)
    if not said.authority:
        faults.append(Fault(f"{path}.authority", "must name where to"))
    elif weight is None:
        faults.append(Fault(f"{path}.weight", f"{str(said.weight)[:64]!r} is no weight"))
    else:
        return Share(said.authority, weight)
    return None


def _weight(quantity: Fraction) -> int | None:
    """Ten-thousandths, made of whole thousandths; None if it does not fit."""
    weight = math.ceil(quantity * 1000) * _UNIT // 1000
    return weight if 0 <= weight <= _LARGEST else None


@query
def split_shares(db: View, service: ObjectKey, domain: str) -> tuple[Share, ...]:
    """What a TrafficSplit makes of a Service's traffic; of several splits the oldest counts."""
    found = ((key, TRAFFIC_SPLITS.get(db, key)) for key in SPLITS_BY_SERVICE.get(db, service))
    splits = [(row.metadata.creation_timestamp, key.name, row) for key, row in found if row]
    if not splits:
        return ()
    backends = min(splits, key=lambda split: split[:2])[2].spec.backends
    unit = _UNIT if all(0 <= each.weight * _UNIT <= _LARGEST for each in backends) else 1
    return tuple(
        Share(f"{each.service}.{service.namespace}.svc.{domain}.", each.weight * unit)
        for each in backends
        if 0 <= each.weight * unit <= _LARGEST and each.service
    )

"""linkerd.io ServiceProfile: routes, retries and overrides of one Service, by its full name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import field

from isthmus.errors import Cause
from isthmus.model.annotations import Problem, port_list
from isthmus.model.columns import AGE
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, mapping, number, strings, text
from isthmus.model.duration import parse_duration
from isthmus.model.faults import invalid, required
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import CountedCondition, CountedMeta, View
from isthmus.model.quantity import parse_quantity
from isthmus.model.regex import regex_problems
from isthmus.model.rules import broken
from isthmus.model.schema import Schema, Type
from isthmus.model.shapes import (
    BOOLEAN,
    CONDITIONS,
    INT32,
    NUMBER,
    STRING,
    about,
    listed,
    resource,
    structure,
)
from isthmus.model.walk import unknown_fields

GROUP: Final = "linkerd.io"
STORED: Final = "v1alpha2"


class RequestCondition(View, frozen=True):
    """What is not None must hold; a condition of nothing makes the whole profile invalid."""

    all: tuple[RequestCondition, ...] | None = None
    any: tuple[RequestCondition, ...] | None = None
    negated: RequestCondition | None = field(default=None, name="not")
    method: str = ""
    path_regex: str = ""


class StatusRange(View, frozen=True):
    """Inclusive bounds; 0 = no bound."""

    min: int = 0
    max: int = 0


class ResponseCondition(View, frozen=True):
    """As RequestCondition, of responses."""

    all: tuple[ResponseCondition, ...] | None = None
    any: tuple[ResponseCondition, ...] | None = None
    negated: ResponseCondition | None = field(default=None, name="not")
    status: StatusRange | None = None


class ResponseClass(View, frozen=True):
    """Whether such responses are failures."""

    condition: ResponseCondition = ResponseCondition()
    is_failure: bool = False


class ProfileRoute(View, frozen=True):
    """One route; `timeout` is a Go duration as text."""

    name: str = ""
    condition: RequestCondition = RequestCondition()
    response_classes: tuple[ResponseClass, ...] = ()
    is_retryable: bool = False
    timeout: str = ""


class RetryBudget(View, frozen=True):
    """`ttl` is a Go duration as text."""

    retry_ratio: float = 0.0
    min_retries_per_second: int = 0
    ttl: str = ""


class WeightedDestination(View, frozen=True):
    """`weight` is a quantity."""

    authority: str = ""
    weight: int | float | str = 0


class ServiceProfileSpec(View, frozen=True):
    """Routes, retry budget, overrides, opaque ports."""

    routes: tuple[ProfileRoute, ...] = ()
    retry_budget: RetryBudget | None = None
    dst_overrides: tuple[WeightedDestination, ...] = ()
    opaque_ports: tuple[str, ...] = ()


class ServiceProfileStatus(View, frozen=True):
    """What became of it."""

    conditions: tuple[CountedCondition, ...] = ()


class ServiceProfile(View, frozen=True):
    """linkerd.io ServiceProfile."""

    metadata: CountedMeta = CountedMeta()
    spec: ServiceProfileSpec = ServiceProfileSpec()
    status: ServiceProfileStatus = ServiceProfileStatus()


# --------------------------------------------------------------------------------------- schemas


def _request_fields() -> Mapping[str, Schema]:
    return _REQUEST_FIELDS


def _response_fields() -> Mapping[str, Schema]:
    return _RESPONSE_FIELDS


# Both hold themselves: only a named schema can be written down as OpenAPI.
_REQUEST: Final = Schema(
    type=Type.OBJECT, properties=_request_fields, ref="io.linkerd.RequestMatch"
)
_RESPONSE: Final = Schema(
    type=Type.OBJECT, properties=_response_fields, ref="io.linkerd.ResponseMatch"
)
_REQUEST_FIELDS: Final[Mapping[str, Schema]] = {
    "all": about(listed(_REQUEST), "All of these."),
    "any": about(listed(_REQUEST), "One of these."),
    "not": about(_REQUEST, "Not this."),
    "method": about(STRING, "The method."),
    "pathRegex": about(STRING, "A regular expression (RE2) for the whole path."),
}
_RANGE: Final = structure(
    {"min": about(INT32, "Lowest status."), "max": about(INT32, "Highest status.")}
)
_RESPONSE_FIELDS: Final[Mapping[str, Schema]] = {
    "all": about(listed(_RESPONSE), "All of these."),
    "any": about(listed(_RESPONSE), "One of these."),
    "not": about(_RESPONSE, "Not this."),
    "status": about(_RANGE, "The status."),
}
_CLASS: Final = structure(
    {
        "condition": about(_RESPONSE, "Which responses."),
        "isFailure": about(BOOLEAN, "Whether they count as failures."),
    },
    required=("condition",),
)
_ROUTE: Final = structure(
    {
        "name": about(STRING, "Name, which metrics carry."),
        "condition": about(_REQUEST, "Which requests."),
        "responseClasses": about(listed(_CLASS), "Which responses are failures."),
        "isRetryable": about(BOOLEAN, "Whether failures may be tried again."),
        "timeout": about(STRING, "How long a request may take, such as 300ms."),
    },
    required=("condition", "name"),
)
_BUDGET: Final = structure(
    {
        "minRetriesPerSecond": about(INT32, "Retries that are always allowed."),
        "retryRatio": about(NUMBER, "Retries for each request, on top."),
        "ttl": about(STRING, "Over which time requests are counted, such as 10s."),
    },
    required=("minRetriesPerSecond", "retryRatio", "ttl"),
)
_OVERRIDE: Final = structure(
    {
        "authority": about(STRING, "Where to, as host:port."),
        "weight": about(Schema(type=Type.QUANTITY), "Its share, against the others'."),
    }
)


def _schema(version: str, required_: tuple[str, ...]) -> Schema:
    spec = structure(
        {
            "routes": about(listed(_ROUTE), "Routes; the first that fits counts."),
            "retryBudget": about(_BUDGET, "How many retries there may be."),
            "dstOverrides": about(listed(_OVERRIDE), "Other destinations, by weight."),
            "opaquePorts": about(listed(STRING), "Ports whose protocol is not looked at."),
        },
        required=required_,
    )
    status = about(structure({"conditions": about(CONDITIONS, "Accepted.")}), "What became of it.")
    whole = resource(
        about(spec, "Routes, retries, overrides."),
        status=status,
        required=(),
        ref=f"io.linkerd.{version}.ServiceProfile",
    )
    return about(whole, "Tells the mesh about the routes of one Service.")


_SCHEMAS: Final = {
    "v1alpha2": _schema("v1alpha2", ()),
    "v1alpha1": _schema("v1alpha1", ("routes",)),
}

# ----------------------------------------------------------------------------------------- rules

_REQUEST_NAMES: Final = ("all", "any", "not", "method", "pathRegex")
_RESPONSE_NAMES: Final = ("all", "any", "not", "status")


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    """What makes it no ServiceProfile, beside wrong types: a route that nobody could speak of."""
    for index, route in enumerate(items(document, "spec.routes")):
        if not text(route, "name"):
            yield required(f"spec.routes[{index}].name")


def _doubts(document: Document) -> Iterator[Cause]:
    """What means nothing. It is stored, left out alone, and told: as a warning and a condition."""
    for index, route in enumerate(items(document, "spec.routes")):
        path = f"spec.routes[{index}]"
        condition = get(route, "condition")
        yield from _condition_faults(condition, f"{path}.condition", _REQUEST_NAMES)
        for at, each in enumerate(items(route, "responseClasses")):
            where = f"{path}.responseClasses[{at}].condition"
            yield from _condition_faults(get(each, "condition"), where, _RESPONSE_NAMES)
    yield from _budget_faults(mapping(document, "spec.retryBudget"))
    yield from _override_faults(items(document, "spec.dstOverrides"))
    for index, port in enumerate(strings(document, "spec.opaquePorts")):
        if isinstance(port_list(port), Problem) or not port.strip():
            yield invalid(f"spec.opaquePorts[{index}]", port, "must be a port or a range of ports")


def _condition_faults(condition: Any, path: str, names: tuple[str, ...]) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    """Faults of a condition and of all that it is made of. As deep as a document can be."""
    given = {name: get(condition, name) for name in names}
    if all(value in (None, "") for value in given.values()):
        yield broken(path, condition, f"must have one of {', '.join(names)}")
    for name in ("all", "any"):
        listed_ = given[name]
        for index, each in enumerate(listed_ if isinstance(listed_, list) else ()):
            yield from _condition_faults(each, f"{path}.{name}[{index}]", names)
    if given["not"] is not None:
        yield from _condition_faults(given["not"], f"{path}.not", names)
    regex = given.get("pathRegex")
    for problem in regex_problems(regex) if isinstance(regex, str) else ():
        yield invalid(f"{path}.pathRegex", regex, problem)
    yield from _status_faults(given.get("status"), f"{path}.status")


def _status_faults(status: Any, path: str) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    low, high = number(status, "min"), number(status, "max")
    for name, bound in (("min", low), ("max", high)):
        if bound and not 100 <= bound <= 599:
            yield invalid(f"{path}.{name}", bound, "must be between 100 and 599, inclusive")
    if low and high and low > high:
        yield invalid(path, {"min": low, "max": high}, "min must be no more than max")


def _budget_faults(budget: Mapping[str, Any]) -> Iterator[Cause]:
    ttl, ratio, rate = (budget.get(n) for n in ("ttl", "retryRatio", "minRetriesPerSecond"))
    if isinstance(ttl, str) and not _positive(ttl):
        yield invalid("spec.retryBudget.ttl", ttl, "must be a duration such as 10s")
    if isinstance(ratio, int | float) and not 0 <= ratio <= 1000:
        yield invalid("spec.retryBudget.retryRatio", ratio, "must be between 0 and 1000, inclusive")
    if isinstance(rate, int) and rate < 0:
        says = "must be greater than or equal to 0"
        yield invalid("spec.retryBudget.minRetriesPerSecond", rate, says)


def _positive(said: str) -> bool:
    span = parse_duration(said)
    return span is not None and span > 0


def _override_faults(overrides: list[dict[str, Any]]) -> Iterator[Cause]:
    for index, each in enumerate(overrides):
        path, weight = f"spec.dstOverrides[{index}]", get(each, "weight")
        if not text(each, "authority"):
            yield required(f"{path}.authority")
        value = parse_quantity(str(weight)) if weight is not None else None
        if weight is None:
            yield required(f"{path}.weight")
        elif value is None or not 0 <= value <= 429496:
            yield invalid(f"{path}.weight", weight, "must be a quantity from 0 to 429496")


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    for path in unknown_parts(document):
        yield f"{path}: unknown field{_ROUTE_OUT if in_route(path) is not None else ''}"
    for cause in _doubts(document):
        left_out = in_route(cause.path) is not None
        yield f"{cause.path}: {cause.message}{_ROUTE_OUT if left_out else ''}"
    name = text(document, "metadata.name")
    if len(name.split(".")) < 4 or name.split(".")[2] != "svc":
        yield "metadata.name: should be SERVICE.NAMESPACE.svc.DOMAIN; nothing reads it otherwise"
    for index, route in enumerate(items(document, "spec.routes")):
        timeout = text(route, "timeout")
        if timeout and parse_duration(timeout) is None:
            path = f"spec.routes[{index}].timeout"
            yield f"{path}: {timeout[:64]!r} is no duration such as 300ms; there is no limit"


_ROUTE_OUT: Final = "; the route is left out"


def unknown_parts(document: Document) -> list[str]:
    """Paths in the spec of a document in the stored version that no ServiceProfile has."""
    try:
        found = unknown_fields(_SCHEMAS[STORED], document)
    except RecursionError:  # conditions can be nested without end; that is told by itself
        return []
    return [path for path in found if path.startswith("spec.")]


def in_route(path: str) -> int | None:
    """Which route a path leads into, None for none."""
    found = _IN_ROUTE.match(path)
    return int(found[1]) if found else None


_IN_ROUTE: Final = re.compile(r"spec\.routes\[([0-9]{1,9})\]\.")


class WrittenProfile(msgspec.Struct, frozen=True):
    """A ServiceProfile as it is stored, and the paths of what it has and no ServiceProfile has."""

    profile: ServiceProfile
    unknown: tuple[str, ...] = ()


_VIEW: Final = msgspec.json.Decoder(ServiceProfile)


def written_profile(stored: bytes) -> WrittenProfile:
    """Stored bytes as facts. Raises msgspec.MsgspecError for what is no ServiceProfile."""
    profile = _VIEW.decode(stored)
    return WrittenProfile(profile, tuple(unknown_parts(msgspec.json.decode(stored))))


SERVICE_PROFILE: Final = Kind(
    group=GROUP,
    name="ServiceProfile",
    plural="serviceprofiles",
    singular="serviceprofile",
    short_names=("sp",),
    versions=tuple(Version(name, each, columns=(AGE,)) for name, each in _SCHEMAS.items()),
    stored=STORED,
    keeps_unknown=True,
    view=ServiceProfile,
    check=(_check,),
    warn=(_warn,),
    convert=by_schema(_SCHEMAS),
)

KINDS: Final[tuple[Kind, ...]] = (SERVICE_PROFILE,)

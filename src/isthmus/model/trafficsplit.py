"""split.smi-spec.io TrafficSplit: traffic of one Service, shared out among others by weight.

v1alpha1 writes weights as quantities (`500m`); later versions as whole numbers. They are kept as
whole numbers: quantities with fractions are multiplied by 1000, all of a split together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, value_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, text
from isthmus.model.faults import duplicate, invalid
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.names import subdomain_problems
from isthmus.model.quantity import parse_quantity
from isthmus.model.schema import Schema, Type
from isthmus.model.shapes import (
    CONDITIONS,
    STRING,
    about,
    choice,
    listed,
    resource,
    structure,
    whole,
)

GROUP: Final = "split.smi-spec.io"

_MOST: Final = 2**31 - 1


class SplitBackend(View, frozen=True):
    """A Service of the split's namespace and its weight against the others'."""

    service: str = ""
    weight: int = 0


class TrafficSplitSpec(View, frozen=True):
    """`service` is the Service whose clients are shared out."""

    service: str = ""
    backends: tuple[SplitBackend, ...] = ()


class TrafficSplit(View, frozen=True):
    """split.smi-spec.io TrafficSplit."""

    metadata: Meta = Meta()
    spec: TrafficSplitSpec = TrafficSplitSpec()


_MATCH: Final = structure(
    {
        "apiGroup": about(STRING, "API group of the route group."),
        "kind": about(choice("HTTPRouteGroup"), "Kind of the route group."),
        "name": about(STRING, "Name of the route group."),
    },
    required=("kind", "name"),
)
_QUANTITY: Final = Schema(type=Type.QUANTITY)
_STATUS: Final = about(
    structure({"conditions": about(CONDITIONS, "Accepted.")}), "What the mesh made of it."
)


def _schema(version: str, weight: Schema, *, matches: bool) -> Schema:
    backend = structure(
        {
            "service": about(STRING, "Name of a Service."),
            "weight": about(weight, "Its share, against the others'."),
        },
        required=("service", "weight"),
    )
    groups = {"matches": about(listed(_MATCH), "HTTPRouteGroups; Isthmus has none.")}
    spec = structure(
        {
            "service": about(STRING, "The Service whose clients are shared out."),
            "backends": about(listed(backend), "Where they go."),
            **(groups if matches else {}),
        },
        required=("backends", "service"),
    )
    described = resource(
        about(spec, "Service and backends."),
        status=_STATUS,
        ref=f"io.smi-spec.split.{version}.TrafficSplit",
    )
    return about(described, "Shares the traffic of a Service out among others by weight.")


_WHOLE: Final = whole(minimum=0)
_SCHEMAS: Final = {
    "v1alpha4": _schema("v1alpha4", _WHOLE, matches=True),
    "v1alpha3": _schema("v1alpha3", _WHOLE, matches=True),
    "v1alpha2": _schema("v1alpha2", _WHOLE, matches=False),
    "v1alpha1": _schema("v1alpha1", _QUANTITY, matches=False),
}


def _reshape(document: Document, present: str, wanted: str) -> None:
    """Quantities become whole numbers, and those become quantities."""
    backends = items(document, "spec.backends")
    if present == "v1alpha1" and wanted != present:
        weights = [parse_quantity(str(each.get("weight", ""))) for each in backends]
        exact = all(weight is None or weight.denominator == 1 for weight in weights)
        for each, weight in zip(backends, weights, strict=True):
            if weight is not None:
                each["weight"] = int(weight * (1 if exact else 1000))
    elif wanted == "v1alpha1" and wanted != present:
        for each in backends:
            each["weight"] = str(each.get("weight", 0))


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    yield from _service_faults(get(document, "spec.service"), "spec.service")
    seen: set[str] = set()
    for index, each in enumerate(items(document, "spec.backends")):
        path, service, weight = f"spec.backends[{index}]", text(each, "service"), each.get("weight")
        yield from _service_faults(each.get("service"), f"{path}.service")
        if service in seen:
            yield duplicate(f"{path}.service", service)
        seen.add(service)
        if isinstance(weight, int) and not 0 <= weight <= _MOST:
            yield invalid(f"{path}.weight", weight, f"must be between 0 and {_MOST}, inclusive")


def _service_faults(name: Any, path: str) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    if isinstance(name, str):
        for problem in subdomain_problems(name):
            yield invalid(path, name, problem)


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    backends = items(document, "spec.backends")
    if get(document, "spec.matches"):
        yield "spec.matches: HTTPRouteGroups are not known here; all requests are shared out"
    for name in [text(document, "spec.service"), *(text(each, "service") for each in backends)]:
        if "." in name:
            yield f"spec: {name[:64]!r} must be a Service of this namespace, by its name alone"
    if not any(each.get("weight") for each in backends):
        yield "spec.backends: no weight is above 0, so that the split has no effect"


TRAFFIC_SPLIT: Final = Kind(
    group=GROUP,
    name="TrafficSplit",
    plural="trafficsplits",
    singular="trafficsplit",
    short_names=("ts",),
    versions=tuple(
        Version(name, each, columns=(value_column("Service", "spec.service"), AGE))
        for name, each in _SCHEMAS.items()
    ),
    stored="v1alpha4",
    view=TrafficSplit,
    check=(_check,),
    warn=(_warn,),
    convert=by_schema(_SCHEMAS, _reshape),
)

KINDS: Final[tuple[Kind, ...]] = (TRAFFIC_SPLIT,)

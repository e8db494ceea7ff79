"""HTTPLocalRateLimitPolicy: how many requests per second each proxy of a Server lets in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.columns import value_column
from isthmus.model.document import get, items, mapping
from isthmus.model.faults import invalid
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.policy.parts import CATEGORIES, GROUP, policy_ref
from isthmus.model.references import GROUP as REF_GROUP
from isthmus.model.references import KIND_NAME, NAME, Ref, local_reference, reference
from isthmus.model.rules import is_kind, shown_kind
from isthmus.model.schema import Schema
from isthmus.model.shapes import CONDITIONS, INTEGER, about, listed, resource, structure

_MOST: Final = 2**32 - 1
"""Proxies count in 32 bits."""


class Rate(View, frozen=True):
    """Requests per second."""

    requests_per_second: int = 0


class Override(View, frozen=True):
    """An allowance that these ServiceAccounts share."""

    requests_per_second: int = 0
    client_refs: tuple[Ref, ...] = ()


class RateLimitSpec(View, frozen=True):
    """`total` for all clients together, `identity` for each, `overrides` before `identity`."""

    target_ref: Ref = Ref()
    total: Rate | None = None
    identity: Rate | None = None
    overrides: tuple[Override, ...] = ()


class HttpLocalRateLimitPolicy(View, frozen=True):
    """policy.linkerd.io HTTPLocalRateLimitPolicy."""

    metadata: Meta = Meta()
    spec: RateLimitSpec = RateLimitSpec()


def _per_second() -> Schema:
    return about(INTEGER, "Requests per second, at least 1.")


_RATE: Final = structure({"requestsPerSecond": _per_second()}, required=("requestsPerSecond",))
_OVERRIDE: Final = structure(
    {
        "requestsPerSecond": _per_second(),
        "clientRefs": about(
            listed(reference("A ServiceAccount.")), "The clients that share this allowance."
        ),
    },
    required=("clientRefs", "requestsPerSecond"),
)
_SPEC: Final = structure(
    {
        "targetRef": local_reference("The Server whose requests are counted."),
        "total": about(_RATE, "For all clients together."),
        "identity": about(_RATE, "For each client identity; those without one share."),
        "overrides": about(listed(_OVERRIDE), "For particular clients, instead of `identity`."),
    },
    required=("targetRef",),
)
_TARGET: Final = structure(
    {
        "group": about(REF_GROUP, "API group of the target.", default=GROUP),
        "kind": about(KIND_NAME, "Kind of the target.", default="Server"),
        "name": NAME,
    },
    required=("name",),
)
_STATUS: Final = structure(
    {
        "conditions": about(CONDITIONS, "Accepted: whether this policy is the one in force."),
        "targetRef": about(_TARGET, "The Server that the conditions speak of."),
    },
    required=("targetRef",),
)


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    spec = mapping(document, "spec")
    target = mapping(spec, "targetRef")
    if not is_kind(target, GROUP, "Server"):
        yield invalid("spec.targetRef.kind", shown_kind(target), "must be a Server")
    total = get(spec, "total.requestsPerSecond")
    yield from _rate_faults(total, None, "spec.total")
    yield from _rate_faults(get(spec, "identity.requestsPerSecond"), total, "spec.identity")
    for index, each in enumerate(items(spec, "overrides")):
        path = f"spec.overrides[{index}]"
        yield from _rate_faults(each.get("requestsPerSecond"), total, path)
        yield from _client_faults(each, path)


def _rate_faults(rate: Any, total: Any, path: str) -> Iterator[Cause]:  # noqa: ANN401 - JSON
    where = f"{path}.requestsPerSecond"
    if not isinstance(rate, int):
        return
    if not 1 <= rate <= _MOST:
        yield invalid(where, rate, f"must be between 1 and {_MOST}, inclusive")
    if isinstance(total, int) and rate > total:
        yield invalid(where, rate, f"must be no more than the total, {total}")


def _client_faults(override: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, each in enumerate(items(override, "clientRefs")):
        if not is_kind(each, "", "ServiceAccount"):
            where = f"{path}.clientRefs[{index}].kind"
            yield invalid(where, shown_kind(each), "must be a ServiceAccount")


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    spec = mapping(document, "spec")
    if not any(spec.get(name) for name in ("total", "identity", "overrides")):
        yield "spec: names no rate, so nothing is limited"


HTTP_LOCAL_RATE_LIMIT_POLICY: Final = Kind(
    group=GROUP,
    name="HTTPLocalRateLimitPolicy",
    plural="httplocalratelimitpolicies",
    singular="httplocalratelimitpolicy",
    categories=CATEGORIES,
    versions=(
        Version(
            "v1alpha1",
            about(
                resource(
                    about(_SPEC, "The Server and its rates."),
                    status=about(_STATUS, "What the mesh made of this object."),
                    ref=policy_ref("v1alpha1", "HTTPLocalRateLimitPolicy"),
                ),
                "Limits the requests that each proxy of a Server lets in.",
            ),
            columns=(
                value_column("Target_kind", "spec.targetRef.kind"),
                value_column("Target_name", "spec.targetRef.name"),
                value_column("Total_RPS", "spec.total.requestsPerSecond", kind="integer"),
                value_column("Identity_RPS", "spec.identity.requestsPerSecond", kind="integer"),
            ),
        ),
    ),
    stored="v1alpha1",
    view=HttpLocalRateLimitPolicy,
    check=(_check,),
    warn=(_warn,),
)

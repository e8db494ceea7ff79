"""multicluster.linkerd.io Link: another cluster, how to reach it, and which services it lends.

A selector that is absent or empty selects nothing here, unlike anywhere else in Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from isthmus.errors import Cause
from isthmus.model.annotations import Problem, staleness
from isthmus.model.annotations.keys import CREATE_NAMESPACES, HEADLESS_SERVICES
from isthmus.model.columns import AGE, WIDE, condition_column, text_column
from isthmus.model.conversion import by_schema
from isthmus.model.document import get, items, mapping, text, texts
from isthmus.model.duration import parse_duration
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import (
    Condition,
    CountedCondition,
    CountedMeta,
    LabelSelector,
    Meta,
    View,
)
from isthmus.model.schema import Schema
from isthmus.model.selectors import is_empty, selector_faults
from isthmus.model.shapes import (
    CONDITION,
    LABEL_SELECTOR,
    STRING,
    about,
    listed,
    resource,
    structure,
)

GROUP: Final = "multicluster.linkerd.io"
SELECTORS: Final = ("selector", "remoteDiscoverySelector", "federatedServiceSelector")


class ProbeSpec(View, frozen=True):
    """How the gateway is asked whether it lives; text as written (`seconds` reads it)."""

    path: str = "/ready"
    port: str = "4191"
    period: str = "3s"
    timeout: str = "30s"
    failure_threshold: str = "3"


class LinkSpec(View, frozen=True):
    """`gateway_address` is a comma list, "" for a link without gateway. `gateway_port` is text."""

    target_cluster_name: str = ""
    target_cluster_domain: str = ""
    target_cluster_linkerd_namespace: str = ""
    cluster_credentials_secret: str = ""
    gateway_address: str = ""
    gateway_port: str = ""
    gateway_identity: str = ""
    probe_spec: ProbeSpec = ProbeSpec()
    selector: LabelSelector | None = None
    remote_discovery_selector: LabelSelector | None = None
    federated_service_selector: LabelSelector | None = None
    excluded_annotations: tuple[str, ...] = ()
    excluded_labels: tuple[str, ...] = ()


class Link(View, frozen=True):
    """multicluster.linkerd.io Link. Its status is a report and not part of the view."""

    metadata: Meta = Meta()
    spec: LinkSpec = LinkSpec()


class ServiceRef(View, frozen=True):
    """A Service that a report is about."""

    group: str = ""
    kind: str = "Service"
    name: str = ""
    namespace: str = ""


class MirroredCondition(Condition, frozen=True):
    """What became of a Service; `local_ref` is what stands for it here, None if nothing does."""

    local_ref: ServiceRef | None = None


class Report(View, frozen=True):
    """What became of one Service of the other cluster: exactly one condition, Mirrored."""

    controller_name: str = ""
    remote_ref: ServiceRef = ServiceRef()
    conditions: tuple[MirroredCondition, ...] = ()


class LinkStatus(View, frozen=True):
    """The status of a Link. Lists are None where nobody wrote them yet."""

    mirror_services: tuple[Report, ...] | None = None
    federated_services: tuple[Report, ...] | None = None
    conditions: tuple[CountedCondition, ...] = ()


class ReportedLink(View, frozen=True):
    """A Link as what it says of itself, apart from what it asks for: reports change often."""

    metadata: CountedMeta = CountedMeta()
    status: LinkStatus = LinkStatus()


def seconds(said: str) -> float | None:
    """Seconds of a period: a Go duration, or a bare number as old Links have; else None."""
    if re.fullmatch(r"[0-9]{1,9}", said):
        return float(said)
    span = parse_duration(said)
    return span / 1e9 if span is not None and span >= 0 else None


# --------------------------------------------------------------------------------------- schemas

_PROBE: Final = structure(
    {
        "path": about(STRING, "Path that is asked for."),
        "port": about(STRING, "Port that is asked."),
        "period": about(STRING, "Time between two probes, such as 3s."),
        "timeout": about(STRING, "How long an answer may take; 30s if left out."),
        "failureThreshold": about(STRING, "Failures in a row that count as dead; 3 if left out."),
    }
)
_BASE: Final[Mapping[str, Schema]] = {
    "targetClusterName": about(STRING, "The other cluster's name, the suffix of its services."),
    "targetClusterDomain": about(STRING, "Its DNS domain, such as cluster.local."),
    "targetClusterLinkerdNamespace": about(STRING, "Namespace of its control plane."),
    "clusterCredentialsSecret": about(STRING, "Secret here that holds the kubeconfig."),
    "gatewayAddress": about(STRING, "Its gateway's addresses or names, by commas; none if empty."),
    "gatewayPort": about(STRING, "Its gateway's port."),
    "gatewayIdentity": about(STRING, "Its gateway's mesh identity."),
    "probeSpec": about(_PROBE, "How the gateway is asked whether it lives."),
    "selector": about(LABEL_SELECTOR, "Services to mirror through the gateway."),
    "remoteDiscoverySelector": about(LABEL_SELECTOR, "Services to mirror endpoint by endpoint."),
}
_FEDERATED: Final[Mapping[str, Schema]] = {
    "federatedServiceSelector": about(LABEL_SELECTOR, "Services that join federated services.")
}
_EXCLUDED: Final[Mapping[str, Schema]] = {
    "excludedAnnotations": about(listed(STRING), "Annotations not to copy: keys or prefix/*."),
    "excludedLabels": about(listed(STRING), "Labels not to copy: keys or prefix/*."),
}

_SERVICE: Final = structure(
    {"group": STRING, "kind": STRING, "name": STRING, "namespace": STRING},
    required=("group", "kind", "name", "namespace"),
)
_CONDITION: Final = structure(
    {**CONDITION.fields, "localRef": _SERVICE}, required=CONDITION.required
)
_MIRRORED: Final = structure(
    {
        "conditions": about(listed(_CONDITION, keys=("type",)), "Mirrored."),
        "controllerName": about(STRING, "Who wrote the entry."),
        "remoteRef": about(_SERVICE, "The service in the other cluster."),
    },
    required=("conditions", "controllerName", "remoteRef"),
)
_STATUS: Final = about(
    structure(
        {
            "mirrorServices": about(listed(_MIRRORED), "Services that are mirrored here."),
            "federatedServices": about(listed(_MIRRORED), "Services that joined federated ones."),
            "conditions": about(
                listed(CONDITION, keys=("type",)), "Whether the other cluster can be reached."
            ),
        }
    ),
    "What became of the other cluster's services.",
)


def _schema(version: str, *more: Mapping[str, Schema]) -> Schema:
    fields = dict(_BASE)
    for each in more:
        fields |= each
    whole = resource(
        about(structure(fields), "The other cluster and what is taken from it."),
        status=_STATUS,
        ref=f"io.linkerd.multicluster.{version}.Link",
    )
    return about(whole, "Joins this cluster with another one.")


_SCHEMAS: Final = {
    "v1alpha3": _schema("v1alpha3", _FEDERATED, _EXCLUDED),
    "v1alpha2": _schema("v1alpha2", _FEDERATED),
    "v1alpha1": _schema("v1alpha1"),
}

# ----------------------------------------------------------------------------------------- rules


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    for name in SELECTORS:
        yield from selector_faults(get(document, f"spec.{name}"), f"spec.{name}")


def _warn_of_annotations(document: Document, _old: Document | None) -> Iterator[str]:
    said = texts(document, "metadata.annotations")
    stale = staleness(said)
    if isinstance(stale, Problem):
        yield stale.warning
    for name in (CREATE_NAMESPACES, HEADLESS_SERVICES):
        if said.get(name, "false") not in ("true", "false"):
            yield f"metadata.annotations[{name}]: must be true or false; it means false"


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    spec = mapping(document, "spec")
    if text(spec, "targetClusterName") == "federated":
        yield "spec.targetClusterName: federated Services are called so; nothing will be mirrored"
    for name in ("targetClusterName", "clusterCredentialsSecret"):
        if not text(spec, name):
            yield f"spec.{name}: is not set, so the link does nothing"
    if text(spec, "targetClusterName") not in ("", text(document, "metadata.name")):
        yield "spec.targetClusterName: should be the Link's name; federated services look it up"
    if all(is_empty(get(spec, name)) for name in SELECTORS):
        yield "spec: no selector is set, so no service is taken over (an empty one selects nothing)"
    if text(spec, "gatewayAddress") and not _is_port(text(spec, "gatewayPort")):
        yield "spec.gatewayPort: must be a port number as text; the gateway cannot be reached"
    for name in ("period", "timeout"):
        said = text(spec, f"probeSpec.{name}")
        if said and seconds(said) is None:
            yield f"spec.probeSpec.{name}: is no duration such as 3s; the default counts"
        elif said.isdecimal():
            yield f"spec.probeSpec.{name}: has no unit; seconds are meant, write {said}s"


def _is_port(said: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", said) is not None and 1 <= int(said) <= 65535


# --------------------------------------------------------------------------------------- columns


def _services(document: Document, _now: float) -> str | None:
    """`2/3`: of the Services that are asked for, how many stand here; nothing if nobody said."""
    status = mapping(document, "status")
    if "mirrorServices" not in status and "federatedServices" not in status:
        return None
    asked = [*items(status, "mirrorServices"), *items(status, "federatedServices")]
    done = [text(each, "status") for report in asked for each in items(report, "conditions")]
    return f"{done.count('True')}/{len(asked)}"


COLUMNS: Final = (
    condition_column("Accepted", "Accepted"),
    condition_column("Reachable", "Reachable"),
    Column("Services", _services, description="Of those asked for, how many stand here."),
    AGE,
    condition_column("Stale", "Stale", priority=WIDE),
    text_column("Gateway", "spec.gatewayAddress", priority=WIDE, absent="<none>"),
    text_column("Credentials", "spec.clusterCredentialsSecret", priority=WIDE),
)

LINK: Final = Kind(
    group=GROUP,
    name="Link",
    plural="links",
    singular="link",
    versions=tuple(Version(name, each, columns=COLUMNS) for name, each in _SCHEMAS.items()),
    stored="v1alpha3",
    view=Link,
    check=(_check,),
    warn=(_warn_of_annotations, _warn),
    convert=by_schema(_SCHEMAS),
)

KINDS: Final[tuple[Kind, ...]] = (LINK,)

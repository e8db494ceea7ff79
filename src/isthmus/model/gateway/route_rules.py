"""What every route must keep to: parents, backends, header matches, annotations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.annotations.keys import FAILURE_ACCRUAL, RETRY_GRPC, RETRY_HTTP
from isthmus.model.annotations.traffic import problems
from isthmus.model.document import items, mapping, number, text, texts
from isthmus.model.faults import invalid, required
from isthmus.model.kind import Document
from isthmus.model.names import control_characters
from isthmus.model.regex import regex_problems
from isthmus.model.rules import broken, is_kind

POLICY: Final = "policy.linkerd.io"


def is_service(reference: Mapping[str, Any]) -> bool:
    """Whether a backendRef or parentRef names a Service, where no kind means Service."""
    return is_kind({"kind": "Service", **reference}, "", "Service")


def parent_faults(document: Document) -> Iterator[Cause]:
    """Faults of `spec.parentRefs`.

    Two references to one parent must differ in section or port (Gateway API, experimental channel:
    the standard one knows sections alone, which no Service has). An EgressNetwork needs a port.
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for index, ref in enumerate(items(document, "spec.parentRefs")):
        key = tuple(text(ref, name) for name in ("group", "kind", "name", "namespace"))
        groups[key].append(ref)
        if is_kind(ref, POLICY, "EgressNetwork") and not number(ref, "port"):
            yield required(f"spec.parentRefs[{index}].port", "an EgressNetwork parent needs a port")
    for refs in groups.values():
        yield from _twins(refs)


def _twins(refs: list[Mapping[str, Any]]) -> Iterator[Cause]:
    if len(refs) < 2:
        return
    parts = [(text(ref, "sectionName"), number(ref, "port")) for ref in refs]
    told = "when parentRefs includes 2 or more references to the same parent"
    if ("", 0) in parts:
        yield broken("spec.parentRefs", refs, f"sectionName or port must be specified {told}")
    if len(set(parts)) < len(parts):
        yield broken("spec.parentRefs", refs, f"sectionName or port must be unique {told}")


def backend_faults(rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """The fault of each Service backend of a rule that has no port; mirrors are backends too."""
    for index, ref in enumerate(items(rule, "backendRefs")):
        yield from port_faults(ref, f"{path}.backendRefs[{index}]")
    for index, each in enumerate(items(rule, "filters")):
        ref = mapping(each, "requestMirror.backendRef")
        if ref:
            yield from port_faults(ref, f"{path}.filters[{index}].requestMirror.backendRef")


def port_faults(ref: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """The fault of a reference to a Service without a port."""
    if is_service(ref) and not number(ref, "port"):
        yield broken(path, ref, "Must have port for Service reference")


def value_match_faults(matches: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    """Faults of header or query matches: expressions that are none, values that no header has."""
    for index, each in enumerate(matches):
        here, value = f"{path}[{index}].value", text(each, "value")
        if text(each, "type") == "RegularExpression":
            yield from regex_faults(value, here)
        elif control_characters(value.replace("\t", "")):
            yield invalid(here, value, "may not contain control characters")


def regex_faults(pattern: str, path: str) -> Iterator[Cause]:
    """Faults of a regular expression."""
    for problem in regex_problems(pattern):
        yield invalid(path, pattern, problem)


def meshed(document: Document) -> bool:
    """Whether a Service or an EgressNetwork is among the parents."""
    refs = items(document, "spec.parentRefs")
    return any(is_kind(r, "", "Service") or is_kind(r, POLICY, "EgressNetwork") for r in refs)


def annotation_faults(document: Document, *, grpc: bool) -> Iterator[Cause]:
    """Limits and retries that are not understood, on routes that would use them."""
    if meshed(document):
        for problem in problems(texts(document, "metadata.annotations"), grpc=grpc):
            yield problem.fault


def route_warnings(document: Document, *, grpc: bool) -> Iterator[str]:
    """What a route says to no effect."""
    annotations = texts(document, "metadata.annotations")
    other = RETRY_HTTP if grpc else RETRY_GRPC
    if other in annotations:
        yield f"metadata.annotations[{other}]: routes of this kind do not read it"
    if FAILURE_ACCRUAL in annotations:
        yield f"metadata.annotations[{FAILURE_ACCRUAL}]: only Services and EgressNetworks read it"
    for index, rule in enumerate(items(document, "spec.rules")):
        yield from weight_warnings(rule, f"spec.rules[{index}]")


def weight_warnings(rule: Mapping[str, Any], path: str) -> Iterator[str]:
    """The warning about a rule all of whose backends have weight 0."""
    refs = items(rule, "backendRefs")
    if refs and all(number(ref, "weight", 1) == 0 for ref in refs):
        yield f"{path}.backendRefs: every weight is 0, so that all requests fail"

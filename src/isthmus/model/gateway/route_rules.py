"""What every route must keep to and rules in CEL cannot say: expressions, annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.annotations.keys import FAILURE_ACCRUAL, RETRY_GRPC, RETRY_HTTP
from isthmus.model.annotations.traffic import problems
from isthmus.model.document import items, number, text, texts
from isthmus.model.faults import invalid, required
from isthmus.model.kind import Document
from isthmus.model.names import control_characters
from isthmus.model.regex import regex_problems
from isthmus.model.rules import is_kind

POLICY: Final = "policy.linkerd.io"


def parent_faults(document: Document) -> Iterator[Cause]:
    """The fault of each EgressNetwork in `spec.parentRefs` that has no port."""
    for index, ref in enumerate(items(document, "spec.parentRefs")):
        if is_kind(ref, POLICY, "EgressNetwork") and not number(ref, "port"):
            yield required(f"spec.parentRefs[{index}].port", "an EgressNetwork parent needs a port")


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

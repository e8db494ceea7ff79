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


def route_warnings(document: Document, old: Document | None, *, grpc: bool) -> Iterator[str]:
    """What a route says to no effect, or with more effect than one may think."""
    yield from _probe_warnings(document, old)
    annotations = texts(document, "metadata.annotations")
    other = RETRY_HTTP if grpc else RETRY_GRPC
    if other in annotations:
        yield f"metadata.annotations[{other}]: routes of this kind do not read it"
    if FAILURE_ACCRUAL in annotations:
        yield f"metadata.annotations[{FAILURE_ACCRUAL}]: only Services and EgressNetworks read it"
    for index, rule in enumerate(items(document, "spec.rules")):
        yield from weight_warnings(rule, f"spec.rules[{index}]")


def _probe_warnings(document: Document, old: Document | None) -> Iterator[str]:
    """The first route on a Server ends the way in that probes have by themselves."""
    before = {text(ref, "name") for _, ref in _servers(old)}
    for path, ref in _servers(document):
        if text(ref, "name") not in before:
            yield (
                f"{path}: with routes on it, a Server lets in nothing that no route is for:"
                " probes of the kubelet need a route, and an authorization, of their own"
            )


def _servers(document: Document | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, ref in enumerate(items(document or {}, "spec.parentRefs")):
        if is_kind(ref, POLICY, "Server"):
            yield f"spec.parentRefs[{index}]", ref


_NEVER: Final = ("//", "/./", "/../", "%2f", "%5c", "#", "?")
_NEVER_LAST: Final = ("/.", "/..")


def path_warnings(rule: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths that no request has once it was made normal, which comes before routes (decision 20).

    The Gateway API refuses them.
    """
    for index, match in enumerate(items(rule, "matches")):
        value = text(match, "path.value").lower()
        if text(match, "path.type") == "RegularExpression":
            continue
        if any(each in value for each in _NEVER) or value.endswith(_NEVER_LAST):
            says = "paths are made normal before they are compared, so none is ever like this"
            yield f"{path}.matches[{index}].path.value: {says}"


def weight_warnings(rule: Mapping[str, Any], path: str) -> Iterator[str]:
    """The warning about a rule all of whose backends have weight 0."""
    refs = items(rule, "backendRefs")
    if refs and all(number(ref, "weight", 1) == 0 for ref in refs):
        yield f"{path}.backendRefs: every weight is 0, so that all requests fail"

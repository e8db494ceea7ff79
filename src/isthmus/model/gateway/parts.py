"""Schemas that the kinds of gateway.networking.k8s.io share (Gateway API v1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.model.columns import AGE
from isthmus.model.document import items, strings
from isthmus.model.kind import Column, Document
from isthmus.model.references import GROUP, KIND_NAME, NAME, NAMESPACE, SUBDOMAIN
from isthmus.model.schema import Schema
from isthmus.model.shapes import (
    CONDITION,
    CONDITIONS,
    PORT,
    about,
    listed,
    rule,
    ruled,
    structure,
    text,
    whole,
)

API_GROUP: Final = "gateway.networking.k8s.io"
CATEGORIES: Final = ("gateway-api",)

HOSTNAME_PATTERN: Final = rf"^(\*\.)?{SUBDOMAIN}$"
HOSTNAME: Final = about(
    text(min_length=1, max_length=253, pattern=HOSTNAME_PATTERN),
    "A host name, or *. and the end of one.",
)
PRECISE_HOSTNAME: Final = about(
    text(min_length=1, max_length=253, pattern=rf"^{SUBDOMAIN}$"), "A host name without wildcard."
)
HEADER_PATTERN: Final = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"
HEADER_NAME: Final = about(
    text(min_length=1, max_length=256, pattern=HEADER_PATTERN), "Name, whatever its case."
)
DURATION: Final = text(pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
RULE_NAME: Final = about(
    text(min_length=1, max_length=253, pattern=rf"^{SUBDOMAIN}$"), "Name of the rule, for people."
)
SECTION: Final = text(min_length=1, max_length=253, pattern=rf"^{SUBDOMAIN}$")


def gateway_ref(version: str, kind: str) -> str:
    """The name under which OpenAPI shares a kind of this group."""
    return f"io.k8s.networking.gateway.{version}.{kind}"


def parent_ref(group: str = API_GROUP) -> Schema:
    """A parentRef; `group` is what it means when it names none."""
    return structure(
        {
            "group": about(GROUP, "API group of the parent; empty for a Service.", default=group),
            "kind": about(KIND_NAME, "Kind of the parent, such as Service.", default="Gateway"),
            "namespace": NAMESPACE,
            "name": NAME,
            "sectionName": about(SECTION, "Part of the parent, such as a listener of a Gateway."),
            "port": about(PORT, "Port of the parent; all of them if left out."),
        },
        required=("name",),
    )


def parent_refs(group: str = API_GROUP) -> Schema:
    """`spec.parentRefs`. In the group of the Gateway API two of one parent must differ."""
    refs = about(listed(parent_ref(group), max_items=32), "What the route attaches to.")
    return ruled(refs, *_TWINS) if group == API_GROUP else refs


def _same(*names: str) -> str:
    return " && ".join(f"p.?{name}.orValue('') == q.?{name}.orValue('')" for name in names)


_PARENT: Final = _same("group", "kind", "name", "__namespace__")
_TWICE: Final = "when parentRefs includes 2 or more references to the same parent"
# Experimental channel: the standard one knows sections alone, which no Service has.
_TWINS: Final = (
    rule(
        "self.all(p, p.?sectionName.orValue('') != '' || p.?port.orValue(0) != 0"
        f" || self.filter(q, {_PARENT}).size() < 2)",
        f"sectionName or port must be specified {_TWICE}",
    ),
    rule(
        f"self.all(p, self.filter(q, {_PARENT} && {_same('sectionName')}"
        " && p.?port.orValue(0) == q.?port.orValue(0)).size() < 2)",
        f"sectionName or port must be unique {_TWICE}",
    ),
)

NEEDS_PORT: Final = rule(
    "!(self.?group.orValue('') in ['', 'core']"
    " && self.?kind.orValue('Service').lowerAscii() == 'service') || self.?port.orValue(0) != 0",
    "Must have port for Service reference",
)
"""Of a backend."""

TARGET_FIELDS: Final = {
    "group": about(GROUP, "API group of the backend.", default=""),
    "kind": about(KIND_NAME, "Kind of the backend.", default="Service"),
    "namespace": NAMESPACE,
    "name": NAME,
    "port": about(PORT, "Port of the backend; a Service needs one."),
}
WEIGHT: Final = about(
    whole(minimum=0, maximum=1_000_000, default=1), "Share of the traffic, against the others'."
)
STREAM_BACKENDS: Final = about(
    listed(
        ruled(structure({**TARGET_FIELDS, "weight": WEIGHT}, required=("name",)), NEEDS_PORT),
        min_items=1,
        max_items=16,
    ),
    "Where the connections go.",
)

HOSTNAMES: Final = about(
    listed(HOSTNAME, max_items=16), "Hosts that the route is for; all if left out."
)


STATUS_CONDITIONS: Final = about(CONDITIONS, "What is known of the object.")


def route_status(group: str = API_GROUP) -> Schema:
    """`status` of every route: an entry for each parent and controller."""
    entry = structure(
        {
            "parentRef": about(parent_ref(group), "The parent, as the route names it."),
            "controllerName": about(
                text(
                    min_length=1,
                    max_length=253,
                    pattern=rf"^{SUBDOMAIN}\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$",
                ),
                "Who wrote the entry.",
            ),
            "conditions": about(
                listed(CONDITION, keys=("type",), min_items=1, max_items=8),
                "Accepted, ResolvedRefs, ...",
            ),
        },
        required=("conditions", "controllerName", "parentRef"),
    )
    parents = about(listed(entry, max_items=32), "How each parent took the route.")
    fields = {"parents": parents, "conditions": STATUS_CONDITIONS}
    return about(structure(fields, required=("parents",)), "How the route is taken.")


def hostnames_cell(document: Document, _now: float) -> str:
    """`["a","b"]`, as kubectl shows a list that a column points at."""
    names = strings(document, "spec.hostnames")
    return f"[{','.join(f'{chr(34)}{name}{chr(34)}' for name in names)}]" if names else ""


HOSTNAMES_COLUMN: Final = Column("Hostnames", hostnames_cell)
ROUTE_COLUMNS: Final = (HOSTNAMES_COLUMN, AGE)


def all_rules(document: Document) -> Iterator[tuple[str, dict[str, object]]]:
    """Each rule of a route with its path."""
    for index, each in enumerate(items(document, "spec.rules")):
        yield f"spec.rules[{index}]", each

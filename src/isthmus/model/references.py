"""References from one object to another: their schemas and their view."""

from __future__ import annotations

from typing import Final

from isthmus.model.meta import View
from isthmus.model.schema import Schema
from isthmus.model.shapes import about, structure, text

DNS: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{DNS}(\.{DNS})*"

GROUP: Final = about(
    text(max_length=253, pattern=rf"^$|^{SUBDOMAIN}$"),
    "API group of the object; empty for Kubernetes' core group.",
)
KIND_NAME: Final = about(
    text(min_length=1, max_length=63, pattern=r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"),
    "Kind of the object.",
)
NAME: Final = about(text(min_length=1, max_length=253), "Name of the object.")
NAMESPACE: Final = about(
    text(min_length=1, max_length=63, pattern=rf"^{DNS}$"),
    "Namespace of the object; the referring object's own if left out.",
)


class Ref(View, frozen=True):
    """Names an object of some kind. `namespace` "" is the referring object's own."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


def local_reference(description: str, *, required: tuple[str, ...] = ("kind", "name")) -> Schema:
    """A reference to an object of the same namespace."""
    fields = {"group": GROUP, "kind": KIND_NAME, "name": NAME}
    return about(structure(fields, required=required), description)


def reference(description: str, *, required: tuple[str, ...] = ("kind", "name")) -> Schema:
    """A reference that may name another namespace."""
    fields = {"group": GROUP, "kind": KIND_NAME, "namespace": NAMESPACE, "name": NAME}
    return about(structure(fields, required=required), description)

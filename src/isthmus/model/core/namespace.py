"""Namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, text_column
from isthmus.model.core.proxywords import own_annotations
from isthmus.model.document import ensure, settle, strings, text
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Condition, Meta, View
from isthmus.model.metacheck import finalizer_faults
from isthmus.model.names import label_problems
from isthmus.model.wire.schemas import schema_of


class NamespaceSpec(View, frozen=True):
    """Who must clean up before the namespace may go."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(View, frozen=True):
    """`phase` is Active or Terminating."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(View, frozen=True):
    """core/v1 Namespace: its annotations are defaults for what lives in it."""

    metadata: Meta = Meta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


def _default(document: Document) -> None:
    name = text(document, "metadata.name")
    if name:  # selectors can name a namespace by this label
        ensure(document, "metadata.labels")["kubernetes.io/metadata.name"] = name


def _carry(document: Document, old: Document | None) -> None:
    """A namespace is born Active, and waits for its content to go before it goes."""
    if old is None:
        settle(ensure(document, "spec"), "finalizers", ["kubernetes"])
        document["status"] = {"phase": "Active"}


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    for finalizer in strings(document, "spec.finalizers"):
        yield from finalizer_faults(finalizer, "spec.finalizers")


NAMESPACE: Final = Kind(
    group="",
    name="Namespace",
    plural="namespaces",
    singular="namespace",
    short_names=("ns",),
    namespaced=False,
    grammar=label_problems,
    versions=(
        Version(
            "v1",
            schema_of("core.v1.Namespace"),
            columns=(text_column("Status", "status.phase"), AGE),
        ),
    ),
    stored="v1",
    view=Namespace,
    default=(_default,),
    carry=(_carry,),
    warn=(own_annotations,),
    check=(_check,),
    field_selectors={"status.phase": "status.phase"},
    generation=False,
    custom=False,
    # Kubernetes has no delete of many namespaces at once: it would be a cluster.
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
)

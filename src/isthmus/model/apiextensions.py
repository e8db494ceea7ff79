"""The apiextensions.k8s.io API group: CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model import crd
from isthmus.model.columns import CREATED_AT
from isthmus.model.document import ensure, get, items, mapping, settle, text, truth
from isthmus.model.faults import duplicate, immutable, invalid, not_supported, required
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Condition, CountedMeta, View
from isthmus.model.names import label_1035_problems, subdomain_problems
from isthmus.model.wire.schemas import schema_of

GROUP: Final = "apiextensions.k8s.io"

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition whose objects are still there."""


class Names(View, frozen=True):
    """What the resource is called."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class DefinedVersion(View, frozen=True):
    """One version that is served, stored, or neither."""

    name: str = ""
    served: bool = False
    storage: bool = False


class DefinitionSpec(View, frozen=True):
    """apiextensions.k8s.io/v1 CustomResourceDefinitionSpec, in part."""

    group: str = ""
    scope: str = ""
    names: Names = Names()
    versions: tuple[DefinedVersion, ...] = ()


class DefinitionStatus(View, frozen=True):
    """Whether it is Established."""

    conditions: tuple[Condition, ...] = ()
    accepted_names: Names = Names()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(View, frozen=True):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    metadata: CountedMeta = CountedMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    kind = text(spec, "names.kind")
    if kind:
        settle(ensure(spec, "names"), "singular", kind.lower())
        settle(ensure(spec, "names"), "listKind", f"{kind}List")
    settle(ensure(spec, "conversion"), "strategy", "None")


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    spec = mapping(document, "spec")
    group, plural = text(spec, "group"), text(spec, "names.plural")
    name = text(document, "metadata.name")
    if name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    for problem in subdomain_problems(group) if group else ():
        yield invalid("spec.group", group, problem)
    if group and "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if text(spec, "scope") not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", text(spec, "scope"), ("Cluster", "Namespaced"))
    yield from _names_faults(spec)
    yield from _versions_faults(spec)
    if old is not None:
        for path in ("spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"):
            if get(old, path) != get(document, path):
                yield immutable(path, get(document, path))


def _names_faults(spec: dict[str, Any]) -> Iterator[Cause]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = text(spec, f"names.{name}")
        if not value:
            yield required(f"spec.names.{name}")
        for problem in label_1035_problems(value.lower()) if value else ():
            yield invalid(f"spec.names.{name}", value, problem)
    kind = text(spec, "names.kind")
    if kind and kind == text(spec, "names.listKind"):
        yield invalid("spec.names.listKind", kind, "kind and listKind may not be the same")


def _versions_faults(spec: dict[str, Any]) -> Iterator[Cause]:
    versions, names = items(spec, "versions"), set[str]()
    if not versions:
        yield required("spec.versions")
        return
    if sum(truth(version, "storage") for version in versions) != 1:
        says = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", [text(each, "name") for each in versions], says)
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", text(version, "name")
        for problem in label_1035_problems(name):
            yield invalid(f"{path}.name", name, problem)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        if not isinstance(get(version, "schema.openAPIV3Schema"), dict):
            yield required(f"{path}.schema.openAPIV3Schema", "schemas are required")


def _check_versions(document: Document, old: Document | None) -> Iterator[Cause]:
    """Schemas, columns, subresources. Of a built-in kind nothing of it is used, so all is well."""
    if built_in(text(document, "spec.group"), text(document, "spec.names.plural")) is None:
        yield from crd.faults(document, old)


def _warn(document: Document, _old: Document | None) -> Iterator[str]:
    kind = built_in(text(document, "spec.group"), text(document, "spec.names.plural"))
    if kind is not None:
        yield f"{kind.resource} are built in: the definition is kept, and its schema is not used"


def built_in(group: str, plural: str) -> Kind | None:
    """The kind of this name that Isthmus itself serves, or None."""
    from isthmus.model.registry import BUILT_IN  # noqa: PLC0415 - it holds this very kind

    return BUILT_IN.by_resource(group, plural)


CUSTOM_RESOURCE_DEFINITION: Final = Kind(
    group=GROUP,
    name="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    namespaced=False,
    versions=(
        Version(
            "v1",
            schema_of("apiextensions.v1.CustomResourceDefinition"),
            columns=(CREATED_AT,),
        ),
    ),
    stored="v1",
    view=CustomResourceDefinition,
    default=(_default,),
    check=(_check, _check_versions),
    warn=(_warn,),
    custom=False,
    cleanup=CLEANUP,
)

KINDS: tuple[Kind, ...] = (CUSTOM_RESOURCE_DEFINITION,)

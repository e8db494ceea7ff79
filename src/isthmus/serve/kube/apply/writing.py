"""One write as the accounts of owners see it, and what it changes in every version."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from isthmus.model.kind import Document, Kind, Version
from isthmus.model.schema import Type
from isthmus.serve.kube.apply.compare import Difference, compare
from isthmus.serve.kube.apply.fields import FieldSet
from isthmus.serve.kube.apply.managers import APPLY, UPDATE, Manager
from isthmus.serve.kube.show import convert

UNOWNED: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    }
)
"""Fields of metadata that say which object it is, or that the server alone writes."""


class Writing(NamedTuple):
    """Who writes what, how and when. `now` is RFC 3339 text; `manager` is never empty."""

    kind: Kind
    version: Version
    manager: str
    now: str
    subresource: str = ""

    @property
    def api_version(self) -> str:
        """The version that this write speaks, with its group."""
        return self.kind.api_version(self.version.name)

    @property
    def updater(self) -> Manager:
        """Who owns what an update writes."""
        return Manager(self.manager, UPDATE, self.api_version, self.subresource)

    @property
    def applier(self) -> Manager:
        """Who owns what is applied."""
        return Manager(self.manager, APPLY, "", self.subresource)

    def named(self, api_version: str) -> Version | None:
        """The version of the kind with this full name; None if it has none."""
        name = api_version.rpartition("/")[2]
        if self.kind.api_version(name) != api_version:
            return None
        return next((each for each in self.kind.versions if each.name == name), None)

    def ownable(self, document: Document) -> Document:
        """The part of a document that this write may change and that can have owners."""
        if self.subresource in ("status", "finalize"):
            name = "status" if self.subresource == "status" else "spec"
            return {name: document[name]} if name in document else {}
        apart = ("apiVersion", "kind", "metadata", "status" if self.kind.status else "")
        view = {name: value for name, value in document.items() if name not in apart}
        view["metadata"] = _ownable_metadata(document.get("metadata"))
        return view

    def unborn(self) -> Document:
        """What a document is compared with when it is created: the objects that always are there.

        Kubernetes' built-in types have them whatever is said; custom resources have nothing.
        """
        if self.kind.custom:
            return {"metadata": {}}
        fields = self.version.schema.fields
        return {name: {} for name, field in fields.items() if field.type is Type.OBJECT}


def _ownable_metadata(metadata: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(metadata, dict):
        return {}
    return {name: value for name, value in metadata.items() if name not in UNOWNED}


def owned(found: FieldSet) -> FieldSet:
    """Paths of an ownable document that can have an owner: `metadata` itself has none."""
    return FieldSet(found.members - {"f:metadata"}, found.children)


class Changes:
    """From one document to the next, in every version that somebody owns fields in."""

    def __init__(self, writing: Writing, old: Document | None, new: Document) -> None:
        """Both documents are in the version of the write; without `old` it is a create."""
        self._writing = writing
        self._old = old
        self._new = new
        self._made: dict[str, Difference | None] = {}

    @property
    def own(self) -> Difference:
        """The difference in the version of the write."""
        found = self.of(self._writing.api_version)
        return found or Difference()

    def of(self, api_version: str) -> Difference | None:
        """The difference in this version; None if the kind has no such version."""
        if api_version not in self._made:
            self._made[api_version] = self._compared(api_version)
        return self._made[api_version]

    def _compared(self, api_version: str) -> Difference | None:
        version = self._writing.named(api_version)
        if version is None:
            return None
        old = self._writing.unborn() if self._old is None else self._shown(self._old, version)
        return compare(version.schema, old, self._shown(self._new, version))

    def _shown(self, document: Document, version: Version) -> Document:
        present = document
        if version.name != self._writing.version.name:
            present = convert(self._writing.kind, document, version.name)
        return self._writing.ownable(present)

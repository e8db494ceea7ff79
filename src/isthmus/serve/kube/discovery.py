"""What the API serves, as clients discover it.

The aggregated form (apidiscovery.k8s.io/v2) has everything in `/api` and `/apis`: two requests. The
legacy form is APIVersions, APIGroupList, APIGroup and APIResourceList: one request per version.
Verbs, short names and categories are those of the Kind records. Made once per set of kinds; a new
set (CustomResourceDefinitions) is a new Discovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from isthmus.model.kind import Kind
from isthmus.model.registry import Registry
from isthmus.serve.kube.blob import Blob, json_blob
from isthmus.serve.kube.negotiate import Form


class Subresource(NamedTuple):
    """Something below an object; `group`, `version` and `kind` of what is read and written there.

    An empty `kind` means the object's own.
    """

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""


_STATUS = Subresource("status", ("get", "patch", "update"))
_SCALE = Subresource("scale", ("get", "patch", "update"), "autoscaling", "v1", "Scale")

NO_EXTRAS: Mapping[str, tuple[Subresource, ...]] = {}


def subresources(
    kind: Kind, version: str, extras: Mapping[str, tuple[Subresource, ...]]
) -> list[Subresource]:
    """All subresources of a kind in a version, by name."""
    found = list(extras.get(kind.resource, ()))
    served = kind.version(version)
    kind = kind.seen_in(served) if served is not None else kind
    if kind.status:
        found.append(_STATUS)
    if kind.scale is not None:
        found.append(_SCALE)
    return sorted(found)


class Discovery:
    """The discovery documents of a registry.

    `extras` are subresources that Kind records do not know, by resource: serviceaccounts/token, ...
    """

    def __init__(
        self, registry: Registry, extras: Mapping[str, tuple[Subresource, ...]] = NO_EXTRAS
    ) -> None:
        self._registry = registry
        self._extras = extras
        self._groups = tuple(group for group in registry.groups() if registry.versions(group))
        self._made: dict[tuple[str, str], Blob] = {}

    def api(self, form: Form = Form.JSON) -> Blob:
        """`/api`: the core group."""
        return self._aggregated_core if form is Form.DISCOVERY else self._legacy_core

    def apis(self, form: Form = Form.JSON) -> Blob:
        """`/apis`: every other group."""
        return self._aggregated_named if form is Form.DISCOVERY else self._legacy_named

    def group(self, group: str) -> Blob | None:
        """`/apis/GROUP`, or None."""
        if not group or group not in self._groups:
            return None
        key = (group, "")
        if key not in self._made:
            head = {"kind": "APIGroup", "apiVersion": "v1"}
            self._made[key] = json_blob(head | self._legacy_group(group))
        return self._made[key]

    def version(self, group: str, version: str) -> Blob | None:
        """`/api/v1` (group "") or `/apis/GROUP/VERSION`, or None."""
        if group not in self._groups or version not in self._registry.versions(group):
            return None
        key = (group, version)
        if key not in self._made:
            self._made[key] = json_blob(self._resource_list(group, version))
        return self._made[key]

    # ---- aggregated

    @cached_property
    def _aggregated_core(self) -> Blob:
        return self._aggregated([group for group in self._groups if not group])

    @cached_property
    def _aggregated_named(self) -> Blob:
        return self._aggregated([group for group in self._groups if group])

    def _aggregated(self, groups: list[str]) -> Blob:
        items = [self._aggregated_group(group) for group in groups]
        body = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
        return json_blob(body, Form.DISCOVERY.content_type)

    def _aggregated_group(self, group: str) -> dict[str, Any]:
        versions = [
            {
                "version": version,
                "resources": [
                    self._aggregated_resource(kind, version)
                    for kind in self._registry.of_version(group, version)
                ],
                "freshness": "Current",
            }
            for version in self._registry.versions(group)
        ]
        return {"metadata": {"name": group, "creationTimestamp": None}, "versions": versions}

    def _aggregated_resource(self, kind: Kind, version: str) -> dict[str, Any]:
        said: dict[str, Any] = {
            "resource": kind.plural,
            "responseKind": {"group": kind.group, "version": version, "kind": kind.name},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            said["shortNames"] = list(kind.short_names)
        if kind.categories:
            said["categories"] = list(kind.categories)
        below = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group if sub.kind else kind.group,
                    "version": sub.version if sub.kind else version,
                    "kind": sub.kind or kind.name,
                },
                "verbs": list(sub.verbs),
            }
            for sub in subresources(kind, version, self._extras)
        ]
        return said | ({"subresources": below} if below else {})

    # ---- legacy

    @cached_property
    def _legacy_core(self) -> Blob:
        return json_blob(
            {
                "kind": "APIVersions",
                "versions": list(self._registry.versions("")),
                "serverAddressByClientCIDRs": [],
            }
        )

    @cached_property
    def _legacy_named(self) -> Blob:
        groups = [self._legacy_group(group) for group in self._groups if group]
        return json_blob({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _legacy_group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> dict[str, Any]:
        rows = [
            row
            for kind in self._registry.of_version(group, version)
            for row in self._legacy_rows(kind, version)
        ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": rows,
        }

    def _legacy_rows(self, kind: Kind, version: str) -> Iterator[dict[str, Any]]:
        row: dict[str, Any] = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            row["shortNames"] = list(kind.short_names)
        if kind.categories:
            row["categories"] = list(kind.categories)
        yield row
        for sub in subresources(kind, version, self._extras):
            below = {
                "name": f"{kind.plural}/{sub.name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": sub.kind or kind.name,
                "verbs": list(sub.verbs),
            }
            yield below | ({"group": sub.group, "version": sub.version} if sub.kind else {})

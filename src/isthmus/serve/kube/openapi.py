"""OpenAPI of the API, made from the kinds' schemas.

For `kubectl apply`, which asks whether PATCH of a kind knows fieldValidation, and for
`kubectl explain`, which reads names, types and descriptions.

v3 is one document per group and version, and an index that names each with its hash; v2 is one
document of everything, in two forms (`swagger`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from isthmus.model.kind import Kind, Version
from isthmus.model.registry import Registry
from isthmus.serve.kube import swagger
from isthmus.serve.kube.blob import Blob, json_blob
from isthmus.serve.kube.components import Components

GroupVersion = tuple[str, str]
T = TypeVar("T")

_OPERATIONS = (
    # verb of the kind, HTTP method, on the collection?, x-kubernetes-action, fieldValidation?
    ("list", "get", True, "list", False),
    ("create", "post", True, "post", True),
    ("deletecollection", "delete", True, "deletecollection", False),
    ("get", "get", False, "get", False),
    ("update", "put", False, "put", True),
    ("patch", "patch", False, "patch", True),
    ("delete", "delete", False, "delete", False),
)

_FIELD_VALIDATION = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What becomes of unknown fields: Ignore, Warn or Strict.",
    "schema": {"type": "string"},
}


class OpenApi:
    """The OpenAPI documents of a registry. Each is made when first asked for, and kept."""

    def __init__(self, registry: Registry, before: OpenApi | None = None) -> None:
        """`before`: the documents of another registry; those of the same kinds are taken over."""
        self._registry = registry
        self._documents: dict[GroupVersion, Blob] = {}
        self._parts: dict[GroupVersion, swagger.Part] = {}
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: OpenApi) -> None:
        """What was made of groups and versions whose kinds are the very same here."""
        self._documents |= self._same(before, before._documents)
        self._parts |= self._same(before, before._parts)

    def _same(self, before: OpenApi, made: Mapping[GroupVersion, T]) -> dict[GroupVersion, T]:
        ours, theirs = self._registry, before._registry
        return {
            key: value
            for key, value in made.items()
            if ours.of_version(*key) == theirs.of_version(*key)
        }

    @cached_property
    def index(self) -> Blob:
        """`/openapi/v3`: where the document of each group and version is."""
        paths: dict[str, Any] = {}
        for group in self._registry.groups():
            for version in self._registry.versions(group):
                path = _path(group, version)
                document = self.document(group, version)
                digest = document.digest if document else ""
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return json_blob({"paths": paths})

    def document(self, group: str, version: str) -> Blob | None:
        """`/openapi/v3/api/v1` (group "") or `/openapi/v3/apis/GROUP/VERSION`, or None."""
        kinds = self._registry.of_version(group, version)
        if not kinds:
            return None
        key = (group, version)
        if key not in self._documents:
            self._documents[key] = json_blob(_document(kinds, version))
        return self._documents[key]

    @cached_property
    def v2_json(self) -> Blob:
        """`/openapi/v2`, everything in one document, for who asks for JSON."""
        return swagger.json(self._all_parts())

    @cached_property
    def v2(self) -> Blob:
        """`/openapi/v2` as kubectl asks for it: protobuf."""
        return swagger.protobuf(self._all_parts())

    def _all_parts(self) -> list[swagger.Part]:
        """Of every group and version; what several of them share (ObjectMeta) is made once."""
        shared: dict[str, swagger.Said] = {}
        found: list[swagger.Part] = []
        for group in self._registry.groups():
            for version in self._registry.versions(group):
                kinds, key = self._registry.of_version(group, version), (group, version)
                if key not in self._parts:
                    self._parts[key] = swagger.part(_document(kinds, version), shared)
                found.append(self._parts[key])
                shared |= found[-1].definitions
        return found


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _document(kinds: tuple[Kind, ...], version: str) -> dict[str, Any]:
    components = Components()
    paths: dict[str, Any] = {}
    for kind in kinds:
        found = kind.version(version)
        if found is not None:
            name = components.kind(kind, found)
            paths.update(_kind_paths(kind, found, components.reference(name)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "isthmus", "version": "1"},
        "paths": paths,
        "components": {"schemas": components.schemas},
    }


def _kind_paths(
    kind: Kind, version: Version, reference: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The paths of a kind that any of its verbs has an operation on."""
    base = f"/{_path(kind.group, version.name)}"
    scoped = f"{base}/namespaces/{{namespace}}" if kind.namespaced else base
    collection = f"{scoped}/{kind.plural}"
    item = f"{collection}/{{name}}"
    for path, of_collection in ((collection, True), (item, False)):
        operations = dict(_operations(kind, version, reference, of_collection=of_collection))
        if operations:
            yield path, {**operations, "parameters": list(_path_parameters(path))}


def _operations(
    kind: Kind, version: Version, reference: dict[str, Any], *, of_collection: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    who = {"group": kind.group, "version": version.name, "kind": kind.name}
    for verb, method, on_collection, action, validated in _OPERATIONS:
        if verb in kind.verbs and on_collection is of_collection:
            answer = {"description": "OK", "content": {"application/json": {"schema": reference}}}
            yield (
                method,
                {
                    "operationId": f"{verb}{version.name.capitalize()}{kind.name}",
                    "parameters": [_FIELD_VALIDATION] if validated else [],
                    "responses": {"200": answer},
                    "x-kubernetes-action": action,
                    "x-kubernetes-group-version-kind": who,
                },
            )


def _path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in ("namespace", "name"):
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}

"""Applying manifests: server-side, by the API's own discovery, in the order of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isthmus.errors import IsthmusError, UserFault
from isthmus.lab.pods.api import Api, Document
from isthmus.model.document import items, text
from isthmus.serve.kube.yaml_body import strict_yaml

APPLY = "application/apply-patch+yaml"
MANAGER = "isthmus-lab"

_SEPARATOR = re.compile(rb"^---(?:[ \t].*)?$", re.MULTILINE)


def documents(body: bytes, where: str) -> Iterator[Document]:
    """Every object of a manifest; the members of a List one by one.

    Raises:
        UserFault: it is no YAML; names the file.
    """
    for part in _SEPARATOR.split(body):
        lines = (line.strip() for line in part.splitlines())
        if all(not line or line.startswith(b"#") for line in lines):
            continue
        try:
            document, _ = strict_yaml(part)
        except UserFault as fault:
            raise UserFault(f"{where}: {fault.message}") from fault
        if document.get("kind") == "List":
            yield from items(document, "items")
        else:
            yield document


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise UserFault(f"cannot read {path}: {fault.strerror}") from fault


class Applier:
    """Applies objects to one cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, dict[str, Any]] = {}

    async def file(self, path: Path) -> int:
        """Apply a file; how many objects it has. UserFault names the file and the object."""
        count = 0
        for document in documents(_bytes(path), path.name):
            try:
                await self.apply(document)
            except IsthmusError as fault:
                about = f"{text(document, 'kind')} {text(document, 'metadata.name')}"
                raise UserFault(f"{path.name}: {about}: {fault.message}") from fault
            count += 1
        return count

    async def apply(self, document: Document) -> None:
        """Create one object, or bring it to what the document says."""
        where = await self._path(document)
        await self._api.patch(where, document, APPLY, fieldManager=MANAGER, force="true")

    async def _path(self, document: Document) -> str:
        version, kind = text(document, "apiVersion"), text(document, "kind")
        name = text(document, "metadata.name")
        if not version or not kind or not name:
            raise UserFault("an object needs apiVersion, kind and metadata.name")
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        found = await self._resource(root, kind)
        plural = text(found, "name")
        if found.get("namespaced"):
            namespace = text(document, "metadata.namespace") or "default"
            return f"{root}/namespaces/{namespace}/{plural}/{name}"
        return f"{root}/{plural}/{name}"

    async def _resource(self, root: str, kind: str) -> Document:
        for _ in range(2):  # the second time anew: a manifest may bring kinds of its own
            if root not in self._known:
                self._known[root] = await self._api.get(root)
            for each in items(self._known[root], "resources"):
                if each.get("kind") == kind and "/" not in text(each, "name"):
                    return each
            del self._known[root]
        raise UserFault(f"the server has no kind {kind}")

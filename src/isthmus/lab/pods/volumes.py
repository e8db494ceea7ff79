"""A pod's volumes as folders of this machine.

What comes from objects is written into a folder of its own and shown through a link that is
swapped in one step, as the kubelet does it: a reader sees the old files or the new, never half.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from isthmus.errors import IsthmusError
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.mounts import Mount
from isthmus.lab.pods.sources import (
    ConfigError,
    Sources,
    Where,
    config_data,
    field,
    resource_field,
)
from isthmus.model.document import get, items, mapping, number, text, truth

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where every pod finds its token, the API's CA and its namespace."""
ACCOUNT_VOLUME = "kube-api-access"
TOKEN_TIME = 3607
"""Seconds of the default token (Kubernetes' admission asks for as many)."""
DEFAULT_MODE = 0o644

_FROM_OBJECTS = ("configMap", "secret", "projected", "downwardAPI")


class File(NamedTuple):
    """One file of a volume."""

    data: bytes
    mode: int


class Volumes:
    """The volumes of one pod, below `folder`."""

    def __init__(self, pod: Document, where: Where, sources: Sources, folder: Path) -> None:
        self._pod = pod
        self._where = where
        self._sources = sources
        self._folder = folder
        self._turn = 0
        self._specs = {text(each, "name"): each for each in items(pod, "spec.volumes")}
        if where.api_host and get(pod, "spec.automountServiceAccountToken") is not False:
            self._specs.setdefault(ACCOUNT_VOLUME, _account_volume())

    async def prepare(self) -> None:
        """Write everything, or write it anew. ConfigError when something is not there."""
        self._turn += 1
        for name, spec in self._specs.items():
            here = self._folder / name
            if any(member in spec for member in _FROM_OBJECTS):
                _show(here, await self._files(spec), self._turn)
            elif "emptyDir" in spec:
                here.mkdir(parents=True, exist_ok=True)
                here.chmod(0o777)
            elif "hostPath" not in spec:
                kind = next((key for key in spec if key != "name"), "nothing")
                raise ConfigError(f"volume {name!r}: a lab has no {kind}")

    @property
    def changing(self) -> bool:
        """Whether `prepare` may find something new later."""
        return any(member in spec for spec in self._specs.values() for member in _FROM_OBJECTS)

    def mounts(self, container: Mapping[str, Any]) -> list[Mount]:
        """Where a container sees what. ConfigError for a volume that is not there."""
        wanted = items(dict(container), "volumeMounts")
        targets = {text(each, "mountPath").rstrip("/") for each in wanted}
        if ACCOUNT_VOLUME in self._specs and ACCOUNT not in targets:
            wanted = [*wanted, {"name": ACCOUNT_VOLUME, "mountPath": ACCOUNT, "readOnly": True}]
        return [self._mount(each) for each in wanted]

    def _mount(self, wanted: Document) -> Mount:
        name = text(wanted, "name")
        spec = self._specs.get(name)
        if spec is None:
            raise ConfigError(f"there is no volume {name!r}")
        source = self._folder / name
        if "hostPath" in spec:
            source = Path(text(spec, "hostPath.path"))
        inner = text(wanted, "subPath")
        if inner:
            source = source / inner
            if ".." in Path(inner).parts or not (source.exists() or "emptyDir" in spec):
                raise ConfigError(f"volume {name!r} has no {inner!r}")
            if "emptyDir" in spec:
                source.mkdir(parents=True, exist_ok=True)
            source = source.resolve()
        if not source.exists():
            raise ConfigError(f"volume {name!r}: there is no {source}")
        read_only = truth(wanted, "readOnly") or any(each in spec for each in _FROM_OBJECTS)
        return Mount(str(source), text(wanted, "mountPath"), read_only=read_only)

    async def _files(self, spec: Document) -> dict[str, File]:
        if "projected" not in spec:
            member = next(each for each in _FROM_OBJECTS if each in spec)
            source = mapping(spec, member)
            return await self._source(member, source, number(source, "defaultMode", DEFAULT_MODE))
        found: dict[str, File] = {}
        mode = number(spec, "projected.defaultMode", DEFAULT_MODE)
        for each in items(spec, "projected.sources"):
            for member in each:
                found |= await self._source(member, mapping(each, member), mode)
        return found

    async def _source(self, member: str, source: Document, mode: int) -> dict[str, File]:
        match member:
            case "configMap":
                return await self._objects("configmap", source, text(source, "name"), mode)
            case "secret":
                name = text(source, "secretName") or text(source, "name")
                return await self._objects("secret", source, name, mode)
            case "downwardAPI":
                return {
                    text(each, "path"): File(
                        self._downward(each).encode(), number(each, "mode", mode)
                    )
                    for each in items(source, "items")
                }
            case "serviceAccountToken":
                return await self._token(source, mode)
            case _:
                raise ConfigError(f"a lab has no volume source {member}")

    def _downward(self, item: Document) -> str:
        if mapping(item, "fieldRef"):
            return field(self._pod, self._where, text(item, "fieldRef.fieldPath"))
        return resource_field(self._pod, {}, mapping(item, "resourceFieldRef"))

    async def _objects(self, kind: str, source: Document, name: str, mode: int) -> dict[str, File]:
        namespace = text(self._pod, "metadata.namespace")
        optional = truth(source, "optional")
        data = await config_data(self._sources, kind, namespace, name, optional=optional)
        chosen = items(source, "items")
        if not chosen:
            return {key: File(value, mode) for key, value in data.items()}
        found = {}
        for each in chosen:
            key = text(each, "key")
            if key in data:
                found[text(each, "path")] = File(data[key], number(each, "mode", mode))
            elif not optional:
                raise ConfigError(f'{kind} "{name}" has no key {key!r}')
        return found

    async def _token(self, source: Document, mode: int) -> dict[str, File]:
        seconds = number(source, "expirationSeconds", TOKEN_TIME)
        try:
            token = await self._sources.token(self._pod, text(source, "audience"), seconds)
        except IsthmusError as fault:
            raise ConfigError(f"no token: {fault.message}") from fault
        return {text(source, "path"): File(token.encode(), mode)}


def _account_volume() -> Document:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_TIME, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    return {"name": ACCOUNT_VOLUME, "projected": {"defaultMode": DEFAULT_MODE, "sources": sources}}


def _show(folder: Path, files: Mapping[str, File], turn: int) -> None:
    """Make `folder` hold exactly these files, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    fresh = folder / f"..{turn}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o755)
    fresh.chmod(0o755)
    tops = set()
    for name, file in files.items():
        parts = Path(name).parts
        if not parts or ".." in parts or Path(name).is_absolute():
            raise ConfigError(f"{name!r} cannot be a file of a volume")
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode)
        tops.add(parts[0])
    link = folder / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.replace(folder / "..data")
    for entry in tuple(folder.iterdir()):
        if entry.is_symlink() and entry.name != "..data" and entry.name not in tops:
            entry.unlink()
        elif entry.is_dir() and not entry.is_symlink() and entry != fresh:
            shutil.rmtree(entry, ignore_errors=True)
    for top in tops:
        here = folder / top
        if not here.is_symlink():
            here.symlink_to(f"..data/{top}")

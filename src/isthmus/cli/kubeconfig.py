"""Which API server a context of a kubeconfig means, and how to prove who asks.

Read as kubectl reads it: $KUBECONFIG may name several files, of which the first that defines a name
wins; paths inside are relative to their file. Not supported: exec and auth-provider plugins.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isthmus.errors import UserFault

DEFAULT = "~/.kube/config"
NOWHERE = Path("/dev/null/none")
"""The folder of a text that came from elsewhere: it names no files of this machine."""


class Access(NamedTuple):
    """One way to an API server. PEM texts are "" where there is none."""

    context: str
    server: str
    namespace: str = "default"
    authority: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""
    insecure: bool = False
    server_name: str = ""


Entry = tuple[dict[str, Any], Path]
"""A part of a file, and the folder that its paths start from."""


class Kubeconfig:
    """One or several files, merged."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._entries: dict[tuple[str, str], Entry] = {}
        self.current = ""
        for file in files:
            self._merge(file)

    @classmethod
    def of(cls, body: bytes) -> Kubeconfig:
        """What a text says; UserFault if it is none. It must name no files."""
        from isthmus.serve.kube.yaml_body import strict_yaml

        made = cls([])
        document, _ = strict_yaml(body)
        made._take(document, NOWHERE)
        return made

    def _merge(self, file: Path) -> None:
        self._take(_read(file), file.parent)

    def _take(self, document: dict[str, Any], folder: Path) -> None:
        self.current = self.current or str(document.get("current-context") or "")
        for plural, kind in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            for item in _list(document.get(plural)):
                name, entry = str(item.get("name") or ""), item.get(kind)
                if isinstance(entry, dict):
                    self._entries.setdefault((kind, name), (entry, folder))

    @property
    def contexts(self) -> list[str]:
        """Names of the contexts."""
        return [name for kind, name in self._entries if kind == "context"]

    def access(self, context: str | None = None) -> Access:
        """How to reach the cluster of `context`, else of the current context.

        Raises:
            UserFault: there is no such context, or it is not complete.
        """
        name = context or self.current
        if not name:
            raise UserFault(f"{self._where} has no current context; choose one with --context")
        found, _ = self._entry("context", name)
        cluster, beside = self._entry("cluster", str(found.get("cluster") or ""))
        user, near = self._entries.get(("user", str(found.get("user") or "")), ({}, beside))
        server = str(cluster.get("server") or "").rstrip("/")
        if not server.startswith(("https://", "http://")):
            raise UserFault(f"context {name!r} in {self._where} names no server")
        return Access(
            context=name,
            server=server,
            namespace=str(found.get("namespace") or "default"),
            authority=_pem(cluster, "certificate-authority", beside),
            certificate=_pem(user, "client-certificate", near),
            key=_pem(user, "client-key", near),
            token=_token(user, near),
            insecure=cluster.get("insecure-skip-tls-verify") is True,
            server_name=str(cluster.get("tls-server-name") or ""),
        )

    def _entry(self, kind: str, name: str) -> Entry:
        entry = self._entries.get((kind, name))
        if entry is not None:
            return entry
        known = ", ".join(sorted(self.contexts)) or "none"
        hint = f"; there are: {known}" if kind == "context" else ""
        raise UserFault(f"there is no {kind} {name!r} in {self._where}{hint}")

    @property
    def _where(self) -> str:
        return ":".join(str(file) for file in self._files)


def load(paths: str | None) -> Kubeconfig:
    """The files that `paths` names, separated by colons, else the user's own.

    Raises:
        UserFault: a file cannot be read.
    """
    named = [Path(each).expanduser() for each in (paths or DEFAULT).split(":") if each]
    files = [each for each in named if each.is_file()]
    if not files:
        text = ":".join(map(str, named))
        raise UserFault(f"there is no kubeconfig {text}; name one with --kubeconfig or KUBECONFIG")
    return Kubeconfig(files)


def _read(file: Path) -> dict[str, Any]:
    from isthmus.serve.kube.yaml_body import strict_yaml

    try:
        document, _ = strict_yaml(file.read_bytes())
    except OSError as fault:
        raise UserFault(f"cannot read kubeconfig {file}: {fault.strerror}") from fault
    except UserFault as fault:
        raise UserFault(f"kubeconfig {file}: {fault.message}") from fault
    return document


def _list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _pem(entry: dict[str, Any], name: str, folder: Path) -> str:
    """What stands under `name`-data, or in the file that `name` names."""
    data = entry.get(f"{name}-data")
    try:
        if data:
            return base64.b64decode(str(data), validate=True).decode()
        return _file(entry, name, folder)
    except (binascii.Error, UnicodeDecodeError) as fault:
        raise UserFault(f"{name} in the kubeconfig is not PEM") from fault


def _token(entry: dict[str, Any], folder: Path) -> str:
    return str(entry.get("token") or "") or _file(entry, "tokenFile", folder).strip()


def _file(entry: dict[str, Any], name: str, folder: Path) -> str:
    path = entry.get(name)
    if not path:
        return ""
    if folder is NOWHERE:
        raise UserFault(f"{name} names a file; only {name}-data can be used here")
    try:
        return (folder / str(path)).read_text()
    except OSError as fault:
        raise UserFault(f"cannot read {name} {path}: {fault.strerror}") from fault

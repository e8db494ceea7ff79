"""A workload's directory: what its proxy reads. In memory, 0700, of the proxy's user.

    identity/key.pem        its key, PKCS#8
    identity/chain.pem      its certificate, and the intermediates
    identity/bundle.pem     whom to trust
    identity/default.yaml   key and chain once more, as Envoy's secret
    identity/ROOTCA.yaml    the bundle once more, as Envoy's secret
    bootstrap               Envoy's
    ads.sock, admin.sock    the agent's pipe, the Envoy's admin socket

Each file is renamed into place. Envoy takes one secret of one file, and reads key and chain from
the same one: it never sees a key beside another's chain.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from isthmus.agent.credential import Held
from isthmus.errors import Unavailable

IDENTITY: Final = "identity"
BOOTSTRAP: Final = "bootstrap.yaml"
ADS: Final = "ads.sock"
ADMIN: Final = "admin.sock"
TMPFS: Final = ("tmpfs", "ramfs")

_SECRET: Final = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"  # noqa: S105


class Directory:
    """One workload's."""

    def __init__(self, path: Path, uid: int | None) -> None:
        """`uid`: whose it is; None: ours."""
        self.path = path
        self._uid = uid

    @property
    def ads(self) -> Path:
        """The agent's socket."""
        return self.path / ADS

    @property
    def admin(self) -> Path:
        """The Envoy's admin socket."""
        return self.path / ADMIN

    def make(self) -> None:
        """Make it anew. Unavailable if it cannot be."""
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            for each in (self.path, self.path / IDENTITY):
                each.mkdir(mode=0o700)
                each.chmod(0o700)
                self._own(each)
        except OSError as fault:
            raise Unavailable(f"cannot make {self.path}: {fault.strerror}") from fault

    def remove(self) -> None:
        """Take it away, keys and all."""
        shutil.rmtree(self.path, ignore_errors=True)

    def write_bootstrap(self, data: bytes) -> None:
        """Envoy's bootstrap."""
        self._write(self.path / BOOTSTRAP, data)

    def write(self, held: Held) -> None:
        """Certificate, key and trust; the secrets last."""
        key, chain, bundle = held.leaf.key, held.leaf.certificate, held.bundle
        certificate = {"certificate_chain": _inline(chain), "private_key": _inline(key)}
        files = {
            "key.pem": key,
            "chain.pem": chain,
            "bundle.pem": bundle,
            "ROOTCA.yaml": _secret("ROOTCA", validation_context={"trusted_ca": _inline(bundle)}),
            "default.yaml": _secret("default", tls_certificate=certificate),
        }
        for name, data in files.items():
            path = self.path / IDENTITY / name
            if not path.exists() or path.read_bytes() != data:
                self._write(path, data)

    def _write(self, path: Path, data: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # 0600 from its birth
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            self._own(Path(name))
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _own(self, path: Path) -> None:
        if self._uid is not None:
            os.chown(path, self._uid, self._uid)


def in_memory(path: Path, mounts: str | None = None) -> bool:
    """Whether a path lies on a file system that is never written to a disk (but for swap)."""
    table = mounts if mounts is not None else Path("/proc/self/mounts").read_text()
    found, kind = -1, ""
    for line in table.splitlines():
        _, where, what, *_ = line.split(" ")
        if path.resolve().is_relative_to(where) and len(where) >= found:
            found, kind = len(where), what
    return kind in TMPFS


def _inline(pem: bytes) -> dict[str, str]:
    return {"inline_string": pem.decode()}


def _secret(name: str, **value: Any) -> bytes:  # noqa: ANN401  # JSON
    """A file of one secret; JSON, which is YAML."""
    return json.dumps({"resources": [{"@type": _SECRET, "name": name, **value}]}).encode()

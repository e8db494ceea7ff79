"""How others find a server: two files beside its data, one object in its store.

`endpoints.json` maps each listener to where it listens. `kubeconfig` has one context with the
admin's certificate. The ConfigMap `isthmus-endpoints` in the control plane's namespace says the
same as endpoints.json to whoever holds a kubeconfig only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from isthmus import ca
from isthmus.app.certificates import Certificates
from isthmus.app.listeners import reachable
from isthmus.config import ServerConfig
from isthmus.config.values import HostPort
from isthmus.errors import AlreadyExists, UserFault
from isthmus.model import registry
from isthmus.model.kind import Document, Kind
from isthmus.store.objects import Writer

CONFIG_MAP = "isthmus-endpoints"

Endpoints = Mapping[str, HostPort]


def withdraw(config: ServerConfig) -> None:
    """Nothing listens now: take endpoints.json away. The kubeconfig stays, its keys are good."""
    try:
        (config.data_dir / "endpoints.json").unlink(missing_ok=True)
    except OSError as fault:
        raise UserFault(f"cannot write in {config.data_dir}: {fault.strerror}") from fault


def write_files(config: ServerConfig, endpoints: Endpoints, certificates: Certificates) -> None:
    """Write endpoints.json and, where the API is served, kubeconfig; both atomically."""
    try:
        text = json.dumps(_texts(endpoints), indent=2) + "\n"
        ca.write_atomic(config.data_dir / "endpoints.json", text.encode(), mode=0o644)
        if "kube" in endpoints:
            write_kubeconfig(config, endpoints["kube"], certificates)
    except OSError as fault:
        raise UserFault(f"cannot write in {config.data_dir}: {fault.strerror}") from fault


def write_kubeconfig(config: ServerConfig, kube: HostPort, certificates: Certificates) -> None:
    """Write kubeconfig with a fresh admin certificate."""
    text = ca.kubeconfig(
        config.context_name,
        f"https://{reachable(kube)}",
        certificates.authority,
        certificates.admin(),
    )
    ca.write_atomic(config.data_dir / "kubeconfig", text)


async def publish(objects: Writer, config: ServerConfig, endpoints: Endpoints) -> None:
    """Make the ConfigMap say where this server listens; make its namespace if needed."""
    namespace = config.control_plane_namespace
    await create_if_absent(
        objects,
        kind("Namespace"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
    )
    wanted: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": namespace},
        "data": _texts(endpoints),
    }
    about = kind("ConfigMap")
    if not await create_if_absent(objects, about, wanted):
        await objects.update(
            about, namespace, CONFIG_MAP, lambda present: {**present, "data": wanted["data"]}
        )


async def create_if_absent(objects: Writer, about: Kind, document: Document) -> bool:
    """Create it; False if there is one of that name."""
    try:
        await objects.create(about, document)
    except AlreadyExists:
        return False
    return True


def kind(name: str) -> Kind:
    """A kind of the core group."""
    found = registry.by_kind("", name)
    if found is None:
        raise LookupError(f"the kind {name} is not registered")
    return found


def _texts(endpoints: Endpoints) -> dict[str, str]:
    return {name: str(at) for name, at in endpoints.items()}

"""The environment of a container: what its spec says, with all references followed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from isthmus.lab.images import expand
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.sources import (
    ConfigError,
    Sources,
    Where,
    config_data,
    field,
    resource_field,
)
from isthmus.model.document import items, mapping, text, truth

_NAME = re.compile(r"[-._A-Za-z0-9]+")

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base(pod: Document, where: Where) -> dict[str, str]:
    """What every container finds, whatever its spec says."""
    name = text(pod, "spec.hostname") or text(pod, "metadata.name")
    found = {
        "PATH": os.environ.get("PATH", DEFAULT_PATH),
        "HOSTNAME": name,
        "HOME": os.environ.get("HOME", "/"),
    }
    if where.api_host:
        host, port = where.api_host, str(where.api_port)
        found |= {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "KUBERNETES_PORT": f"tcp://{host}:{port}",
            f"KUBERNETES_PORT_{port}_TCP": f"tcp://{host}:{port}",
            f"KUBERNETES_PORT_{port}_TCP_PROTO": "tcp",
            f"KUBERNETES_PORT_{port}_TCP_PORT": port,
            f"KUBERNETES_PORT_{port}_TCP_ADDR": host,
        }
    return found


async def environment(
    container: Mapping[str, Any], pod: Document, where: Where, sources: Sources
) -> dict[str, str]:
    """All variables of a container; later ones may refer to earlier ones as `$(NAME)`.

    Raises:
        ConfigError: something it refers to is not there.
    """
    spec = dict(container)
    namespace = text(pod, "metadata.namespace")
    found = base(pod, where)
    for source in items(spec, "envFrom"):
        found |= await _all_of(source, namespace, sources)
    for variable in items(spec, "env"):
        name = text(variable, "name")
        reference = mapping(variable, "valueFrom")
        if not reference:
            found[name] = expand(text(variable, "value"), found)
            continue
        value = await _referred(reference, spec, pod, where, sources)
        if value is not None:
            found[name] = value
    return {name: value for name, value in found.items() if "\0" not in name + value}


async def _all_of(source: Document, namespace: str, sources: Sources) -> dict[str, str]:
    prefix = text(source, "prefix")
    for kind, member in (("configmap", "configMapRef"), ("secret", "secretRef")):
        reference = mapping(source, member)
        if reference:
            data = await config_data(
                sources, kind, namespace, text(reference, "name"),
                optional=truth(reference, "optional"),
            )  # fmt: skip
            names = {key: f"{prefix}{key}" for key in data}
            return {
                name: data[key].decode(errors="replace")
                for key, name in names.items()
                if _NAME.fullmatch(name)
            }
    return {}


async def _referred(
    reference: Document, spec: Document, pod: Document, where: Where, sources: Sources
) -> str | None:
    """The value a reference leads to; None when it may be missing and is."""
    if mapping(reference, "fieldRef"):
        return field(pod, where, text(reference, "fieldRef.fieldPath"))
    if mapping(reference, "resourceFieldRef"):
        return resource_field(pod, spec, mapping(reference, "resourceFieldRef"))
    for kind, member in (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef")):
        at = mapping(reference, member)
        if not at:
            continue
        optional = truth(at, "optional")
        name, key = text(at, "name"), text(at, "key")
        namespace = text(pod, "metadata.namespace")
        data = await config_data(sources, kind, namespace, name, optional=optional)
        if key in data:
            return data[key].decode(errors="replace")
        if optional:
            return None
        shown = {"configmap": "ConfigMap", "secret": "Secret"}[kind]
        raise ConfigError(f"couldn't find key {key} in {shown} {namespace}/{name}")
    raise ConfigError("a variable refers to nothing that is known")

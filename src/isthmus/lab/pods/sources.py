"""Where configuration comes from: ConfigMaps, Secrets, tokens, fields of the pod itself."""

from __future__ import annotations

import base64
import binascii
import math
import os
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import msgspec

from isthmus.errors import IsthmusError, NotFound
from isthmus.lab.pods.api import Api, Document
from isthmus.model.document import items, mapping, text, texts
from isthmus.model.quantity import parse_quantity


class ConfigError(Exception):
    """A container's configuration cannot be had (yet); the message is for its status."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod's own fields cannot tell: where it came to run."""

    node: str
    host_ip: str
    pod_ip: str
    cluster_domain: str = "cluster.local"
    api_host: str = ""
    api_port: int = 443


class Sources(Protocol):
    """Objects that configuration is taken from; raises `errors.NotFound`, `errors.Unavailable`."""

    async def config_map(self, namespace: str, name: str) -> Document:
        """The ConfigMap."""
        ...

    async def secret(self, namespace: str, name: str) -> Document:
        """The Secret."""
        ...

    async def token(self, pod: Document, audience: str, seconds: int) -> str:
        """A ServiceAccount token bound to the pod."""
        ...


class ApiSources:
    """Asks the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def config_map(self, namespace: str, name: str) -> Document:
        return await self._api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")

    async def secret(self, namespace: str, name: str) -> Document:
        return await self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")

    async def token(self, pod: Document, audience: str, seconds: int) -> str:
        namespace = text(pod, "metadata.namespace")
        account = text(pod, "spec.serviceAccountName") or "default"
        bound = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": text(pod, "metadata.name"),
            "uid": text(pod, "metadata.uid"),
        }
        asked: Document = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, "boundObjectRef": bound},
        }
        if audience:
            asked["spec"]["audiences"] = [audience]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return text(await self._api.create(path, asked), "status.token")


class Nothing:
    """For machines outside every cluster: there is nothing to refer to."""

    async def config_map(self, namespace: str, name: str) -> Document:
        raise NotFound(f'configmap "{name}" not found')

    async def secret(self, namespace: str, name: str) -> Document:
        raise NotFound(f'secret "{name}" not found')

    async def token(self, pod: Document, audience: str, seconds: int) -> str:
        raise NotFound("no cluster, no tokens")


async def config_data(
    sources: Sources, kind: str, namespace: str, name: str, *, optional: bool
) -> dict[str, bytes]:
    """The data of a ConfigMap or Secret; empty if it may be missing and is, else ConfigError."""
    try:
        if kind == "configmap":
            document = await sources.config_map(namespace, name)
        else:
            document = await sources.secret(namespace, name)
    except NotFound:
        if optional:
            return {}
        raise ConfigError(f'{kind} "{name}" not found') from None
    except IsthmusError as fault:
        raise ConfigError(f'{kind} "{name}": {fault.message}') from fault
    found = {key: _bytes(raw) for key, raw in texts(document, "binaryData").items()}
    if kind == "secret":
        return found | {key: _bytes(raw) for key, raw in texts(document, "data").items()}
    return found | {key: raw.encode() for key, raw in texts(document, "data").items()}


def _bytes(raw: str) -> bytes:
    try:
        return base64.b64decode(raw)
    except (ValueError, binascii.Error):
        return b""


# ----------------------------------------------------------------------------- the pod's own fields

_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def field(pod: Document, where: Where, path: str) -> str:
    """The value of a downward API field (`metadata.labels['app']`, `status.podIP`).

    ConfigError for one that does not exist.
    """
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return texts(pod, f"metadata.{keyed[1]}").get(keyed[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = texts(pod, path)
        return "\n".join(f"{key}={_quoted(pairs[key])}" for key in sorted(pairs))
    found = {
        "metadata.name": text(pod, "metadata.name"),
        "metadata.namespace": text(pod, "metadata.namespace"),
        "metadata.uid": text(pod, "metadata.uid"),
        "spec.nodeName": where.node,
        "spec.serviceAccountName": text(pod, "spec.serviceAccountName"),
        "status.hostIP": where.host_ip,
        "status.hostIPs": where.host_ip,
        "status.podIP": where.pod_ip,
        "status.podIPs": where.pod_ip,
    }.get(path)
    if found is None:
        raise ConfigError(f"fieldPath {path!r} is not supported")
    return found


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def resource_field(pod: Document, container: Mapping[str, Any], reference: Document) -> str:
    """A request or limit, in units of the divisor, rounded up; the machine's if none is said."""
    name = text(reference, "containerName")
    if name:
        named = [each for each in items(pod, "spec.containers") if each.get("name") == name]
        container = named[0] if named else {}
    path = text(reference, "resource")
    what, _, resource = path.partition(".")
    said = mapping(dict(container), f"resources.{what}").get(resource)
    amount = parse_quantity(str(said)) if said is not None else _whole(resource, what)
    divisor = parse_quantity(str(reference.get("divisor") or "1")) or Fraction(1)
    if amount is None:
        raise ConfigError(f"resource {path!r} is not supported")
    return str(math.ceil(amount / (divisor or Fraction(1))))


def _whole(resource: str, what: str) -> Fraction | None:
    if what == "requests":
        return Fraction(0)
    match resource:
        case "cpu":
            return Fraction(os.cpu_count() or 1)
        case "memory":
            return Fraction(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        case "ephemeral-storage":
            return Fraction(0)
        case _:
            return None

"""The base objects of the mesh profile, and routes on them, as manifests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]

MESH = "gateway-conformance-mesh"
CONSUMER = "gateway-conformance-mesh-consumer"
HERE = Path(__file__)


def base() -> list[Manifest]:
    """Two namespaces, two versions of `echo`, and a client without a Service."""
    found = [_namespace(MESH, "mesh"), _namespace(CONSUMER, "mesh-consumer")]
    found += [_deployment("echo-v1", MESH), _deployment("echo-v2", MESH)]
    found += [
        _service("echo-v1", {"app": "echo", "version": "v1"}),
        _service("echo-v2", {"app": "echo", "version": "v2"}),
        _service("echo", {"app": "echo"}),
    ]
    return [*found, _deployment("echo-v1", CONSUMER)]


def _namespace(name: str, label: str) -> Manifest:
    labels = {"gateway-conformance": label}
    metadata = {"name": name, "labels": labels, "annotations": {"linkerd.io/inject": "enabled"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _deployment(name: str, namespace: str) -> Manifest:
    labels = {"app": "echo", "version": name.removeprefix("echo-")}
    container = {
        "name": "echo",
        "image": "shell",
        "command": [sys.executable, str(HERE.with_name("echo.py"))],
        "ports": [{"containerPort": port} for port in (8080, 7070, 9090)],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 2}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _service(name: str, selector: dict[str, str]) -> Manifest:
    ports: list[Manifest] = [
        {"name": "http", "port": 80, "targetPort": 8080, "appProtocol": "http"},
        {"name": "http-alt", "port": 8080, "targetPort": 8080, "appProtocol": "http"},
        {"name": "https", "port": 443, "targetPort": 8443},
        {"name": "tcp", "port": 9090, "targetPort": 9090},
        {"name": "grpc", "port": 7070, "targetPort": 7070, "appProtocol": "grpc"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": MESH},
        "spec": {"selector": selector, "ports": ports},
    }


# ------------------------------------------------------------------------------------- routes


def route(
    name: str,
    parent: str,
    *rules: Manifest,
    port: int | None = 80,
    kind: str = "HTTPRoute",
    namespace: str = MESH,
) -> Manifest:
    """A route whose parent is a Service; without a port it is for all of them."""
    ref: Manifest = {"group": "", "kind": "Service", "name": parent}
    ref |= {"port": port} if port else {}
    ref |= {"namespace": MESH} if namespace != MESH else {}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parentRefs": [ref], "rules": list(rules)},
    }


def prefix(path: str, **more: Any) -> Manifest:  # noqa: ANN401 - JSON
    """A match of a path's beginning."""
    return {"path": {"type": "PathPrefix", "value": path}, **more}


def exact(path: str) -> Manifest:
    """A match of a whole path."""
    return {"path": {"type": "Exact", "value": path}}


def header(name: str, value: str) -> Manifest:
    """A match of a header alone."""
    return {"headers": [{"name": name, "value": value}]}


def query(value: str) -> Manifest:
    """A match of the query parameter `animal`."""
    return {"queryParams": [{"name": "animal", "value": value}]}


def to(name: str, port: int = 8080, **more: Any) -> Manifest:  # noqa: ANN401 - JSON
    """A backend."""
    return {"name": name, "port": port, **more}


def rule(*matches: Manifest, **more: Any) -> Manifest:  # noqa: ANN401 - JSON
    """A rule: `backend` names one."""
    backends = more.pop("backend", None)
    made: Manifest = {"matches": list(matches)} if matches else {}
    if backends is not None:
        made["backendRefs"] = backends if isinstance(backends, list) else [backends]
    return made | more


def pairs(**values: str) -> list[Manifest]:
    """Headers by name; `_` stands for `-`."""
    return [{"name": name.replace("_", "-"), "value": value} for name, value in values.items()]


def request_headers(**change: Any) -> Manifest:  # noqa: ANN401 - JSON
    """A filter that changes a request's headers."""
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": change}


def response_header(value: str) -> Manifest:
    """A filter that sets `X-Header-Set` of the response."""
    change = {"set": pairs(X_Header_Set=value)}
    return {"type": "ResponseHeaderModifier", "responseHeaderModifier": change}


def redirect(**said: Any) -> Manifest:  # noqa: ANN401 - JSON
    """A filter that redirects."""
    return {"type": "RequestRedirect", "requestRedirect": said}


def full(path: str) -> Manifest:
    """The whole path replaced."""
    return {"type": "ReplaceFullPath", "replaceFullPath": path}


def stem(path: str) -> Manifest:
    """The prefix that matched replaced."""
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}

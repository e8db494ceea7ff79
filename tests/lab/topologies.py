"""The topologies and manifests of these tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Json = Any
"""A value of a manifest."""

ECHO = "example.org/echo:1"
"""An image that serves its working folder on $PORT."""

IMAGES = {"example.org/echo:*": [sys.executable, "-m", "http.server", "$PORT"]}


def write(folder: Path, document: dict[str, Any], **manifests: list[dict[str, Any]]) -> Path:
    """A topology as a file, with its manifests beside it. YAML is a superset of JSON."""
    for name, objects in manifests.items():
        text = "\n---\n".join(json.dumps(each) for each in objects)
        (folder / f"{name}.yaml").write_text(text)
    path = folder / "topology.yaml"
    path.write_text(json.dumps({"images": IMAGES, **document}))
    return path


def cluster(number: int, name: str, network: str, *manifests: str) -> dict[str, Any]:
    """One cluster of a topology."""
    return {
        "name": name,
        "podCIDR": f"10.55.{number}.0/24",
        "serviceCIDR": f"10.56.{number}.0/24",
        "network": network,
        "manifests": [f"{each}.yaml" for each in manifests],
        "server": {"store": "memory:"},
    }


def container(**fields: Json) -> dict[str, Any]:
    """A container that serves HTTP on 8080 and is ready when it does."""
    found: dict[str, Any] = {
        "name": "echo",
        "image": ECHO,
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "PORT", "value": "8080"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
    }
    return found | fields


def pod(name: str, *containers: dict[str, Any], **spec: Json) -> dict[str, Any]:
    """A pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": list(containers), "terminationGracePeriodSeconds": 2, **spec},
    }


def shell(script: str, **fields: Json) -> dict[str, Any]:
    """A container that runs a shell script."""
    return {"name": "main", "image": "shell", "command": ["sh", "-c", script], **fields}


def deployment(
    name: str, replicas: int, *containers: dict[str, Any], **spec: Json
) -> dict[str, Any]:
    """A deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": list(containers), "terminationGracePeriodSeconds": 2, **spec,
                },
            },
        },
    }  # fmt: skip


def service(name: str, **spec: Json) -> dict[str, Any]:
    """A service on port 80."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}], **spec,
        },
    }  # fmt: skip


def config(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }

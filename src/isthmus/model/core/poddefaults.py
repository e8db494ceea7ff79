"""What the API server fills into pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from isthmus.model.document import ensure, items, mapping, settle, text, truth

_DEFAULT_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUME_SOURCE_MODES: Final = ("configMap", "secret", "projected", "downwardAPI")


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Defaults of a PodSpec, wherever it stands: a pod, or a template of a workload."""
    settle(spec, "restartPolicy", "Always")
    settle(spec, "dnsPolicy", "ClusterFirst")
    settle(spec, "terminationGracePeriodSeconds", 30)
    settle(spec, "securityContext", {})
    settle(spec, "schedulerName", "default-scheduler")
    _mirror_account(spec)
    for volume in items(spec, "volumes"):
        _default_volume(volume)
    for container in containers(spec):
        _default_container(container, host_network=truth(spec, "hostNetwork"))


def default_pod(spec: dict[str, Any]) -> None:
    """Defaults that a pod has and a template has not."""
    settle(spec, "enableServiceLinks", value=True)
    settle(spec, "preemptionPolicy", "PreemptLowerPriority")
    settle(spec, "priority", 0)
    settle(spec, "serviceAccountName", "default")
    _mirror_account(spec)


def containers(spec: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Every container of a PodSpec, of all three kinds."""
    for name in ("containers", "initContainers", "ephemeralContainers"):
        yield from items(spec, name)


def _mirror_account(spec: dict[str, Any]) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`; both say the same."""
    name = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_container(container: dict[str, Any], *, host_network: bool) -> None:
    settle(container, "terminationMessagePath", "/dev/termination-log")
    settle(container, "terminationMessagePolicy", "File")
    settle(container, "imagePullPolicy", _pull_policy(text(container, "image")))
    settle(container, "resources", {})
    for port in items(container, "ports"):
        settle(port, "protocol", "TCP")
        if host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    for variable in items(container, "env"):
        reference = mapping(variable, "valueFrom.fieldRef")
        if reference:
            settle(reference, "apiVersion", "v1")
    for name in _PROBES:
        if isinstance(container.get(name), dict):
            _default_probe(container[name])
    for name in ("lifecycle.postStart", "lifecycle.preStop"):
        _default_handler(mapping(container, name))
    limits = mapping(container, "resources.limits")
    for resource, limit in limits.items():
        settle(ensure(container, "resources.requests"), resource, limit)


def _pull_policy(image: str) -> str:
    """Always for `latest` and for no tag at all, else IfNotPresent."""
    if "@" in image:
        return "IfNotPresent"
    _, _, last = image.rpartition("/")
    _, _, tag = last.partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_probe(probe: dict[str, Any]) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(name):
            probe[name] = value
    _default_handler(probe)


def _default_handler(handler: dict[str, Any]) -> None:
    get = mapping(handler, "httpGet")
    if get:
        settle(get, "path", "/")
        settle(get, "scheme", "HTTP")
    grpc = mapping(handler, "grpc")
    if grpc and grpc.get("service") is None:
        grpc["service"] = ""


def _default_volume(volume: dict[str, Any]) -> None:
    if not any(isinstance(value, dict) for value in volume.values()):
        volume["emptyDir"] = {}
    for name in _VOLUME_SOURCE_MODES:
        if isinstance(volume.get(name), dict):
            settle(volume[name], "defaultMode", _DEFAULT_MODE)
    host = volume.get("hostPath")
    if isinstance(host, dict) and host.get("type") is None:
        host["type"] = ""
    for source in items(volume, "projected.sources"):
        token = mapping(source, "serviceAccountToken")
        if token:
            settle(token, "expirationSeconds", 3600)
        for reference in items(source, "downwardAPI.items"):
            _default_field(reference)
    for reference in items(volume, "downwardAPI.items"):
        _default_field(reference)


def _default_field(item: dict[str, Any]) -> None:
    reference = mapping(item, "fieldRef")
    if reference:
        settle(reference, "apiVersion", "v1")

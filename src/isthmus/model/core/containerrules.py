"""What a container must keep to (Kubernetes: validateContainerCommon)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.core.servicerules import PROTOCOLS, target_faults
from isthmus.model.document import get, items, mapping, number, text
from isthmus.model.faults import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
)
from isthmus.model.names import (
    env_name_problems,
    label_problems,
    port_name_problems,
    port_problems,
)
from isthmus.model.quantity import parse_quantity

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PULL: Final = ("Always", "IfNotPresent", "Never")


def container_faults(container: Mapping[str, Any], path: str, volumes: set[str]) -> Iterator[Cause]:
    """Every fault of one container at `path`; `volumes` are the names it may mount."""
    name = text(container, "name")
    if not name:
        yield required(f"{path}.name")
    for problem in label_problems(name) if name else ():
        yield invalid(f"{path}.name", name, problem)
    image = text(container, "image")
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(f"{path}.imagePullPolicy", text(container, "imagePullPolicy"), _PULL)
    yield from _ports_faults(container, path)
    yield from _env_faults(container, path)
    yield from _mounts_faults(container, path, volumes)
    for probe in _PROBES:
        if isinstance(container.get(probe), dict):
            yield from _probe_faults(container[probe], f"{path}.{probe}")
    yield from _resources_faults(mapping(container, "resources"), f"{path}.resources")


def _ports_faults(container: Mapping[str, Any], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(items(container, "ports")):
        here, name = f"{path}.ports[{index}]", text(port, "name")
        for problem in port_name_problems(name) if name else ():
            yield invalid(f"{here}.name", name, problem)
        if name and name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)
        if not number(port, "containerPort"):
            yield required(f"{here}.containerPort")
        else:
            for problem in port_problems(number(port, "containerPort")):
                yield invalid(f"{here}.containerPort", port["containerPort"], problem)
        if number(port, "hostPort"):
            for problem in port_problems(number(port, "hostPort")):
                yield invalid(f"{here}.hostPort", port["hostPort"], problem)
        yield from one_of(f"{here}.protocol", text(port, "protocol"), PROTOCOLS)


def _env_faults(container: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, variable in enumerate(items(container, "env")):
        here, name = f"{path}.env[{index}]", text(variable, "name")
        if not name:
            yield required(f"{here}.name")
        for problem in env_name_problems(name) if name else ():
            yield invalid(f"{here}.name", name, problem)
        source = get(variable, "valueFrom")
        if not isinstance(source, dict):
            continue
        if text(variable, "value"):
            yield invalid(f"{here}.valueFrom", "", "may not be specified when `value` is not empty")
        set_sources = [key for key, value in source.items() if isinstance(value, dict)]
        if not set_sources:
            says = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`"
            yield invalid(f"{here}.valueFrom", "", f"{says} or `secretKeyRef`")
        elif len(set_sources) > 1:
            says = "may not have more than one field specified at a time"
            yield invalid(f"{here}.valueFrom", "", says)


def _mounts_faults(container: Mapping[str, Any], path: str, volumes: set[str]) -> Iterator[Cause]:
    paths: set[str] = set()
    for index, mount in enumerate(items(container, "volumeMounts")):
        here, name, at = (
            f"{path}.volumeMounts[{index}]",
            text(mount, "name"),
            text(mount, "mountPath"),
        )
        if not name:
            yield required(f"{here}.name")
        elif name not in volumes:
            yield not_found(f"{here}.name", name)
        if not at:
            yield required(f"{here}.mountPath")
        elif at in paths:
            yield invalid(f"{here}.mountPath", at, "must be unique")
        paths.add(at)


def _probe_faults(probe: Mapping[str, Any], path: str) -> Iterator[Cause]:
    handlers = [name for name in _HANDLERS if isinstance(probe.get(name), dict)]
    if not handlers:
        yield required(path, "must specify a handler type")
    for extra in handlers[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    for name in ("httpGet", "tcpSocket", "grpc"):
        if name in handlers:
            yield from _probe_port_faults(probe[name], f"{path}.{name}")
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds"):
        if number(probe, name) < 0:
            says = "must be greater than or equal to 0"
            yield invalid(f"{path}.{name}", number(probe, name), says)


def _probe_port_faults(handler: Mapping[str, Any], path: str) -> Iterator[Cause]:
    port = handler.get("port")
    if port is None or port == "":
        yield required(f"{path}.port")
    else:
        yield from target_faults(port, f"{path}.port")


def _resources_faults(resources: Mapping[str, Any], path: str) -> Iterator[Cause]:
    limits = mapping(resources, "limits")
    for resource, asked in mapping(resources, "requests").items():
        request, limit = _amount(asked), _amount(limits.get(resource))
        if request is not None and request < 0:
            says = "must be greater than or equal to 0"
            yield invalid(f"{path}.requests[{resource}]", asked, says)
        if request is not None and limit is not None and request > limit:
            says = f"must be less than or equal to {resource} limit of {limits[resource]}"
            yield invalid(f"{path}.requests", asked, says)


def _amount(value: object) -> float | None:
    found = parse_quantity(value) if isinstance(value, str) else None
    return None if found is None else float(found)

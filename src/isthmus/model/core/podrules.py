"""What pods and pod templates must keep to (Kubernetes: ValidatePodSpec, ValidatePodUpdate)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.core.containerrules import container_faults
from isthmus.model.document import get, items, number, text, texts
from isthmus.model.faults import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    too_many,
)
from isthmus.model.kind import Document
from isthmus.model.metacheck import annotations_faults, labels_faults
from isthmus.model.names import Grammar, label_problems, subdomain_problems

MAX_CONTAINERS: Final = 256

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
}

_NAMES: Final[Mapping[str, Grammar]] = {
    "serviceAccountName": subdomain_problems,
    "nodeName": subdomain_problems,
    "hostname": label_problems,
    "subdomain": label_problems,
}


def pod_faults(document: Document, old: Document | None) -> Iterator[Cause]:
    """Every fault of a pod."""
    spec = get(document, "spec") or {}
    if old is None:
        yield from pod_spec_faults(spec, "spec")
        return
    yield from _images_faults(spec)
    if _fixed(spec) != _fixed_before(spec, get(old, "spec") or {}):
        yield forbidden("spec", _FIXED)


def template_faults(template: object, path: str) -> Iterator[Cause]:
    """Every fault of a PodTemplateSpec at `path`."""
    yield from labels_faults(texts(template, "metadata.labels"), f"{path}.metadata.labels")
    annotations = texts(template, "metadata.annotations")
    yield from annotations_faults(annotations, f"{path}.metadata.annotations")
    yield from pod_spec_faults(get(template, "spec") or {}, f"{path}.spec")


def pod_spec_faults(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Every fault of a PodSpec at `path`."""
    volumes = {text(each, "name") for each in items(spec, "volumes")}
    yield from _volumes_faults(spec, path)
    yield from _containers_faults(spec, path, volumes)
    for name, words in _WORDS.items():
        yield from one_of(f"{path}.{name}", text(spec, name), words)
    for name, grammar in _NAMES.items():
        value = text(spec, name)
        for problem in grammar(value) if value else ():
            yield invalid(f"{path}.{name}", value, problem)
    yield from labels_faults(texts(spec, "nodeSelector"), f"{path}.nodeSelector")
    if number(spec, "terminationGracePeriodSeconds") < 0:
        seconds = number(spec, "terminationGracePeriodSeconds")
        says = "must be greater than or equal to 0"
        yield invalid(f"{path}.terminationGracePeriodSeconds", seconds, says)


def _volumes_faults(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, volume in enumerate(items(spec, "volumes")):
        here, name = f"{path}.volumes[{index}]", text(volume, "name")
        if not name:
            yield required(f"{here}.name")
        elif name in names:
            yield duplicate(f"{here}.name", name)
        for problem in label_problems(name) if name else ():
            yield invalid(f"{here}.name", name, problem)
        names.add(name)
        sources = [key for key, value in volume.items() if isinstance(value, dict)]
        for extra in sources[1:]:
            yield forbidden(f"{here}.{extra}", "may not specify more than 1 volume type")


def _containers_faults(spec: Mapping[str, Any], path: str, volumes: set[str]) -> Iterator[Cause]:
    if not items(spec, "containers"):
        yield required(f"{path}.containers")
    names: set[str] = set()
    for group in ("containers", "initContainers", "ephemeralContainers"):
        listed = items(spec, group)
        if len(listed) > MAX_CONTAINERS:
            yield too_many(f"{path}.{group}", len(listed), MAX_CONTAINERS)
            continue
        for index, container in enumerate(listed):
            here, name = f"{path}.{group}[{index}]", text(container, "name")
            if name and name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
            yield from container_faults(container, here, volumes)
            restart = text(container, "restartPolicy")
            if restart and group == "initContainers" and restart != "Always":
                yield not_supported(f"{here}.restartPolicy", restart, ("Always",))


# -------------------------------------------------------------------------------------- updates

_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions"
    " to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it"
    " was previously negative)"
)

_CONTAINER_LISTS: Final = ("containers", "initContainers")
_FREE: Final = ("activeDeadlineSeconds", "tolerations", "ephemeralContainers", "schedulingGates")


def _fixed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a PodSpec that no update may change."""
    kept = {key: value for key, value in spec.items() if key not in _FREE}
    for name in _CONTAINER_LISTS:
        kept[name] = [
            {key: value for key, value in each.items() if key not in ("image", "resizePolicy")}
            for each in items(spec, name)
        ]
    return kept


def _fixed_before(spec: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The same of the old spec, with what may change once: the node, a negative grace period."""
    kept = _fixed(old)
    if not text(old, "nodeName") and text(spec, "nodeName"):
        kept["nodeName"] = spec["nodeName"]
    grace = "terminationGracePeriodSeconds"
    if number(old, grace) < 0 and number(spec, grace) == 1:
        kept[grace] = 1
    return kept


def _images_faults(spec: Mapping[str, Any]) -> Iterator[Cause]:
    for group in _CONTAINER_LISTS:
        for index, container in enumerate(items(spec, group)):
            if not text(container, "image"):
                yield required(f"spec.{group}[{index}].image")

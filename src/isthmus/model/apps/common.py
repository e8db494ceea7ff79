"""What the workload kinds share: templates, selectors, counts, columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import WIDE
from isthmus.model.core.poddefaults import default_pod_spec
from isthmus.model.core.podrules import template_faults
from isthmus.model.document import ensure, get, items, mapping, number, text, texts
from isthmus.model.faults import invalid, not_supported, required
from isthmus.model.kind import Column, Document
from isthmus.model.meta import View
from isthmus.model.selectors import document_selects, is_empty, selector_faults, selector_text


class RollingUpdate(View, frozen=True):
    """Deployment: maxSurge and maxUnavailable, numbers or percentages; StatefulSet: partition."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int = 0


class Strategy(View, frozen=True):
    """RollingUpdate, Recreate (Deployment only) or OnDelete (StatefulSet only)."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


def default_template(document: Document) -> None:
    """Defaults of the pod template that stands at `spec.template`."""
    default_pod_spec(ensure(document, "spec.template.spec"))


def forget_status(document: Document, old: Document | None) -> None:
    """An object is born without status; only its controller tells one."""
    if old is None:
        document["status"] = {}


def selector_and_template_faults(
    document: Document, what: str, restart: tuple[str, ...] = ("Always",)
) -> Iterator[Cause]:
    """Faults of selector and template, and of how they fit; `restart`: allowed policies."""
    selector, template = get(document, "spec.selector"), mapping(document, "spec.template")
    if not isinstance(selector, dict):
        yield required("spec.selector")
    else:
        yield from selector_faults(selector, "spec.selector")
        labels = texts(template, "metadata.labels")
        if is_empty(selector):
            yield invalid("spec.selector", selector, f"empty selector is invalid for {what}")
        elif not document_selects(selector, labels):
            says = "`selector` does not match template `labels`"
            yield invalid("spec.template.metadata.labels", labels, says)
    yield from template_faults(template, "spec.template")
    policy = text(template, "spec.restartPolicy")
    if policy not in restart:
        yield not_supported("spec.template.spec.restartPolicy", policy, restart)


def count_faults(document: Document, *names: str) -> Iterator[Cause]:
    """Faults of numbers in `spec` that may not be negative."""
    for name in names:
        value = number(document, f"spec.{name}")
        if value < 0:
            yield invalid(f"spec.{name}", value, "must be greater than or equal to 0")


def percent(value: object) -> int | None:
    """50 of `50%`; None of anything else."""
    if not isinstance(value, str) or not value.endswith("%"):
        return None
    digits = value[:-1]
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else None


def share_faults(value: object, path: str) -> Iterator[Cause]:
    """Faults of a number or a percentage, such as maxSurge."""
    says = "must be a non-negative number or a percentage such as 25%"
    match value:
        case None | bool():
            return
        case int() if value < 0:
            yield invalid(path, value, says)
        case str() if percent(value) is None:
            yield invalid(path, value, says)
        case _:
            return


# -------------------------------------------------------------------------------------- columns


def _containers(document: Document, _now: float) -> str:
    return ",".join(text(each, "name") for each in items(document, "spec.template.spec.containers"))


def _images(document: Document, _now: float) -> str:
    listed = items(document, "spec.template.spec.containers")
    return ",".join(text(each, "image") for each in listed)


def _selector(document: Document, _now: float) -> str:
    return selector_text(get(document, "spec.selector")) or "<none>"


CONTAINERS: Final = Column("Containers", _containers, priority=WIDE)
IMAGES: Final = Column("Images", _images, priority=WIDE)
SELECTOR: Final = Column("Selector", _selector, priority=WIDE)


def _ready(document: Document, _now: float) -> str:
    return f"{number(document, 'status.readyReplicas')}/{number(document, 'spec.replicas')}"


READY: Final = Column("Ready", _ready)

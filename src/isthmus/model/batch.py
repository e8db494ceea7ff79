"""The batch API group: Job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from isthmus.errors import Cause
from isthmus.model.apps.common import (
    CONTAINERS,
    IMAGES,
    SELECTOR,
    count_faults,
    default_template,
    forget_status,
)
from isthmus.model.columns import AGE
from isthmus.model.core.podrules import template_faults
from isthmus.model.document import ensure, get, items, mapping, number, settle, text, truth
from isthmus.model.faults import immutable, not_supported, one_of
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Condition, CountedMeta, LabelSelector, View
from isthmus.model.times import human_duration, parse_seconds
from isthmus.model.wire.schemas import schema_of


class JobSpec(View, frozen=True):
    """batch/v1 JobSpec, in part; the template is whole."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    selector: LabelSelector = LabelSelector()
    template: Mapping[str, Any] = {}
    suspend: bool = False


class JobStatus(View, frozen=True):
    """batch/v1 JobStatus, in part."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    """batch/v1 Job."""

    metadata: CountedMeta = CountedMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


_WORDS: Final = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _status(document: Document, _now: float) -> str:
    true = {
        text(each, "type")
        for each in items(document, "status.conditions")
        if text(each, "status") == "True"
    }
    for word in _WORDS[:2]:
        if word in true:
            return word
    if get(document, "metadata.deletionTimestamp"):
        return "Terminating"
    return next((word for word in _WORDS[2:] if word in true), "Running")


def _completions(document: Document, _now: float) -> str:
    done, wanted = number(document, "status.succeeded"), get(document, "spec.completions")
    if wanted is not None:
        return f"{done}/{number(document, 'spec.completions')}"
    at_once = number(document, "spec.parallelism")
    return f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"


def _duration(document: Document, now: float) -> str:
    started = parse_seconds(text(document, "status.startTime"))
    if started is None:
        return ""
    ended = parse_seconds(text(document, "status.completionTime"))
    return human_duration((now if ended is None else ended) - started)


def _default(document: Document) -> None:
    spec = ensure(document, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    settle(spec, "parallelism", 1)
    settle(spec, "backoffLimit", 6)
    settle(spec, "completionMode", "NonIndexed")
    settle(spec, "suspend", value=False)
    settle(spec, "podReplacementPolicy", "TerminatingOrFailed")


def _carry(document: Document, old: Document | None) -> None:
    """A job finds its pods by its own uid, unless its writer chose the selector by hand."""
    spec, uid = ensure(document, "spec"), text(document, "metadata.uid")
    if old is not None or not uid or truth(spec, "manualSelector"):
        return
    labels = ensure(spec, "template.metadata.labels")
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = text(document, "metadata.name")
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _check(document: Document, old: Document | None) -> Iterator[Cause]:
    yield from count_faults(
        document, "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"
    )
    mode = text(document, "spec.completionMode")
    yield from one_of("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    yield from template_faults(mapping(document, "spec.template"), "spec.template")
    path = "spec.template.spec.restartPolicy"
    if text(document, path) not in ("OnFailure", "Never"):
        yield not_supported(path, text(document, path), ("OnFailure", "Never"))
    if old is not None:
        for name in ("spec.selector", "spec.completions", "spec.completionMode", "spec.template"):
            if get(document, name) != get(old, name):
                yield immutable(name, get(document, name))


JOB: Final = Kind(
    group="batch",
    name="Job",
    plural="jobs",
    singular="job",
    categories=("all",),
    versions=(
        Version(
            "v1",
            schema_of("batch.v1.Job"),
            columns=(
                Column("Status", _status),
                Column("Completions", _completions),
                Column("Duration", _duration),
                AGE,
                CONTAINERS,
                IMAGES,
                SELECTOR,
            ),
        ),
    ),
    stored="v1",
    view=Job,
    default=(_default, default_template),
    carry=(forget_status, _carry),
    check=(_check,),
    field_selectors={"status.successful": "status.succeeded"},
    custom=False,
)

KINDS: tuple[Kind, ...] = (JOB,)

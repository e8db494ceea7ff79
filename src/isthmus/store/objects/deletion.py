"""How objects go: finalizers, a Pod's grace, a Namespace's emptying. Pure functions on documents.

A delete marks the object (deletionTimestamp) when somebody must do something first, and the object
goes with the update that leaves nothing to wait for. Else it goes at once.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.errors import BadRequest
from isthmus.model.kind import Document, Kind
from isthmus.model.times import format_seconds, parse_seconds
from isthmus.store.objects.metadata import finalizers_of, metadata_of

POLICIES: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
"""propagationPolicy -> the finalizer that the garbage collector works off."""

DEFAULT_GRACE: Final = 30
"""Seconds that a Pod gets to end (Kubernetes: terminationGracePeriodSeconds)."""

LONGEST_GRACE: Final = 10 * 365 * 86_400


def check_options(propagation: str, grace_seconds: int | None) -> None:
    """BadRequest for a policy or a grace that does not exist."""
    if propagation not in ("", "Background", *POLICIES):
        raise BadRequest(
            f"propagationPolicy {propagation!r} is none of Background, Foreground and Orphan"
        )
    if grace_seconds is not None and not 0 <= grace_seconds <= LONGEST_GRACE:
        raise BadRequest(f"gracePeriodSeconds {grace_seconds} is not from 0 to {LONGEST_GRACE}")


def marked(
    kind: Kind, old: Document, *, now: float, propagation: str, grace_seconds: int | None
) -> Document:
    """The object as a delete leaves it, if it stays at all (see `gone`).

    An empty `propagation` leaves finalizers alone. A second delete can shorten the grace only.
    """
    metadata = dict(metadata_of(old))
    finalizers = _finalizers(finalizers_of(old), propagation)
    begins = kind.cleanup and not metadata.get("deletionTimestamp")
    if begins and kind.cleanup not in finalizers:
        finalizers = [*finalizers, kind.cleanup]
    _set_finalizers(metadata, finalizers)
    if metadata.get("deletionTimestamp"):
        _shorten(metadata, grace_seconds)
        return {**old, "metadata": metadata}
    grace = _grace(old, grace_seconds) if kind.resource == "pods" else 0
    metadata |= {
        "deletionTimestamp": format_seconds(now + grace),
        "deletionGracePeriodSeconds": grace,
    }
    if isinstance(metadata.get("generation"), int):
        metadata["generation"] += 1
    new = {**old, "metadata": metadata}
    if kind.resource == "namespaces":
        new["status"] = {**_object(old.get("status")), "phase": "Terminating"}
    return new


def gone(kind: Kind, document: Document) -> bool:
    """Nothing is left to wait for: the object is to be removed."""
    metadata = metadata_of(document)
    if not metadata.get("deletionTimestamp") or finalizers_of(document):
        return False
    if kind.resource == "namespaces" and _object(document.get("spec")).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _finalizers(held: list[str], propagation: str) -> list[str]:
    if not propagation:
        return held
    kept = [each for each in held if each not in POLICIES.values()]
    return [*kept, POLICIES[propagation]] if propagation in POLICIES else kept


def _set_finalizers(metadata: Document, finalizers: list[str]) -> None:
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers


def _grace(pod: Document, asked: int | None) -> int:
    """Seconds for a Pod to end: none if it never started on a node, or has ended."""
    spec, status = _object(pod.get("spec")), _object(pod.get("status"))
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    own = spec.get("terminationGracePeriodSeconds")
    return own if isinstance(own, int) and 0 <= own <= LONGEST_GRACE else DEFAULT_GRACE


def _shorten(metadata: Document, asked: int | None) -> None:
    held = metadata.get("deletionGracePeriodSeconds")
    if asked is None or not isinstance(held, int) or asked >= held:
        return
    due = parse_seconds(str(metadata["deletionTimestamp"]))
    if due is not None:
        metadata["deletionTimestamp"] = format_seconds(due - held + asked)
    metadata["deletionGracePeriodSeconds"] = asked


def _object(value: Any) -> Document:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, dict) else {}

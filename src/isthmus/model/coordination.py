"""The coordination.k8s.io API group: Lease, by which one of many is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import AGE, text_column
from isthmus.model.document import get, number
from isthmus.model.faults import invalid
from isthmus.model.kind import Document, Kind, Version
from isthmus.model.meta import Meta, View
from isthmus.model.wire.schemas import schema_of


class LeaseSpec(View, frozen=True):
    """coordination.k8s.io/v1 LeaseSpec. Times are RFC 3339 text with microseconds."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(View, frozen=True):
    """coordination.k8s.io/v1 Lease."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    seconds, changes = "spec.leaseDurationSeconds", "spec.leaseTransitions"
    if get(document, seconds) is not None and number(document, seconds) <= 0:
        yield invalid(seconds, number(document, seconds), "must be greater than 0")
    if number(document, changes) < 0:
        yield invalid(changes, number(document, changes), "must be greater than or equal to 0")


LEASE: Final = Kind(
    group="coordination.k8s.io",
    name="Lease",
    plural="leases",
    singular="lease",
    versions=(
        Version(
            "v1",
            schema_of("coordination.v1.Lease"),
            columns=(text_column("Holder", "spec.holderIdentity"), AGE),
        ),
    ),
    stored="v1",
    view=Lease,
    status=False,
    check=(_check,),
    generation=False,
    custom=False,
)

KINDS: tuple[Kind, ...] = (LEASE,)

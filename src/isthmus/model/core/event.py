"""Event: what controllers tell people. Nothing in the mesh reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import Cause
from isthmus.model.columns import WIDE, text_column
from isthmus.model.document import number, text
from isthmus.model.faults import invalid
from isthmus.model.kind import Column, Document, Kind, Version
from isthmus.model.meta import Meta, Reference, View
from isthmus.model.times import age
from isthmus.model.wire.schemas import schema_of


class Event(View, frozen=True):
    """core/v1 Event. `type` is Normal or Warning."""

    metadata: Meta = Meta()
    involved_object: Reference = Reference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0


def _first_seen(document: Document, now: float) -> str:
    return age(text(document, "firstTimestamp") or text(document, "eventTime"), now)


def _last_seen(document: Document, now: float) -> str:
    """The last time of the series, or of the event; the first where there was only one."""
    last = text(document, "series.lastObservedTime") or text(document, "lastTimestamp")
    return age(last, now) if last else _first_seen(document, now)


def _count(document: Document, _now: float) -> int:
    return number(document, "series.count") or number(document, "count") or 1


def _object(document: Document, _now: float) -> str:
    kind, name = text(document, "involvedObject.kind"), text(document, "involvedObject.name")
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _source(document: Document, _now: float) -> str:
    component = text(document, "source.component") or text(document, "reportingComponent")
    host = text(document, "source.host")
    return f"{component}, {host}" if component and host else component or host


def _check(document: Document, _old: Document | None) -> Iterator[Cause]:
    namespace = text(document, "involvedObject.namespace")
    if namespace and namespace != text(document, "metadata.namespace"):
        yield invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _message(document: Document, _now: float) -> str:
    return text(document, "message").strip()


_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

EVENT: Final = Kind(
    group="",
    name="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    versions=(
        Version(
            "v1",
            schema_of("core.v1.Event"),
            named=False,
            columns=(
                Column("Last Seen", _last_seen),
                text_column("Type", "type"),
                text_column("Reason", "reason"),
                Column("Object", _object),
                text_column("Subobject", "involvedObject.fieldPath", priority=WIDE),
                Column("Source", _source, priority=WIDE),
                Column("Message", _message),
                Column("First Seen", _first_seen, priority=WIDE),
                Column("Count", _count, "integer", priority=WIDE),
                text_column("Name", "metadata.name", priority=WIDE),
            ),
        ),
    ),
    stored="v1",
    view=Event,
    status=False,
    check=(_check,),
    field_selectors={
        **{f"involvedObject.{name}": f"involvedObject.{name}" for name in _ABOUT},
        "reason": "reason",
        "type": "type",
        "reportingComponent": "reportingComponent",
        "source": "source.component",
    },
    generation=False,
    custom=False,
)

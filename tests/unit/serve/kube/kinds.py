"""Kinds made for tests: small, so that a test shows all that matters."""

from __future__ import annotations

import msgspec

from isthmus.model.kind import Column, Kind, Scale, Version
from isthmus.model.schema import ListType, Patch, Schema, Type

STRING = Schema(type=Type.STRING)
INTEGER = Schema(type=Type.INTEGER)
LABELS = Schema(type=Type.MAP, values=STRING)

METADATA = Schema(
    type=Type.OBJECT,
    ref="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    properties={
        "name": STRING,
        "labels": LABELS,
        "annotations": LABELS,
        "finalizers": Schema(type=Type.ARRAY, items=STRING, patch=Patch.MERGE),
        "ownerReferences": Schema(
            type=Type.ARRAY,
            items=Schema(type=Type.OBJECT, properties={"uid": STRING, "name": STRING}),
            patch=Patch.MERGE,
            merge_key="uid",
        ),
    },
)

WIDGET_V1 = Schema(
    type=Type.OBJECT,
    ref="io.example.v1.Widget",
    description="A thing that is made.",
    properties={
        "apiVersion": STRING,
        "kind": STRING,
        "metadata": METADATA,
        "spec": Schema(
            type=Type.OBJECT,
            description="What is wanted.",
            required=("size",),
            properties={
                "size": Schema(type=Type.INTEGER, description="In metres.", minimum=0),
                "replicas": INTEGER,
                "parts": Schema(
                    type=Type.ARRAY,
                    items=Schema(
                        type=Type.OBJECT,
                        ref="io.example.v1.Part",
                        properties={"name": STRING, "colour": STRING},
                    ),
                    patch=Patch.MERGE,
                    merge_key="name",
                    list_type=ListType.MAP,
                    list_keys=("name",),
                ),
            },
        ),
        "status": Schema(type=Type.OBJECT, properties={"phase": STRING, "replicas": INTEGER}),
    },
)


class NoView(msgspec.Struct, frozen=True):
    """The mesh reads nothing of a test kind."""


WIDGET = Kind(
    group="example.io",
    name="Widget",
    plural="widgets",
    singular="widget",
    short_names=("wd",),
    categories=("all",),
    stored="v1",
    versions=(
        Version(
            name="v1",
            schema=WIDGET_V1,
            columns=(
                Column("Size", lambda document, _now: document["spec"]["size"], "integer"),
                Column(
                    "Since", lambda _document, now: f"{now:.0f}s", priority=1, description="Age"
                ),
            ),
        ),
        Version(name="v1alpha1", schema=Schema(type=Type.OBJECT), deprecated="use v1"),
        Version(name="v0", schema=Schema(type=Type.OBJECT), served=False),
    ),
    view=NoView,
    scale=Scale(),
    field_selectors={"status.phase": "status.phase", "spec.size": "spec.size"},
)

THING = Kind(
    group="",
    name="Thing",
    plural="things",
    singular="thing",
    stored="v1",
    versions=(Version(name="v1", schema=Schema(type=Type.OBJECT)),),
    view=NoView,
    namespaced=False,
    status=False,
    custom=False,
)

REVIEW = Kind(
    group="example.io",
    name="WidgetReview",
    plural="widgetreviews",
    singular="widgetreview",
    stored="v1",
    versions=(Version(name="v1", schema=Schema(type=Type.OBJECT)),),
    view=NoView,
    namespaced=False,
    persisted=False,
    status=False,
    verbs=("create",),
)

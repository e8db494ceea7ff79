"""Warnings for writers of pods, namespaces and templates: what proxies do not understand."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.model.annotations.workloads import workload_warnings
from isthmus.model.document import texts
from isthmus.model.kind import Document


def own_annotations(document: Document, _old: Document | None) -> Iterator[str]:
    """Of a Pod or a Namespace."""
    return workload_warnings(texts(document, "metadata.annotations"))


def template_annotations(document: Document, _old: Document | None) -> Iterator[str]:
    """Of what makes pods."""
    said = texts(document, "spec.template.metadata.annotations")
    return (f"spec.template.{each}" for each in workload_warnings(said))

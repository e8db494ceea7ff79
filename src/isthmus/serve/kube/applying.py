"""Server-side apply as requests have it: from a body to the change that it asks for."""

from __future__ import annotations

from isthmus.errors import BadRequest
from isthmus.model.document import get
from isthmus.model.kind import Document, Version
from isthmus.model.times import format_seconds
from isthmus.serve.kube import scale
from isthmus.serve.kube.answer import Asked
from isthmus.serve.kube.apply import Writing, applied
from isthmus.serve.kube.body import checked, of_kind, parse, place
from isthmus.serve.kube.negotiate import MediaType
from isthmus.serve.kube.options import MAX_MANAGER, Validation, WriteOptions
from isthmus.serve.kube.show import convert
from isthmus.store.objects import Change

UNKNOWN = "unknown"
"""The manager of writers that name neither a manager nor themselves."""


def writing(asked: Asked, options: WriteOptions, now: float, *, stored: bool = False) -> Writing:
    """Who owns what this request writes. `stored`: its documents are in the stored version.

    A writer that names no manager is called by the first word of its User-Agent.
    """
    agent = asked.headers.get("user-agent", "")
    manager = options.manager or _first_word(agent) or UNKNOWN
    version = _stored(asked) if stored else asked.version
    return Writing(asked.kind, version, manager, format_seconds(now), asked.target.subresource)


def _first_word(agent: str) -> str:
    """`kubectl` of `kubectl/v1.37.1 (linux/amd64) kubernetes/...`, printable and not too long."""
    name = "".join(each for each in agent[:1024].partition("/")[0] if each.isprintable())
    return name.encode()[:MAX_MANAGER].decode(errors="ignore")


def _stored(asked: Asked) -> Version:
    kind = asked.kind
    return next((each for each in kind.versions if each.name == kind.stored), asked.version)


def configuration(
    asked: Asked, options: WriteOptions, raw: bytes
) -> tuple[Document, tuple[str, ...]]:
    """The document that is applied, in the version of the URL, and the warnings for its writer."""
    found = parse(raw, MediaType.APPLY_PATCH)
    if get(found.document, "metadata.managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    for name in ("apiVersion", "kind"):
        if not found.document.get(name):
            raise BadRequest(f"what is applied must say its {name}")
    of_kind(found.document, asked.kind, asked.version)
    document, warnings = checked(
        found.document, found.repeated, asked.kind, asked.version, options.validation, fill=False
    )
    place(document, asked.kind, asked.target.namespace, asked.target.name)
    return document, warnings


def newborn(who: Writing, config: Document) -> Document:
    """The object that a configuration makes when there is none, in the stored version."""
    return _finished(who, applied(who, None, config))


def applying(who: Writing, config: Document, *, force: bool) -> Change:
    """The step from the stored document to the one with the configuration applied."""

    def change(stored: Document) -> Document:
        live = convert(who.kind, stored, who.version.name)
        return _finished(who, applied(who, live, config, force=force))

    return change


def _finished(who: Writing, document: Document) -> Document:
    """With defaults where something went, in the stored version."""
    fitted, _ = checked(document, (), who.kind, who.version, Validation.IGNORE)
    return convert(who.kind, fitted, who.kind.stored)


def applying_scale(who: Writing, wanted: Document, *, force: bool) -> Change:
    """The step from the stored document to the one with an applied Scale's replicas."""
    held = scale.preconditions(wanted)
    said = {"resourceVersion": str(held.revision or ""), "uid": held.uid}
    metadata = {name: value for name, value in said.items() if value}
    config = {**scale.applied(who.kind, {}, wanted), "metadata": metadata}
    return lambda stored: applied(who, stored, config, force=force)

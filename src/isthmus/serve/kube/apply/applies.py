"""Applying a configuration to a document: server-side apply (Kubernetes: field management).

What the applier lists gets its value and becomes the applier's; what it listed before and does not
list now goes, unless somebody else owns it too; what another manager owns with another value is a
conflict, which `force` decides for the applier.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.errors import Cause, Conflict
from isthmus.model.kind import Document, Version
from isthmus.serve.kube.apply import client_side, fields, managers
from isthmus.serve.kube.apply.compare import all_fields, applied_fields, compare
from isthmus.serve.kube.apply.fields import EMPTY, FieldSet
from isthmus.serve.kube.apply.managers import BEFORE_APPLY, UPDATE, Held, Manager
from isthmus.serve.kube.apply.merge import merged, without
from isthmus.serve.kube.apply.schemas import check_lists, with_named
from isthmus.serve.kube.apply.updates import listed, readable, settled, with_owners
from isthmus.serve.kube.apply.writing import Changes, Writing, owned
from isthmus.serve.kube.show import convert


def applied(
    writing: Writing, live: Document | None, config: Document, *, force: bool = False
) -> Document:
    """The document after the configuration, with its owners; without `live` a new one.

    Both are in the version of the write. `config` fits the schema and has no defaults filled in.
    Neither is changed. A resourceVersion or uid that it says is in the result.

    BadRequest for a list that says an item twice; Conflict with every field that is another's.
    """
    schema = writing.version.schema
    check_lists(schema, config)
    me, config = writing.applier, _within(writing, config)
    managed = _owners(writing, live)
    last = managed.get(me)
    mine = owned(applied_fields(schema, writing.ownable(config)))
    managed[me] = Held(mine, writing.api_version, writing.now)
    document = config if live is None else merged(schema, live, config)
    if last is not None:
        document = _pruned(writing, document, last, managed)
    changes = Changes(writing, live, document)
    if not force:
        _refuse(_conflicts(managed, changes, me), client_side.own(writing, live))
    managed = settled(managed, changes, me)
    if last is not None and last.fields == mine and not any(changes.own):
        managed[me] = managed[me]._replace(time=last.time)
    document = with_owners(document, managers.write(managed))
    return client_side.noted(writing, document, config)


def _within(writing: Writing, config: Document) -> Document:
    """The configuration without what this write cannot change."""
    apart = {"status": writing.kind.status}
    if writing.subresource == "status":
        apart = {name: name not in ("apiVersion", "kind", "metadata", "status") for name in config}
    kept = {name: value for name, value in config.items() if not apart.get(name)}
    if writing.subresource == "status" and isinstance(config.get("metadata"), dict):
        metadata = config["metadata"]
        said = ("name", "namespace", "uid", "resourceVersion")
        kept["metadata"] = {name: metadata[name] for name in said if name in metadata}
    return kept


def _owners(writing: Writing, live: Document | None) -> dict[Manager, Held]:
    """Who owns what before this apply; of an object without accounts, one manager everything."""
    if live is None:
        return {}
    managed = readable(listed(live))
    if managed:
        return managed
    everything = owned(all_fields(writing.version.schema, writing.ownable(live)))
    before = Manager(BEFORE_APPLY, UPDATE, writing.api_version, writing.subresource)
    return {before: Held(everything, writing.api_version, writing.now)}


# ----------------------------------------------------------------------------- what goes


def _pruned(
    writing: Writing, document: Document, last: Held, managed: Mapping[Manager, Held]
) -> Document:
    """The document without what the applier owned alone and does not apply any more."""
    version, held = writing.named(last.version), _by_version(managed)
    if version is None:
        return document
    kept = held.pop(last.version, EMPTY)
    gone = last.fields.difference(with_named(version.schema, kept))
    if not gone:
        return document
    before = convert(writing.kind, document, version.name)
    after = without(version.schema, before, gone, kept)
    for name, theirs in held.items():
        other = writing.named(name)
        if other is not None:
            after = _restored(writing, (before, after), other, theirs)
    return convert(writing.kind, after, writing.version.name)


def _by_version(managed: Mapping[Manager, Held]) -> dict[str, FieldSet]:
    found: dict[str, FieldSet] = {}
    for held in managed.values():
        found[held.version] = found.get(held.version, EMPTY).union(held.fields)
    return found


def _restored(
    writing: Writing, pair: tuple[Document, Document], version: Version, theirs: FieldSet
) -> Document:
    """The second of a pair of documents with what it lacks and is owned in another version."""
    shown = [convert(writing.kind, each, version.name) for each in pair]
    views = [writing.ownable(each) for each in shown]
    change = compare(version.schema, *views)
    lost = change.removed.union(change.modified)  # modified: a default took its place
    needed = with_named(version.schema, theirs)
    if not lost.intersection(needed):
        return pair[1]
    after = without(version.schema, shown[0], lost.difference(needed), theirs)
    present = str(pair[1].get("apiVersion", "")).rpartition("/")[2]
    return convert(writing.kind, after, present)


# ----------------------------------------------------------------------------- conflicts

Conflicts = Mapping[Manager, FieldSet]

SHOWN: Final = 256
"""Most conflicts that a refusal names: or a large object answers with many times itself."""


def _conflicts(managed: Mapping[Manager, Held], changes: Changes, me: Manager) -> Conflicts:
    found: dict[Manager, FieldSet] = {}
    for manager, held in managed.items():
        change = None if manager == me else changes.of(held.version)
        taken = EMPTY if change is None else held.fields.intersection(change.written)
        if taken:
            found[manager] = taken
    return found


def _refuse(conflicts: Conflicts, allowed: FieldSet) -> None:
    """Conflict naming every manager and field (up to SHOWN of them), unless all are allowed."""
    found = [
        (manager, path)
        for manager in sorted(conflicts)
        for path in conflicts[manager].difference(allowed).paths()
    ]
    if found:
        told = [(str(manager), fields.show(path)) for manager, path in found[:SHOWN]]
        causes = [
            Cause(path, f"conflict with {manager}", "FieldManagerConflict")
            for manager, path in told
        ]
        raise Conflict(_message(told, len(found)), causes=causes)


def _message(told: list[tuple[str, str]], count: int) -> str:
    """Kubernetes' sentence, which kubectl prints above its advice."""
    if count == 1:
        manager, path = told[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    paths: dict[str, list[str]] = {}
    for manager, path in told:
        paths.setdefault(manager, []).append(f"- {path}")
    lines = [line for each in paths for line in (f"conflicts with {each}:", *paths[each])]
    more = [f"and {count - len(told)} more"] if count > len(told) else []
    return f"Apply failed with {count} conflicts: " + "\n".join((*lines, *more))

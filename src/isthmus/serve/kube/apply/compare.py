"""Which fields a document has, and which differ between two, as sets of paths.

Three sets are made, after Kubernetes' rules (structured-merge-diff):

- what somebody who *applies* a document owns: its scalars, atomic values, list items, keys of maps
  and what is empty; not the objects around them (of empty lists Kubernetes keeps no account);
- everything there is in a value, containers too: what a value that is new, or gone, adds or takes;
- the difference between two documents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from isthmus.model.schema import Schema
from isthmus.serve.kube.apply.fields import EMPTY, Builder, FieldSet
from isthmus.serve.kube.apply.schemas import Part, Parts, parts
from isthmus.serve.kube.patch.values import same


class Difference(NamedTuple):
    """The paths that are new, that are gone, and that have another value."""

    added: FieldSet = EMPTY
    removed: FieldSet = EMPTY
    modified: FieldSet = EMPTY

    @property
    def written(self) -> FieldSet:
        """The paths that have a value which they did not have before."""
        return self.added.union(self.modified)


NO_DIFFERENCE = Difference()


def applied_fields(schema: Schema, value: Any) -> FieldSet:  # noqa: ANN401 - any JSON value
    """What somebody who applies the value owns."""
    made = Builder()
    for step, part in (parts(schema, value) or {}).items():
        inner = None if part.whole else parts(part.schema, part.value)
        if not inner or not part.named:
            made.add(step)
        if inner:
            made.put(step, applied_fields(part.schema, part.value))
    return made.made()


def all_fields(schema: Schema, value: Any) -> FieldSet:  # noqa: ANN401 - any JSON value
    """Every path in the value, those of containers too."""
    made = Builder()
    for step, part in (parts(schema, value) or {}).items():
        made.add(step)
        made.put(step, _below(part))
    return made.made()


def _below(part: Part) -> FieldSet:
    return EMPTY if part.whole else all_fields(part.schema, part.value)


def compare(schema: Schema, old: Any, new: Any) -> Difference:  # noqa: ANN401 - any JSON values
    """The difference between two values that are both trees; lists are laid over by key."""
    return _compare(parts(schema, old) or {}, parts(schema, new) or {})


def _compare(before: Parts, after: Parts) -> Difference:
    added, removed, modified = Builder(), Builder(), Builder()
    for step, part in after.items():
        held = before.get(step)
        if held is None:
            added.add(step)
            added.put(step, _below(part))
        elif not _unchanged(held.value, part.value):
            inner = _compare_part(held, part)
            if inner is None:
                modified.add(step)
                inner = Difference(_below(part), _below(held))
            added.put(step, inner.added)
            removed.put(step, inner.removed)
            modified.put(step, inner.modified)
    for step in before.keys() - after.keys():
        removed.add(step)
        removed.put(step, _below(before[step]))
    found = Difference(added.made(), removed.made(), modified.made())
    return found if any(found) else NO_DIFFERENCE


def _unchanged(old: Any, new: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Whether two scalars are the same; a quick answer for most fields of most writes."""
    return type(old) is type(new) and type(new) not in (dict, list) and bool(old == new)


def _compare_part(held: Part, part: Part) -> Difference | None:
    """The difference inside a part; None if it has another value as a whole."""
    if isinstance(part.value, dict | list) and not (held.whole or part.whole):
        before, after = parts(part.schema, held.value), parts(part.schema, part.value)
        if before is not None and after is not None:
            return _compare(before, after)
    return NO_DIFFERENCE if same(held.value, part.value) else None

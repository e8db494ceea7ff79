"""What a commit and a fork have in common: from changes to rows to the inputs that changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.engine.cell import same
from isthmus.engine.faults import BadCommit
from isthmus.engine.keys import check_key
from isthmus.engine.source import Batch, Change, Delete, Edit, Noted, Put, Source, Table

if TYPE_CHECKING:
    from isthmus.engine.view import View

_CHANGES = (Put, Delete)  # a union would be made anew for every change

Rows: TypeAlias = dict[Table[Any, Any], dict[Any, Any]]


def gather(changes: Iterable[Change]) -> Rows:
    """The last row (None: deleted) of each table and key. Raises BadCommit or BadKey."""
    final: Rows = {}
    for change in changes:
        table, key, row = _checked(change)
        final.setdefault(table, {})[key] = row
    return final


def edits(view: View, final: Rows) -> Batch:
    """What of it differs from the rows of `view`, by table. Touches nothing."""
    batch: dict[Table[Any, Any], list[Edit]] = {}
    for table, rows in final.items():
        content = table.content(view)
        differing = [
            Edit(key, old, row)
            for key, row in rows.items()
            if not same(old := content.get(key), row)
        ]
        if differing:
            batch[table] = differing
    return batch


def _checked(change: object) -> tuple[Table[Any, Any], Any, Any]:
    if not isinstance(change, _CHANGES) or not isinstance(change.table, Table):
        raise BadCommit(f"a commit takes Put and Delete of a Table, not {change!r}")
    table, key = change.table, change.key
    row = None
    if isinstance(change, Put):
        row = change.row
        if row is None:
            msg = f"{table.name}: a row cannot be None ({key!r}); delete it instead"
            raise BadCommit(msg)
    check_key(key, table.name)
    return table, key, row


def absorb(view: View, batch: Batch) -> list[tuple[Source, Any]]:
    """Apply the edits and bring indexes and joins along; the (source, key) pairs that changed.

    A pair that was moved and moved back within the batch is not among them.
    """
    touched: list[tuple[Source, Any]] = []
    for table, edits in batch.items():
        source = view.sources[table]
        rows: Any = source.content
        for key, _old, new in edits:
            if new is None:
                rows.pop(key, None)
            else:
                rows[key] = new
            touched.append((source, key))
    noted: Noted = {}
    for keeper in dict.fromkeys(k for table in batch for k in view.keepers.get(table, ())):
        keeper.apply(batch, noted)
    touched.extend(
        (source, key) for (source, key), old in noted.items() if source.content.get(key) != old
    )
    return touched

"""What a commit and a fork have in common: from changes to rows to the inputs that changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from isthmus.engine.cell import same
from isthmus.engine.faults import BadCommit
from isthmus.engine.keys import check_key
from isthmus.engine.source import Batch, Change, Delete, Edit, Noted, Put, Source, Table

if TYPE_CHECKING:
    from isthmus.engine.view import View


def fold(view: View, changes: Iterable[Change]) -> Batch:
    """The rows that really change, by table; of several changes to a row the last counts.

    Touches nothing. Raises BadCommit or BadKey.
    """
    final: dict[Table[Any, Any], dict[Any, Any]] = {}
    for change in changes:
        table, key, row = _checked(change)
        final.setdefault(table, {})[key] = row
    batch: dict[Table[Any, Any], list[Edit]] = {}
    for table, rows in final.items():
        content = table.content(view)
        edits = [
            Edit(key, old, row)
            for key, row in rows.items()
            if not same(old := content.get(key), row)
        ]
        if edits:
            batch[table] = edits
    return batch


def _checked(change: object) -> tuple[Table[Any, Any], Any, Any]:
    match change:
        case Put(table=Table() as table, key=key, row=row):
            if row is None:
                msg = f"{table.name}: a row cannot be None ({key!r}); delete it instead"
                raise BadCommit(msg)
        case Delete(table=Table() as table, key=key):
            row = None
        case _:
            msg = f"a commit takes Put and Delete of a Table, not {change!r}"
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

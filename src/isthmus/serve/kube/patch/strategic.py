"""Strategic merge patch: a merge patch that knows from the schema how lists merge.

Objects merge field by field and null removes, as in a merge patch. A list replaces, unless its
schema says `merge`: then items are matched by their merge key (or, primitives, by value) and merge
in turn.
Directives in the patch, all of which `kubectl` sends:

    $patch: replace | delete | merge     in an object: take it whole, empty it, merge (the default);
                                         in a list item: drop the old items, drop the item with this
                                         key, merge
    $retainKeys: [names]                 of the object, only these fields stay
    $setElementOrder/LIST: [keys]        the order of the items that the patch knows
    $deleteFromPrimitiveList/LIST: [..]  these values leave the list

Where an object or a list did not exist, the patch is merged into an empty one. (Kubernetes' own
merge drops an object with `$patch` there and leaves `$retainKeys` in it: neither can be wanted.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.model.kind import Document
from isthmus.model.schema import Patch, Schema, Type
from isthmus.serve.kube.patch.lists import Keyed, Plain, Strategy, in_order, without
from isthmus.serve.kube.patch.values import ROOT, Path, check_depth, malformed, opened

PATCH = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder/"
DELETE = "$deleteFromPrimitiveList/"

_UNKNOWN = Schema(type=Type.ANY)
_MERGING = (Patch.MERGE, Patch.MERGE_RETAIN_KEYS)

Object = dict[str, Any]


def strategic_merge_patch(schema: Schema, document: Document, patch: object) -> Document:
    """The document with the patch merged in as `schema` says. BadRequest, naming the path."""
    if not isinstance(patch, dict):
        raise malformed("", "a strategic merge patch must be an object")
    check_depth(patch)
    return _object(schema, opened(document), patch, ROOT)


def _object(schema: Schema, target: Object, patch: Object, path: Path) -> Object:
    """Merge `patch` into `target`, which is ours to change; the result may be another object."""
    match patch.get(PATCH):
        case "replace":
            # Into nothing, so that directives and nulls inside do not survive as fields.
            return _object(schema, {}, {k: v for k, v in patch.items() if k != PATCH}, path)
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise malformed(path.field(PATCH), f"unknown patch type {other!s:.64}")
    if RETAIN in patch:
        _retain(target, patch, path)
    for name in _fields_of(patch):
        _field(_schema_of(schema, name), name, target, patch, path.field(name))
    return target


def _fields_of(patch: Object) -> Iterator[str]:
    """The fields that a patch touches, each once, also those named in a directive only."""
    seen: dict[str, None] = {}
    for key in patch:
        if key in (PATCH, RETAIN):
            continue
        seen[key.removeprefix(ORDER).removeprefix(DELETE)] = None
    return iter(seen)


def _schema_of(schema: Schema, name: str) -> Schema:
    if schema.type is Type.OBJECT:
        return schema.fields.get(name, _UNKNOWN)
    return schema.values or _UNKNOWN


def _retain(target: Object, patch: Object, path: Path) -> None:
    names = patch[RETAIN]
    where = path.field(RETAIN)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise malformed(where, "must be a list of field names")
    kept = set(names)
    for name, value in patch.items():
        if value is not None and not name.startswith("$") and name not in kept:
            raise malformed(where, f"must contain {name:.64}, which the patch sets")
    for name in [name for name in target if name not in kept]:
        del target[name]


def _field(schema: Schema, name: str, target: Object, patch: Object, path: Path) -> None:
    """Merge one field: its value, the order of its items, and the values that leave it."""
    order, gone = patch.get(ORDER + name), patch.get(DELETE + name)
    if order is not None or gone is not None or isinstance(patch.get(name), list):
        _list_field(schema, name, target, patch, path)
        return
    if name not in patch:
        return
    value, held = patch[name], target.get(name)
    if value is None:
        target.pop(name, None)
    elif isinstance(value, dict):
        if held is None and value.get(PATCH) == "delete":
            return
        target[name] = _object(schema, held if isinstance(held, dict) else {}, value, path)
    else:
        target[name] = value


# ------------------------------------------------------------------------------------------- lists


def _list_field(schema: Schema, name: str, target: Object, patch: Object, path: Path) -> None:
    order = _list_or_none(patch.get(ORDER + name), path, ORDER + name)
    gone = _list_or_none(patch.get(DELETE + name), path, DELETE + name)
    if name in patch and patch[name] is None:
        target.pop(name, None)
        return
    value = _list_or_none(patch.get(name), path, name)
    held = target.get(name)
    held = held if isinstance(held, list) else None
    if order is not None or (value is not None and schema.patch in _MERGING):
        strategy = _strategy(schema, path)
        merged = _merged_list(schema, strategy, held, value, order, path)
    else:
        merged = held if value is None else _taken(value)
    if gone is not None and merged is not None:
        merged = without(Plain(), merged, gone, path)
    if merged is not None:
        target[name] = merged


def _list_or_none(value: object, path: Path, name: str) -> list[Any] | None:
    if value is None or isinstance(value, list):
        return value
    where = path if path.segment == name else Path(path.parent, name)
    raise malformed(where, "must be a list")


def _strategy(schema: Schema, path: Path) -> Strategy:
    """How the items of this list are told apart."""
    if schema.patch not in _MERGING:
        raise malformed(path, f"this list is replaced, not merged: {ORDER} makes no sense")
    if schema.merge_key:
        return Keyed(schema.merge_key)
    if schema.items is not None and schema.items.type in (Type.OBJECT, Type.MAP):
        raise malformed(path, "the list has no merge key")
    return Plain()


def _merged_list(
    schema: Schema,
    strategy: Strategy,
    held: list[Any] | None,
    value: list[Any] | None,
    order: list[Any] | None,
    path: Path,
) -> list[Any] | None:
    if held is None and value is None:
        return None
    before = held or []
    merged, wanted = before, value or []
    if value is not None:
        before, wanted = _directed(strategy, before, value, path)
        merged = _merged_items(schema.items or _UNKNOWN, strategy, before, wanted, path)
    if order is not None and wanted:
        strategy.check_order(wanted, order, path)
    return in_order(strategy, merged, wanted if order is None else order, before, path)


def _directed(
    strategy: Strategy, held: list[Any], value: list[Any], path: Path
) -> tuple[list[Any], list[Any]]:
    """Obey the `$patch` of items: what stays of the old items, and the items that are to merge."""
    replace, deleted, wanted = False, [], []
    for index, item in enumerate(value):
        directive = item.get(PATCH) if isinstance(item, dict) else None
        match directive:
            case "replace":
                replace = True
            case "delete":
                deleted.append(item)
            case None | "merge":
                wanted.append(item)
            case other:
                raise malformed(path.item(index).field(PATCH), f"unknown patch type {other!s:.64}")
    if replace:
        return [], wanted
    return (without(strategy, held, deleted, path) if deleted else held), wanted


def _merged_items(
    schema: Schema, strategy: Strategy, held: list[Any], wanted: list[Any], path: Path
) -> list[Any]:
    """The old items with the wanted ones merged in or appended, in no particular order yet."""
    merged = list(held)
    places = strategy.places(held, path)
    for index, item in enumerate(wanted):
        identity = strategy.identity(item, path.item(index))
        place = places.get(identity)
        if place is None:
            place = places[identity] = len(merged)
            merged.append({} if isinstance(item, dict) else item)
        if isinstance(item, dict):
            merged[place] = _object(schema, merged[place], item, strategy.path(path, item))
    return merged


def _taken(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """What replaces: as it is, without fields that are null."""
    if isinstance(value, dict):
        return {name: _taken(held) for name, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_taken(held) for held in value]
    return value

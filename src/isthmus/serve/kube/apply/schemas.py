"""What server-side apply needs to know of a schema: what has parts, and what each part is called.

A value is *whole* when it has one owner: scalars, atomic lists and maps, and what no schema knows
but is no map. Everything else is a *tree*: its parts have owners of their own. Parts are found by
step (see `fields`), so that two values can be laid over one another whatever the order of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from isthmus.errors import BadRequest
from isthmus.model.schema import ListType, Schema, Type
from isthmus.serve.kube.apply import fields

ANYTHING: Final = Schema(type=Type.ANY)


class Part(NamedTuple):
    """One part of a tree. `named`: the schema knows the field by name (map keys are not).

    `whole`: taken as one value whatever its schema, such as items of a list that are there twice.
    """

    schema: Schema
    value: Any
    named: bool = False
    whole: bool = False


Parts = Mapping[str, Part]


def parts(schema: Schema, value: Any) -> Parts | None:  # noqa: ANN401 - any JSON value
    """The parts of a tree, by step; None for what is whole. Stands any value.

    A list with items that cannot be told apart by keys is whole. Items that are there twice are one
    part, the list of them.
    """
    if isinstance(value, dict):
        return _fields(schema, value)
    if isinstance(value, list):
        return _items(schema, value)
    return None


def _fields(schema: Schema, value: dict[str, Any]) -> Parts | None:
    if schema.atomic:
        return None
    match schema.type:
        case Type.OBJECT:
            known = schema.fields
            return {
                f"f:{name}": Part(known[name], inner, True)
                if name in known
                else Part(ANYTHING, inner)
                for name, inner in value.items()
            }
        case Type.MAP | Type.ANY:
            each = schema.values or ANYTHING
            return {f"f:{name}": Part(each, inner) for name, inner in value.items()}
        case _:
            return None


def _items(schema: Schema, value: list[Any]) -> Parts | None:
    if schema.type is not Type.ARRAY or schema.list_type is ListType.ATOMIC:
        return None
    each = schema.items or ANYTHING
    found: dict[str, Part] = {}
    for item in value:
        step = step_of(schema, item)
        if step is None:
            return None
        held = found.get(step)
        if held is None:
            found[step] = Part(each, item)
        else:
            several = held.value if held.whole else [held.value]
            found[step] = Part(ANYTHING, [*several, item], whole=True)
    return found


def step_of(schema: Schema, item: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """The step to an item of a list of this schema; None if nothing tells the item apart."""
    if schema.list_type is ListType.SET:
        return None if isinstance(item, dict | list) else fields.valued(item)
    if not isinstance(item, dict):
        return None
    keys = {name: item[name] for name in schema.list_keys if item.get(name) is not None}
    if len(keys) < len(schema.list_keys) and schema.items is not None:
        known = schema.items.fields
        for name in schema.list_keys:
            if name not in keys and name in known and known[name].default is not None:
                keys[name] = known[name].default
    return fields.keyed(keys) if keys else None


def below(schema: Schema, step: str) -> Schema:
    """The schema of what is below a step, whether or not a value has it."""
    if not step.startswith("f:"):
        return schema.items or ANYTHING
    if schema.type is Type.OBJECT:
        return schema.fields.get(step[2:], ANYTHING)
    return schema.values or ANYTHING


def with_named(schema: Schema, held: fields.FieldSet) -> fields.FieldSet:
    """The set and every field that the schema names and that holds something of the set.

    Nobody owns the object around the fields that they apply, but who owns a field needs it.
    """
    if not held:
        return held
    around = held.children.keys() & {f"f:{name}" for name in _named(schema)}
    children = {step: with_named(below(schema, step), each) for step, each in held.children.items()}
    return fields.FieldSet(held.members | around, children)


def _named(schema: Schema) -> Iterable[str]:
    return schema.fields if schema.type is Type.OBJECT else ()


def check_lists(schema: Schema, value: Any, path: fields.Path = ()) -> None:  # noqa: ANN401 - any JSON value
    """BadRequest for items of an applied list that nothing tells apart, or that are there twice."""
    for step, part in _checked(schema, value, path):
        check_lists(part.schema, part.value, (*path, step))


def _checked(schema: Schema, value: Any, path: fields.Path) -> Iterator[tuple[str, Part]]:  # noqa: ANN401 - any JSON value
    found = parts(schema, value)
    if found is None:
        if isinstance(value, list) and schema.list_type is not ListType.ATOMIC:
            lacking = f"an item omits all of its key fields ({', '.join(schema.list_keys)})"
            said = lacking if schema.list_keys else "an item of the set is no scalar"
            raise BadRequest(f"{fields.show(path)}: {said}")
        return
    for step, part in found.items():
        if part.whole:
            raise BadRequest(
                f"{fields.show(path)}: duplicate entries for key {fields.show((step,))}"
            )
        yield step, part

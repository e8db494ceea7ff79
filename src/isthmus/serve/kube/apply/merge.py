"""Laying an applied document over the stored one, and taking out what is no longer applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from isthmus.model.schema import Schema
from isthmus.serve.kube.apply.fields import FieldSet
from isthmus.serve.kube.apply.schemas import below, parts, step_of
from isthmus.serve.kube.patch.values import clone


def merged(schema: Schema, live: Any, config: Any) -> Any:  # noqa: ANN401 - any JSON values
    """What is live with everything that the configuration says, which wins. Neither is changed.

    Objects and maps merge field by field, lists by key or value; what is whole is replaced.
    """
    if parts(schema, live) is None or parts(schema, config) is None:
        return clone(config)
    if isinstance(live, dict):
        result = dict(live)
        for name, value in config.items():
            inner = below(schema, f"f:{name}")
            result[name] = merged(inner, live[name], value) if name in live else clone(value)
        return result
    return list(_merged_items(schema, live, config)) if isinstance(live, list) else clone(config)


def _merged_items(schema: Schema, live: list[Any], config: list[Any]) -> Iterator[Any]:
    held: dict[str | None, Any] = {}
    for item in live:
        held.setdefault(step_of(schema, item), item)
    wanted = {step_of(schema, item): item for item in config}
    told = [step_of(schema, item) for item in live]
    inner = below(schema, "k:")
    for at, step in _order(told, list(wanted)):
        if at is not None:
            yield live[at]
        elif step in held:
            yield merged(inner, held[step], wanted[step])
        else:
            yield clone(wanted[step])


def _order(
    live: list[str | None], config: list[str | None]
) -> Iterator[tuple[int | None, str | None]]:
    """The order of a merged list: applied items as applied, others before what they preceded.

    Yields an index into `live` for an item that only it has, else a step of `config`.
    """
    waiting, present, applied = iter(config), set(live), set(config)
    shared = (step for step in config if step in present)
    following = next(shared, None)
    for index, step in enumerate(live):
        if step not in applied:
            yield index, None
        elif step == following:
            yield from ((None, each) for each in _until(waiting, step))
            following = next(shared, None)
    yield from ((None, each) for each in waiting)


def _until(waiting: Iterable[str | None], last: str | None) -> Iterator[str | None]:
    for step in waiting:
        yield step
        if step == last:
            return


def without(schema: Schema, value: Any, gone: FieldSet, kept: FieldSet) -> Any:  # noqa: ANN401 - any JSON value
    """The value without the places of `gone` and everything below them. It is not changed itself.

    What is empty by that goes too, unless it is itself in `kept`.
    """
    if not gone or parts(schema, value) is None:
        return value
    if isinstance(value, dict):
        left = {}
        for name, inner in value.items():
            for each in _left(schema, f"f:{name}", inner, gone, kept):
                left[name] = each
        return left
    return [
        each
        for item in value
        for each in _left(schema, step_of(schema, item) or "", item, gone, kept)
    ]


def _left(
    schema: Schema,
    step: str,
    inner: Any,  # noqa: ANN401 - any JSON value
    gone: FieldSet,
    kept: FieldSet,
) -> Iterator[Any]:
    """What is left of one part: itself, less, or nothing."""
    if step in gone.members:
        return
    left = without(below(schema, step), inner, gone.at(step), kept.at(step))
    if left or not inner or step in kept.members:
        yield left

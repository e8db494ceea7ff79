"""A trace: what a value was made from. It is the recorded reads; there is no tracing mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.engine.cell import Cell, Node


class Trace:
    """One node of the tree: a query or an input at a key, its value, and what it read, in order.

    What several queries read is one shared node. `value` is the exception if the query raised.
    `changed_at` is the revision at which the value last changed (0: before it was first read).
    """

    __slots__ = ("changed_at", "is_input", "key", "label", "reads", "value")

    def __init__(self, node: Node) -> None:
        self.reads: tuple[Trace, ...] = ()
        self.changed_at = node.changed_at
        self.is_input = not isinstance(node, Cell)
        self.key: tuple[Any, ...]
        if isinstance(node, Cell):
            self.label = node.query.__name__
            self.key = node.query.address(node.key)[1:]
            self.value: object = node.value if node.error is None else node.error
        else:
            self.label = node.source.label
            self.key = (node.key,)
            self.value = node.source.content.get(node.key)

    def walk(self) -> Iterator[tuple[int, Trace, bool]]:
        """`(depth, node, repeated)`, depth first in the order of reading; repeats end there."""
        seen: set[int] = set()
        stack: list[tuple[int, Trace]] = [(0, self)]
        while stack:
            depth, node = stack.pop()
            repeated = id(node) in seen
            yield depth, node, repeated and bool(node.reads)
            if not repeated:
                seen.add(id(node))
                stack.extend((depth + 1, read) for read in reversed(node.reads))

    def inputs(self) -> list[tuple[str, Any]]:
        """`(label, key)` of every row, index key and join key read, absent ones too, each once."""
        return list(
            dict.fromkeys((node.label, node.key[0]) for _, node, _ in self.walk() if node.is_input)
        )

    def __str__(self) -> str:
        lines = []
        for depth, node, repeated in self.walk():
            name = f"{node.label}({', '.join(map(repr, node.key))})"
            value = "(above)" if repeated else f"= {node.value!r} @{node.changed_at}"
            lines.append(f"{'  ' * depth}{name} {value}")
        return "\n".join(lines)


def trace(root: Cell) -> Trace:
    """The trace of a cell that is up to date."""
    made: dict[Node, Trace] = {root: Trace(root)}
    fresh: list[Node] = [root]
    while fresh:
        node = fresh.pop()
        for read in node.reads:
            if read not in made:
                made[read] = Trace(read)
                fresh.append(read)
    for node, told in made.items():
        told.reads = tuple(made[read] for read in node.reads)
    return made[root]

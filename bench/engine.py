"""The engine: what a change costs, and that the cost does not depend on what is not touched.

A world of N live services: each a row, a namespace, two slices found by an index, and a watched
cell over three others. `python -m bench.engine` prints these figures alone.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

from bench.table import Figure, table
from isthmus.engine import (
    Change,
    Database,
    Index,
    Join,
    Labelled,
    Put,
    Selector,
    Table,
    View,
    Watch,
    query,
)

SMALL, LARGE = 100, 10_000
ROUNDS = 300


class Key(NamedTuple):
    """A service or a slice."""

    namespace: str
    name: str


class Service(NamedTuple):
    """The facts of a service."""

    port: int
    note: str = ""


class Slice(NamedTuple):
    """The facts of a slice."""

    service: Key
    addresses: tuple[str, ...]
    note: str = ""


SERVICES: Table[Key, Service] = Table("services", scope=lambda key: key.namespace)
SLICES: Table[Key, Slice] = Table("slices")
BY_SERVICE: Index[Key, Slice, Key] = Index("slices_by_service", SLICES, lambda _, s: (s.service,))


@query
def port(db: View, key: Key) -> int:
    """One read, often equal."""
    row = SERVICES.get(db, key)
    return row.port if row else 0


@query
def addresses(db: View, key: Key) -> tuple[str, ...]:
    """Of one slice."""
    row = SLICES.get(db, key)
    return row.addresses if row else ()


@query
def endpoints(db: View, key: Key) -> tuple[tuple[str, int], ...]:
    """Of one service."""
    number = port(db, key)
    found = (one for part in BY_SERVICE.get(db, key) for one in addresses(db, part))
    return tuple((one, number) for one in sorted(found))


@query
def encoded(db: View, key: Key) -> bytes:
    """What a stream is told."""
    return repr(endpoints(db, key)).encode()


def key_of(at: int, part: str = "") -> Key:
    """The service, or a slice of it."""
    return Key(f"ns-{at % 10}", f"service-{at}{part}")


def slice_of(at: int, part: str, round_: int = 0, note: str = "") -> Put[Key, Slice]:
    """A change that moves one address in each round."""
    last = f"10.{at // 250}.{at % 250}.{round_ % 250}"
    return Put(SLICES, key_of(at, part), Slice(key_of(at), (f"10.9.9.{at % 250}", last), note))


def world(size: int) -> tuple[Database, Watch]:
    """A database with `size` live services, all told."""
    db = Database()
    db.commit(
        change
        for at in range(size)
        for change in (
            Put(SERVICES, key_of(at), Service(80)),
            slice_of(at, "-a"),
            slice_of(at, "-b"),
        )
    )
    watch = db.watch(lambda: None)
    for at in range(size):
        watch.add(encoded, key_of(at))
    return db, watch


def moves(round_: int) -> Change:
    """An address of one slice changes, and with it the slice, the service and its bytes."""
    return slice_of(7, "-a", round_)


class Cost(NamedTuple):
    """Of one change, from the commit to the taken value."""

    micros: float
    evaluations: float


def cost(db: Database, watch: Watch, change: Callable[[int], Change]) -> Cost:
    """The median over many rounds."""
    spent: list[float] = []
    before = db.evaluations
    for round_ in range(1, ROUNDS + 1):
        start = time.perf_counter()
        db.commit([change(round_)])
        watch.take()
        spent.append(time.perf_counter() - start)
    return Cost(median(spent) * 1e6, (db.evaluations - before) / ROUNDS)


@query
def doubled(db: View, key: Key) -> int:
    """Over one cell."""
    return 2 * port(db, key)


def chains(size: int) -> tuple[Database, Watch]:
    """A watch over `size` cells, each over another, each over a row; the values weigh nothing."""
    db = Database()
    keys = [key_of(at) for at in range(size)]
    db.commit(Put(SERVICES, key, Service(80)) for key in keys)
    watch = db.watch(lambda: None)
    tracemalloc.start()
    for key in keys:
        watch.add(doubled, key)
    return db, watch


def bytes_per_cell() -> float:
    """What the graph weighs per cell: with inputs, links, look-up tables and the watch."""
    db, watch = chains(LARGE)
    watch.take()
    gc.collect()
    weight, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return weight / db.stats.cells


def cold() -> float:
    """Microseconds of a cell's first evaluation."""
    spent: list[float] = []
    for _ in range(5):
        db, watch = chains(LARGE)
        tracemalloc.stop()
        start = time.perf_counter()
        watch.take()
        spent.append((time.perf_counter() - start) / db.stats.cells * 1e6)
    return min(spent)


PODS: Table[Key, str] = Table("pods")
APPS: Table[Key, str] = Table("apps")
SELECTED: Join[Key, str, Key, str] = Join(
    "selected",
    APPS,
    lambda key, app: Selector(key.namespace, {"app": app}),
    PODS,
    lambda key, app: Labelled(key.namespace, {"app": app, "tier": "web"}),
)


@query
def selected(db: View, key: Key) -> tuple[Key, ...]:
    """The pods of an app."""
    return SELECTED.members(db, key)


def relabel() -> Cost:
    """One pod of 1,000 moves between two of 1,000 selectors in its namespace, all watched."""
    db = Database()
    keys = [Key("ns", str(at)) for at in range(1000)]
    db.commit(
        change for key in keys for change in (Put(APPS, key, key.name), Put(PODS, key, key.name))
    )
    watch = db.watch(lambda: None)
    for key in keys:
        watch.add(selected, key)
    watch.take()
    return cost(db, watch, lambda round_: Put(PODS, keys[0], str(round_)))


def figures() -> Iterator[Figure]:
    """The engine's figures."""
    db, watch = world(LARGE)
    small, small_watch = world(SMALL)
    watch.take()
    small_watch.take()
    gc.collect()
    gc.freeze()  # as the server does after its first sync
    ratios: list[float] = []
    many = cost(db, watch, moves)
    for _ in range(5):
        one, many = cost(small, small_watch, moves), cost(db, watch, moves)
        ratios.append(many.micros / one.micros)
    cut = cost(db, watch, lambda round_: slice_of(7, "-b", 0, str(round_)))
    yield Figure(
        f"engine: a change, {LARGE:,} live services / {SMALL}", median(ratios), "x", "≤ 1.2"
    )
    yield Figure("engine: evaluations by a change of 3 cells", many.evaluations, "", "= 3")
    yield Figure("engine: evaluations by a change cut off at 1", cut.evaluations, "", "= 1")
    yield Figure("engine: memory per cell", bytes_per_cell(), "B", "≤ 365")
    yield Figure("engine: a change of 3 cells", many.micros, "us", "≤ 43")
    yield Figure("engine: a change cut off at 1", cut.micros, "us", "≤ 17")
    yield Figure("engine: a relabel among 1,000 selectors", relabel().micros, "us", "≤ 140")
    yield Figure("engine: first evaluation, per cell", cold(), "us", "≤ 4")


if __name__ == "__main__":
    print(table(figures()))

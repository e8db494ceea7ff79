"""Which objects each selector selects, kept at commit in both directions.

A selector is filed under one of its own label pairs, the rarest, or under `*` if it has none; an
object looks under its own pairs and `*`, and the full selector is verified on what is found there.
So a relabel costs a few look-ups, however many selectors there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

from isthmus.engine.buckets import Buckets, Overlay, Rows
from isthmus.engine.cell import same
from isthmus.engine.source import Batch, Keeper, Noted, Source, Table, report

if TYPE_CHECKING:
    from isthmus.engine.view import View

S = TypeVar("S", bound=Hashable)
SR = TypeVar("SR")
O = TypeVar("O", bound=Hashable)  # noqa: E741 - the object key
OR = TypeVar("OR")

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Expression: TypeAlias = tuple[str, Operator, tuple[str, ...]]
Place: TypeAlias = tuple[Hashable, object]

OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_ANY: Final = "*"


class Selector(msgspec.Struct, frozen=True):
    """A Kubernetes label selector (`matchLabels` and `matchExpressions`) within one scope.

    All parts must hold. Without any part it selects everything in the scope. `NotIn` holds for an
    object without the label (Kubernetes API conventions). Raises ValueError for an operator that is
    none of `OPERATORS`: let user input become a value before it gets here.
    """

    scope: Hashable
    match_labels: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    expressions: Iterable[Expression] = ()

    def __post_init__(self) -> None:
        pairs = self.match_labels
        pairs = pairs.items() if isinstance(pairs, Mapping) else pairs
        force_setattr(self, "match_labels", tuple(sorted(pairs)))
        parts = tuple((key, op, tuple(values)) for key, op, values in self.expressions)
        for key, op, _values in parts:
            if op not in OPERATORS:
                msg = f"selector on {key!r}: {op!r} is none of {', '.join(sorted(OPERATORS))}"
                raise ValueError(msg)
        force_setattr(self, "expressions", parts)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """`match_labels`, sorted."""
        return self.match_labels  # type: ignore[return-value]  # __post_init__ made it so

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object of the same scope with these labels is selected."""
        for key, value in self.pairs:
            if labels.get(key) != value:
                return False
        return all(_holds(part, labels) for part in self.expressions)


def _holds(part: Expression, labels: Mapping[str, str]) -> bool:
    key, op, values = part
    if op == "In":
        return labels.get(key) in values
    if op == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (op == "Exists")


class Labelled(msgspec.Struct, frozen=True):
    """The labels of one object, and the scope in which selectors see it."""

    scope: Hashable
    labels: Mapping[str, str] | Iterable[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.labels, Mapping):
            force_setattr(self, "labels", dict(self.labels))

    def __hash__(self) -> int:
        return hash((self.scope, frozenset(self.by_name.items())))

    @property
    def by_name(self) -> Mapping[str, str]:
        """`labels` as a mapping."""
        return self.labels  # type: ignore[return-value]  # __post_init__ made it so

    def places(self) -> list[Place]:
        """Where selectors that may select this object are filed."""
        return [*((self.scope, pair) for pair in self.by_name.items()), (self.scope, _ANY)]


class _Side:
    """One direction of a join, as something that can be opened in a view."""

    def __init__(self, name: str, join: Join[Any, Any, Any, Any]) -> None:
        self.name = name
        self._join = join

    @property
    def tables(self) -> tuple[Table[Any, Any], ...]:
        """The tables it is derived from."""
        return (self._join.selecting, self._join.selected)

    def open(self, db: View) -> Source:
        """Open both directions; they are kept together."""
        self._join.build(db)
        return db.sources[self]


class Join(Generic[S, SR, O, OR]):
    """Selectors of one table against the labels of another (or the same).

    `selector_of(key, row)` is None for a row that selects nothing, `labels_of(key, row)` for a row
    that cannot be selected. If either raises, the row is treated so, and the bug is logged.
    """

    def __init__(
        self,
        name: str,
        selectors: Table[S, SR],
        selector_of: Callable[[S, SR], Selector | None],
        objects: Table[O, OR],
        labels_of: Callable[[O, OR], Labelled | None],
    ) -> None:
        self.name = name
        self.selecting = selectors
        self.selected = objects
        self._selector_of = selector_of
        self._labels_of = labels_of
        self.to_objects = _Side(f"{name}.members", self)
        self.to_selectors = _Side(f"{name}.selectors", self)

    def members(self, db: View, key: S) -> tuple[O, ...]:
        """The objects that the selector at `key` selects, sorted; empty if there is none."""
        side = self.to_objects
        return db.input(db.sources.get(side) or db.open(side), key)  # type: ignore[no-any-return]

    def selectors(self, db: View, key: O) -> tuple[S, ...]:
        """The selectors that select the object at `key`, sorted."""
        side = self.to_selectors
        return db.input(db.sources.get(side) or db.open(side), key)  # type: ignore[no-any-return]

    def selector(self, key: S, row: SR | None, *, log: bool = True) -> Selector | None:
        """`selector_of`, with a bug kept to its row."""
        return _kept(self._selector_of, key, row, self.name, log=log)

    def labelled(self, key: O, row: OR | None, *, log: bool = True) -> Labelled | None:
        """`labels_of`, with a bug kept to its row."""
        return _kept(self._labels_of, key, row, self.name, log=log)

    def build(self, db: View) -> None:
        """Open both sources and join the rows that are there: objects first, so rarity is known."""
        keeper = JoinKeeper(self, JoinState(self))
        keeper.publish(db)
        noted: Noted = {}
        for key, row in self.selected.content(db).items():
            keeper.put_object(key, self.labelled(key, row), noted)
        for key, row in self.selecting.content(db).items():
            keeper.put_selector(key, self.selector(key, row), noted)
        db.keep(keeper, self.selecting, self.selected)

    def __repr__(self) -> str:
        return f"<join {self.name}>"


A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


def _kept(
    fn: Callable[[A, B], C | None], key: A, row: B | None, where: str, *, log: bool
) -> C | None:
    if row is None:
        return None
    try:
        found = fn(key, row)
        hash(found)  # whatever cannot be filed must be found out before anything is touched
    except Exception as fault:  # noqa: BLE001 - a bug in user code, told once, kept to one row
        if log:
            report(fault, where, key)
        return None
    return found


class JoinState:
    """Where everything is filed; a fork overlays each part."""

    def __init__(self, join: Join[Any, Any, Any, Any], base: JoinState | None = None) -> None:
        # object key -> Labelled; selector key -> (Selector, where it is filed)
        self.labels: Rows = {} if base is None else Overlay(base.labels)
        self.wants: Rows = {} if base is None else Overlay(base.wants)
        # place -> object keys that look there; place -> selector keys filed there
        self.present: Buckets[Place, Any] = Buckets(None if base is None else base.present)
        self.filed: Buckets[Place, Any] = Buckets(None if base is None else base.filed)
        # the two published directions
        self.members: Buckets[Any, Any] = Buckets(None if base is None else base.members)
        self.selectors: Buckets[Any, Any] = Buckets(None if base is None else base.selectors)
        self.to_objects: Source = Source(
            join.to_objects.name, self.members, None if base is None else base.to_objects
        )
        self.to_selectors: Source = Source(
            join.to_selectors.name, self.selectors, None if base is None else base.to_selectors
        )


class JoinKeeper:
    """Moves pairs in and out as labels and selectors change."""

    def __init__(self, join: Join[Any, Any, Any, Any], state: JoinState) -> None:
        self._join = join
        self._state = state

    def publish(self, view: View) -> None:
        """Make both directions readable in `view`."""
        view.sources[self._join.to_objects] = self._state.to_objects
        view.sources[self._join.to_selectors] = self._state.to_selectors

    def fork(self, view: View) -> Keeper:
        """The same over overlays."""
        keeper = JoinKeeper(self._join, JoinState(self._join, self._state))
        keeper.publish(view)
        return keeper

    def apply(self, batch: Batch, noted: Noted) -> None:
        """Absorb edits: objects first, so that the rarity of pairs is known when filing."""
        join = self._join
        for key, _old, new in batch.get(join.selected, ()):
            self.put_object(key, join.labelled(key, new), noted)
        for key, _old, new in batch.get(join.selecting, ()):
            self.put_selector(key, join.selector(key, new), noted)

    def put_object(self, key: object, new: Labelled | None, noted: Noted) -> None:
        """Set or remove one object's labels."""
        state = self._state
        old: Labelled | None = state.labels.get(key)
        if same(old, new):
            return
        if old is not None:
            for place in old.places():
                state.present.remove(place, key)
        state.labels.pop(key, None)
        found: set[Any] = set()
        if new is not None:
            state.labels[key] = new
            for place in new.places():
                state.present.add(place, key)
            found.update(self._selecting(new))
        before = set(state.selectors.peek(key))
        for selector in before - found:
            self._part(selector, key, noted)
        for selector in found - before:
            self._pair(selector, key, noted)

    def _selecting(self, labelled: Labelled) -> Iterator[Any]:
        state = self._state
        for place in labelled.places():
            for key in state.filed.peek(place):
                if state.wants.get(key)[0].matches(labelled.by_name):
                    yield key

    def put_selector(self, key: object, new: Selector | None, noted: Noted) -> None:
        """Set or remove one selector."""
        state = self._state
        old: tuple[Selector, Place] | None = state.wants.get(key)
        if same(old and old[0], new):
            return
        if old is not None:
            state.filed.remove(old[1], key)
        state.wants.pop(key, None)
        found: set[Any] = set()
        if new is not None:
            place = self._rarest(new)
            state.wants[key] = (new, place)
            state.filed.add(place, key)
            for candidate in state.present.peek(place):
                if new.matches(state.labels.get(candidate).by_name):
                    found.add(candidate)
        before = set(state.members.peek(key))
        for member in before - found:
            self._part(key, member, noted)
        for member in found - before:
            self._pair(key, member, noted)

    def _rarest(self, selector: Selector) -> Place:
        """The pair on fewest objects; among equals, the one with fewest selectors filed."""
        state, scope = self._state, selector.scope

        def rarity(pair: tuple[str, str]) -> tuple[int, int]:
            here: Collection[object] = state.present.peek((scope, pair))
            return len(here), len(state.filed.peek((scope, pair)))

        return (scope, min(selector.pairs, key=rarity, default=_ANY))

    def _pair(self, selector: object, member: object, noted: Noted) -> None:
        self._note(selector, member, noted)
        self._state.members.add(selector, member)
        self._state.selectors.add(member, selector)

    def _part(self, selector: object, member: object, noted: Noted) -> None:
        self._note(selector, member, noted)
        self._state.members.remove(selector, member)
        self._state.selectors.remove(member, selector)

    def _note(self, selector: object, member: object, noted: Noted) -> None:
        self._state.to_objects.note(selector, noted)
        self._state.to_selectors.note(member, noted)

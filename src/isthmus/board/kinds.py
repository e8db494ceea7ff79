"""The kinds that a cluster serves now: the built-in ones and those of its definitions.

The registry is a value in the database like any other (`mesh.definitions.registry`): it is as new
as the tables, and whoever learns from a definition's status that it is served finds it served. Here
it is kept watched, so that asking costs a look-up, and told to those who must act when a kind goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from isthmus.board.board import Board
from isthmus.mesh.definitions import registry, remains
from isthmus.model.key import ObjectKey
from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN, Registry

Retire = Callable[[Collection[str]], None]
"""Is told the resources (as store keys name them) that are not what they were."""


class LiveKinds:
    """The registry of one cluster, as it changes."""

    def __init__(self, board: Board, cluster: str) -> None:
        self._board = board
        self._cluster = cluster
        self._told: list[Retire] = []

    @property
    def now(self) -> Registry:
        """Every kind that is served at this moment; one value, which never changes."""
        return self._board.read(registry, self._cluster)

    def by_key_resource(self, resource: str) -> Kind | None:
        """See `Registry.by_key_resource`, and kinds whose objects are left to be deleted."""
        found = self.now.by_key_resource(resource)
        return found or self._board.read(remains, ObjectKey(self._cluster, "", resource))

    def on_retire(self, retire: Retire) -> None:
        """Call this when kinds are gone, or have become others of the same name."""
        self._told.append(retire)

    async def run(self) -> None:
        """Keep the registry at hand, and tell what goes, until cancelled."""
        held = BUILT_IN
        async with self._board.subscribe() as watched:
            watched.add(registry, self._cluster)
            while True:
                for value in (await watched.next()).values():
                    gone = retired(held, value)
                    held = value
                    for retire in self._told if gone else ():
                        retire(gone)


def retired(before: Registry, now: Registry) -> frozenset[str]:
    """The resources of kinds that are gone, were defined anew, or are defined otherwise now.

    Watches of the latter end too, as in Kubernetes: who goes on from where it was sees the objects
    as the new definition shows them.
    """
    found = set[str]()
    for kind in before:
        if not kind.definition:
            continue
        other = now.by_resource(kind.group, kind.plural)
        same = other is not None and (other.definition, other.edition)
        if same != (kind.definition, kind.edition):
            found.add(kind.resource)
    return frozenset(found)

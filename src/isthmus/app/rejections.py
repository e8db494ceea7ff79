"""What proxies reject, as rows of the mesh: for conditions of the objects that are to blame."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from isthmus.aio import Latest
from isthmus.dialects.grpc import GrpcDialect
from isthmus.engine import Change, Delete, Put
from isthmus.ir.names import Origin
from isthmus.mesh.census import CensusKey
from isthmus.mesh.rejections import REJECTIONS, Rejection
from isthmus.model.registry import Registry
from isthmus.serve.xds import Nacked

LONGEST: Final = 512
"""Characters of a proxy's words in a condition."""
_CHANCE: Final = re.compile(r"^\S*goo\.gle/debug\S*\s*:?\s*")
"""What Envoy may put in front of a message: a token that is another one each time."""

Rows = Mapping[CensusKey, tuple[Rejection, ...]]


class Rejections:
    """Follows what streams reject; `run` until cancelled."""

    def __init__(
        self,
        nacked: Latest[tuple[Nacked, ...]],
        kinds: Registry,
        commit: Callable[[Iterable[Change]], Any],
    ) -> None:
        self._nacked = nacked
        self._kinds = kinds
        self._commit = commit

    async def run(self) -> None:
        """Commit each state of the streams as the difference to the one before."""
        held: Rows = {}
        try:
            with self._nacked.watch() as watch:
                while True:
                    held = self._tell(held, rows(await watch.next(), self._kinds))
        finally:
            self._tell(held, {})

    def _tell(self, held: Rows, now: Rows) -> Rows:
        gone = [Delete(REJECTIONS, key) for key in held.keys() - now.keys()]
        new = [Put(REJECTIONS, key, row) for key, row in now.items() if held.get(key) != row]
        if gone or new:
            self._commit([*gone, *new])
        return now


def rows(nacked: Iterable[Nacked], kinds: Registry) -> Rows:
    """What is rejected, by the object to blame; nobody's fault (ours) is for the log alone."""
    guilty: dict[CensusKey, list[Nacked]] = {}
    for one in nacked:
        key = guilty_of(one.origin, kinds)
        if key is not None and _counts(one, key):
            guilty.setdefault(key, []).append(one)
    return {key: tuple(_rejections(several)) for key, several in guilty.items()}


def _counts(one: Nacked, key: CensusKey) -> bool:
    """Whether a rejection is told on the object.

    An Envoy is what its agent started. A gRPC process is any program of a workload that may ask for
    whatever there is, so its word counts in its own namespace alone; `proxy status` has it anyway.
    """
    return one.dialect != GrpcDialect.name or one.proxy.rpartition(".")[2] == key.namespace


def guilty_of(origin: object, kinds: Registry) -> CensusKey | None:
    """The object of an origin, if it is of a kind that can say so."""
    if not isinstance(origin, Origin):
        return None
    ref = origin.ref
    kind = kinds.by_kind(ref.group, ref.kind)
    if kind is None or not kind.status:
        return None
    return CensusKey(ref.cluster, kind.resource, ref.namespace, ref.name)


def _rejections(several: Iterable[Nacked]) -> Iterable[Rejection]:
    """One per resource, whoever rejects it: the words of the first."""
    ordered = sorted(several, key=lambda one: (one.type_url, one.name, one.proxy))
    for (type_url, name), same in groupby(ordered, lambda one: (one.type_url, one.name)):
        all_of_it = list(same)
        yield Rejection(
            type_url.rpartition(".")[2],
            name,
            words(all_of_it[0].message),
            tuple(sorted({one.proxy for one in all_of_it})),
        )


def words(message: str) -> str:
    """A proxy's message as a condition tells it: on one line, not long, the same each time."""
    line = " ".join(_CHANCE.sub("", message).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."

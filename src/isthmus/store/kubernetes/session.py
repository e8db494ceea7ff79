"""One connection to another cluster: list everything, then follow it until the API is silent.

Each resource has its own watch; one that is forbidden, missing or broken troubles no other. A
watch that did not end in order is followed by a list: what happened meanwhile is not known, and a
server that was put back to an earlier state would otherwise go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final, NamedTuple

import msgspec

from isthmus.aio import Backoff, Clock, breathe, deadline, race, together
from isthmus.errors import (
    Compacted,
    Forbidden,
    IsthmusError,
    MethodNotAllowed,
    NotFound,
    PeerFault,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from isthmus.model.key import Key
from isthmus.store.kubernetes import objects
from isthmus.store.kubernetes.client import Client
from isthmus.store.kubernetes.objects import BOUNDS, Bounds
from isthmus.store.kubernetes.resources import MIRRORED, Need, Resource
from isthmus.store.kubernetes.view import View

PAGE: Final = 500
"""Objects asked for at once; fewer where they are large."""
PAGE_TIME: Final = 30.0
"""Seconds for one page."""
PAGES: Final = 4_000
"""Of one list."""
LINE: Final = 4 * 2**20
"""Bytes of one event."""
WATCH_TIME: Final = 300
"""Seconds of one watch; the server ends it in order, and the next begins where it ended."""
IDLE: Final = WATCH_TIME + 30.0
"""Seconds without a line. Whether the API lives is the heartbeat's question."""
BEAT: Final = 1.5
"""Seconds between two questions whether the API lives."""
PATIENCE: Final = 10.0
"""Seconds for the answer, after which the connections are given up."""
SLICE: Final = 25
"""Objects read between two turns of the loop."""
DENIED: Final = 120.0
"""Seconds before a resource that is forbidden or missing is asked for again."""
MOMENT: Final = 10.0
"""Seconds that the first sync waits for what a view can do without; it comes later then."""
QUIETLY: Final = 3
"""Failures to reach the server that are no news: if it is gone, the heartbeat tells."""
AGAIN: Final = Backoff(first=0.2, most=20.0)

_ABSENT: Final = (Forbidden, NotFound, MethodNotAllowed)
_REFUSALS: Final = (*_ABSENT, TooLarge, TooManyRequests)


class Listed(NamedTuple):
    """All objects of one resource. `version` is the resourceVersion, `api` the API's version."""

    objects: dict[Key, bytes]
    version: str
    api: str


Staged = dict[str, Listed | None]
"""By resource; None for what the API does not show us."""


class Means(NamedTuple):
    """Time and chance."""

    clock: Clock
    random: Random


class Told(NamedTuple):
    """Who is told of every sign of life, and that `trouble` has changed."""

    heard: Callable[[], None]
    noticed: Callable[[], None]


class Session:
    """`sync`, then `run`. `trouble` says by resource what does not work now."""

    def __init__(
        self,
        client: Client,
        view: View,
        means: Means,
        told: Told,
        *,
        resources: Sequence[Resource] = MIRRORED,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._client = client
        self._view = view
        self._clock, self._random = means
        self._heard, self._noticed = told
        self._resources = resources
        self._bounds = bounds
        self.trouble: dict[str, str] = {}

    async def sync(self) -> Staged:
        """Everything there is, in memory and not shown yet; the API must live meanwhile.

        Raises:
            IsthmusError: a needed resource cannot be listed; or as `Client`.
        """
        return await race(self._stage(), self._beat())

    async def _stage(self) -> Staged:
        found = await together(*map(self._first, self._resources))
        return {each.name: got for each, got in zip(self._resources, found, strict=True)}

    async def run(self, staged: Staged) -> None:
        """Show what was staged, then follow every resource until the API is silent or refuses us.

        Raises:
            TooLarge: the cluster has more than we take; or as `Client`.
        """
        shown = {name: listed for name, listed in staged.items() if listed is not None}
        every = (listed.objects for listed in shown.values())
        self._view.replace(
            shown.keys(), {key: value for each in every for key, value in each.items()}
        )
        follow = [self._follow(each, staged[each.name]) for each in self._resources]
        await race(self._beat(), *follow)

    # ------------------------------------------------------------------------------------- living

    async def _beat(self) -> None:
        """Ask whether the API lives, again and again; ends by raising why it does not."""
        while True:
            await self._clock.sleep(BEAT)
            with suppress(*_REFUSALS):  # which are answers, too
                await self._client.ask("/version", seconds=PATIENCE)
            self._heard()

    def _complain(self, resource: Resource, fault: IsthmusError) -> None:
        missed = not isinstance(fault, _ABSENT) or resource.need is not Need.EXTRA
        self._say(resource, fault.message if missed else "")

    def _say(self, resource: Resource, why: str) -> None:
        if self.trouble.get(resource.name, "") != why:
            if why:
                self.trouble[resource.name] = why
            else:
                del self.trouble[resource.name]
            self._noticed()

    # ------------------------------------------------------------------------------------ listing

    async def _first(self, resource: Resource) -> Listed | None:
        if resource.need is Need.NEEDED:
            return await self._list(resource)
        try:
            async with deadline(self._clock, MOMENT, f"listing {resource.name}"):
                return await self._list(resource)
        except Unauthenticated:
            raise
        except IsthmusError as fault:
            self._complain(resource, fault)
            return None

    async def _list(self, resource: Resource) -> Listed:
        """In the first version that the API has."""
        last: NotFound | None = None
        for version in resource.versions:
            try:
                return await self._pages(resource, version)
            except NotFound as fault:
                last = last or fault
        raise last or NotFound(f"{resource.name}: no version is known")

    async def _pages(self, resource: Resource, api: str) -> Listed:
        found: dict[Key, bytes] = {}
        size, more, limit, path = 0, "", PAGE, resource.path(api)
        for _ in range(PAGES):
            query = {"limit": str(limit)} | ({"continue": more} if more else {})
            try:
                body = await self._client.ask(
                    path, query=query, seconds=PAGE_TIME, most=self._bounds.page
                )
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            self._heard()
            page = objects.page(body)
            size += len(body)
            self._require_room(resource, len(found) + len(page.items), size)
            await self._take(found, page.items, resource, api)
            if not page.more:
                return Listed(found, page.version, api)
            more = page.more
        raise PeerFault(f"{resource.name}: a list of more than {PAGES} pages")

    def _require_room(self, resource: Resource, count: int, size: int) -> None:
        # What is on the wire also has fields that are not kept: twice the room for it.
        if count > self._bounds.objects or size > 2 * self._bounds.bytes:
            raise TooLarge(
                f"{resource.name}: more than {self._bounds.objects} objects, "
                f"or {self._bounds.bytes} bytes"
            )

    async def _take(
        self,
        found: dict[Key, bytes],
        items: Sequence[msgspec.Raw],
        resource: Resource,
        api: str,
    ) -> None:
        for count, raw in enumerate(items, 1):
            read = objects.item(raw, resource, api)
            if read is not None:
                found[read[0]] = read[1]
            if count % SLICE == 0:
                await breathe()

    # ---------------------------------------------------------------------------------- following

    async def _follow(self, resource: Resource, listed: Listed | None) -> None:
        """Watch; list after whatever is no end in order. Only what ends the session is raised."""
        failures = 0
        while True:
            try:
                if listed is None:
                    listed = await self._list(resource)
                    self._view.replace({resource.name}, listed.objects)
                self._say(resource, "")
                version, api, listed = listed.version, listed.api, Listed({}, *listed[1:])
                while True:
                    version = await self._watch(resource, api, version)
                    failures = 0
            except Unauthenticated:
                raise
            except IsthmusError as fault:
                listed = None
                failures += not isinstance(fault, Compacted)
                await self._pause(resource, fault, failures)

    async def _pause(self, resource: Resource, fault: IsthmusError, failures: int) -> None:
        """What was seen last stays: rights that were taken by mistake must not empty anything."""
        quiet = QUIETLY if isinstance(fault, Unavailable) else 0
        if failures > quiet:
            self._complain(resource, fault)
        if failures:
            pause = AGAIN.pause(failures, self._random)
            await self._clock.sleep(DENIED if isinstance(fault, _ABSENT) else pause)

    async def _watch(self, resource: Resource, api: str, version: str) -> str:
        """One watch to its end in order; the version that the next begins at."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_TIME),
        }
        lines = self._client.lines(resource.path(api), query, idle=IDLE, most=LINE)
        try:
            async for line in lines:
                self._heard()
                seen = objects.event(line, resource, api)
                version = onward(version, seen.version)
                if seen.key is not None:
                    self._view.put(seen.key, seen.value)
        finally:
            await lines.aclose()
        return version


def onward(before: str, now: str) -> str:
    """The newer version; Compacted if the server went back."""
    if before.isdecimal() and now.isdecimal() and int(now) < int(before):
        raise Compacted(f"resource version {now} after {before}: the server was put back")
    return now or before

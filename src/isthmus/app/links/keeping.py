"""Keeps one watcher's view on disk, and shows it after a start while the API does not answer.

A server that starts while a linked cluster is away would otherwise tell its proxies that all of its
endpoints are gone, although a silent API alone takes none away.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isthmus.aio import Clock, Log
from isthmus.app.links.health import SILENCE
from isthmus.app.links.kept import Found, Kept, path_of, read, touch, whose, write
from isthmus.ca import private_directory
from isthmus.errors import IsthmusError
from isthmus.store.contract import Record
from isthmus.store.kubernetes import MIRRORED, Access

if TYPE_CHECKING:
    from isthmus.app.links.watcher import Watcher

PAUSE: Final = 2.0
"""Seconds between two looks whether something has changed."""
RATE: Final = 2 * 2**20
"""Bytes per second that a view which changes all the time may cost; a large one waits longer."""
FRESH: Final = 10.0
"""Seconds by which the file's word for when the API was heard may be too early."""


class Keeping:
    """Writes in a thread; `home` is None where nothing is kept."""

    def __init__(self, watcher: Watcher, home: Path | None, clock: Clock, log: Log) -> None:
        self._watcher = watcher
        self._home = home
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._removed = False
        self._written: tuple[int, Kept] | None = None
        self._heard = 0.0
        self._failing = False

    async def run(self) -> None:
        """Keep until cancelled."""
        while self._home is not None:
            await self._clock.sleep(max(PAUSE, self._watcher.view.bytes / RATE))
            try:
                await self._look(self._home)
                self._failing = False
            except (OSError, IsthmusError) as fault:
                if not self._failing:
                    self._warn("the view of a linked cluster cannot be kept", fault)
                self._failing, self._written = True, None

    async def _look(self, home: Path) -> None:
        access, health = self._watcher.access.value, self._watcher.health
        if access is None or health.heard is None:
            return
        name, view = self._watcher.name, self._watcher.view
        kept = Kept(name, whose(access), self._watcher.told, health.answered)
        state, silence = (view.revision, kept), self._clock.now() - health.heard
        heard, path = self._clock.time() - silence, path_of(home, name)
        if state != self._written:
            await asyncio.to_thread(self._write, path, kept, view.records(), heard)
        elif heard - self._heard >= FRESH:
            await asyncio.to_thread(self._touch, path, heard)
        else:
            return
        self._written, self._heard = state, heard

    def _write(self, path: Path, kept: Kept, records: tuple[Record, ...], heard: float) -> None:
        with self._lock:
            if not self._removed:
                private_directory(path.parent)
                write(path, kept, records, heard)

    def _touch(self, path: Path, heard: float) -> None:
        with self._lock:
            if not self._removed:
                touch(path, heard)

    async def recall(self, access: Access) -> None:
        """Show what was kept of this very cluster, as stale, if nothing is shown yet."""
        if self._home is None or self._watcher.view.synced:
            return
        name = self._watcher.name
        path = path_of(self._home, name)
        try:
            found = await asyncio.to_thread(read, path, name, whose(access))
            if found is not None and not self._watcher.view.synced:
                self._show(found)
        except (OSError, IsthmusError) as fault:
            self._warn("the kept view of a linked cluster is ignored", fault)

    def _show(self, found: Found) -> None:
        watcher, health = self._watcher, self._watcher.health
        watcher.view.replace({each.name for each in MIRRORED}, found.objects)
        watcher.told, health.answered = found.kept.told, found.kept.answered
        # However new the file is, of this connection nothing was heard.
        health.heard = self._clock.now() - max(SILENCE, self._clock.time() - found.heard)

    async def remove(self) -> None:
        """The cluster is no longer linked; also what is being written now goes."""
        if self._home is None:
            return
        try:
            await asyncio.to_thread(self._remove, path_of(self._home, self._watcher.name))
        except OSError as fault:
            self._warn("the kept view of a cluster stays", fault)

    def _remove(self, path: Path) -> None:
        with self._lock:
            self._removed = True
            path.unlink(missing_ok=True)

    def _warn(self, event: str, fault: Exception) -> None:
        self._log.warning(event, cluster=self._watcher.name, why=str(fault))

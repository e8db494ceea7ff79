"""Keeps the mesh's trust: where it is found, when it is made, and that it follows its source.

A *shelf* is where material lies: files that flags name, or the Secret and ConfigMap in the control
plane's namespace. What cannot be used changes nothing: what was in use before stays in use.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Protocol

from isthmus.aio import Clock, Latest, Log
from isthmus.ca import trust
from isthmus.ca.trust import Material, Trust
from isthmus.errors import IsthmusError, Unavailable, UserFault

PERIOD: Final = 5.0
"""Seconds between two looks at files."""


class Shelf(Protocol):
    """Where trust material lies."""

    @property
    def where(self) -> str:
        """For messages: which files or objects."""
        ...

    async def look(self) -> Material | None:
        """What lies there; None: nothing at all. UserFault when only parts are there."""
        ...

    async def keep(self, made: Trust) -> None:
        """Put what was just made there, unless somebody was faster."""
        ...

    async def changed(self) -> None:
        """Return when it may hold something else than `look` said last."""
        ...


class Files:
    """Material in files that flags name."""

    def __init__(self, anchors: Path, issuer: Path, key: Path, clock: Clock) -> None:
        self._paths = (anchors, issuer, key)
        self._clock = clock
        self._seen: object = None

    @property
    def where(self) -> str:
        """The files' names."""
        return ", ".join(map(str, self._paths))

    async def look(self) -> Material:
        """Read them. UserFault names the one that cannot be read."""
        self._seen = self._stamp()
        return Material(*map(_read, self._paths))

    async def keep(self, made: Trust) -> None:
        """Files are somebody else's."""
        raise UserFault(f"there is no trust material in {self.where}")

    async def changed(self) -> None:
        """Wait for a change of a file's inode, size or time."""
        while self._stamp() == self._seen:
            await self._clock.sleep(PERIOD)

    def _stamp(self) -> object:
        try:
            found = [path.stat() for path in self._paths]
        except OSError:
            return None
        return [(each.st_ino, each.st_size, each.st_mtime_ns) for each in found]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise UserFault(f"cannot read {path}: {fault.strerror}") from fault


class Keeper:
    """The one place where a control plane finds its trust."""

    def __init__(self, shelf: Shelf, name: str, clock: Clock, log: Log) -> None:
        """`name` is that of a CA which has to be made."""
        self._shelf = shelf
        self._name = name
        self._clock = clock
        self._log = log
        self._making = asyncio.Lock()
        self._trouble = ""
        self.now: Latest[Trust | None] = Latest(None)
        """The trust in use, to be watched; None before there is any."""

    async def load(self) -> None:
        """Take what lies on the shelf. UserFault if it cannot be used."""
        self._adopt(await self._shelf.look())

    async def trust(self) -> Trust:
        """The trust in use; made and kept if there is none anywhere.

        Raises:
            Unavailable: there is some, and it cannot be used; says why.
        """
        async with self._making:
            held = self.now.value
            found = held if held is not None else await self._find_or_make()
        if found is None:
            raise Unavailable(f"no issuer is loaded: {self._trouble or 'there is none yet'}")
        return found

    async def _find_or_make(self) -> Trust | None:
        try:
            material = await self._shelf.look()
            if material is None:
                await self._shelf.keep(trust.make(self._name, now=self._clock.utc()))
                material = await self._shelf.look()  # another replica may have been faster
            self._adopt(material)
        except UserFault as fault:
            self._trouble = fault.message
        return self.now.value

    async def run(self) -> None:
        """Follow the shelf until cancelled."""
        while True:
            await self._shelf.changed()
            try:
                self._adopt(await self._shelf.look())
                self._trouble = ""
            except IsthmusError as fault:
                if fault.message != self._trouble:
                    self._trouble = fault.message
                    self._log.warning("the issuer stays as it is", why=fault.message)

    def _adopt(self, material: Material | None) -> None:
        before = self.now.value
        if material is None or (before is not None and before.material == material):
            return
        found = trust.read(material, now=self._clock.utc(), where=self._shelf.where)
        self.now.set(found)
        self._log.info(
            "issuer in use",
            issuer=found.issuer.subject.rfc4514_string(),
            until=found.ends.isoformat(),
            anchors=len(found.anchors),
        )

"""What can be seen, and whether it is: each sight says so in a sentence.

A sight is looked for again and again until it is there or its time is over, because what is typed
takes a moment to reach every proxy.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import msgspec

from isthmus.lab.workshop.page import Cell, Page, summary

FAILED: Final = ("Cursing", "Sleeping", "Kaboom")
"""What stands for a smiley that failed."""

LONGEST: Final = 300
"""Characters that are shown of what was printed."""


class Look(Protocol):
    """Where sights look."""

    @property
    def page(self) -> Page:
        """The page."""
        ...

    def again(self) -> str:
        """What the step's last command prints now: it is run once more."""
        ...

    @property
    def printed(self) -> str:
        """What it printed."""
        ...


class Seen(msgspec.Struct, frozen=True):
    """Whether it is there, and what was seen in its place or of it."""

    there: bool
    what: str


class Sight(Protocol):
    """Something that must be seen."""

    @property
    def says(self) -> str:
        """What it is, for people."""
        ...

    def look(self, where: Look) -> Seen:
        """Look once."""
        ...


class Faces(msgspec.Struct, frozen=True, kw_only=True):
    """What the page's cells show, over some rounds.

    `only`: smileys that alone may be there; `all_of`: each of them must be. `failing`: least and
    most share of cells whose smiley failed. `edge`, `center`: the background there.
    """

    says: str
    only: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()
    failing: tuple[float, float] | None = None
    edge: str = ""
    center: str = ""
    rounds: int = 1
    user: str = ""

    def look(self, where: Look) -> Seen:
        cells = [cell for _ in range(self.rounds) for cell in where.page.round(self.user)]
        return Seen(not self._missing(cells), summary(cells))

    def _missing(self, cells: list[Cell]) -> bool:
        seen = {each.smiley for each in cells}
        if self.only and not seen <= set(self.only):
            return True
        if not set(self.all_of) <= seen:
            return True
        if self.failing is not None:
            least, most = self.failing
            share = sum(each.smiley in ("", *FAILED) for each in cells) / len(cells)
            if not least <= share <= most:
                return True
        return any(
            wanted and each.color != wanted
            for each in cells
            for wanted in (self.edge if each.part == "edge" else self.center,)
        )


class Prints(msgspec.Struct, frozen=True, kw_only=True):
    """What the command prints. `times`: lines that match, exactly so many; None: at least one.

    `lacks` must match no line. `rerun`: the command only looks, and may be run again.
    """

    says: str
    line: str = ""
    times: int | None = None
    lacks: str = ""
    rerun: bool = True

    def look(self, where: Look) -> Seen:
        if not self._there(where.printed) and self.rerun:
            where.again()
        return Seen(self._there(where.printed), self._shown(where.printed))

    def _shown(self, text: str) -> str:
        """The first line that it is about, else the last ones."""
        lines = text.splitlines()
        found = [each for each in lines if self.line and re.search(self.line, each)]
        if self.times == 0 and not found:
            return "none"
        return " ".join(found[0].split())[:LONGEST] if found else _excerpt(text)

    def _there(self, text: str) -> bool:
        lines = text.splitlines()
        found = sum(re.search(self.line, line) is not None for line in lines) if self.line else 1
        enough = found == self.times if self.times is not None else found > 0
        return enough and not (self.lacks and any(re.search(self.lacks, each) for each in lines))


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """A number in what the command prints: it grows (`grows`), or does not, between two runs.

    What is no longer counted at all does not grow either.
    """

    says: str
    number: str
    """A pattern with one group, the number; several matches are added up."""
    grows: bool = True

    def look(self, where: Look) -> Seen:
        before = self._sum(where.printed)
        where.page.round()  # nobody else may be asking
        after = self._sum(where.again())
        if after is None and not self.grows:
            return Seen(True, "it is counted no more")
        if before is None or after is None:
            return Seen(False, f"no such line in: {_excerpt(where.printed)}")
        return Seen((after > before) is self.grows, f"{before:g}, then {after:g}")

    def _sum(self, text: str) -> float | None:
        found = re.findall(self.number, text, re.MULTILINE)
        return sum(map(float, found)) if found else None


def _excerpt(text: str) -> str:
    """The last lines, short."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-LONGEST:] or "nothing"

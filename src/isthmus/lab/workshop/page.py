"""The page of Faces, asked as a browser asks it: cell by cell, through the gui."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from isthmus.lab.faces.words import COLORS, SMILEYS, entity

ROWS: Final = 4
PATIENCE: Final = 15.0
"""Seconds that one cell may take."""
AT_ONCE: Final = 8

_SMILEY: Final = {entity(point): name for name, point in SMILEYS.items()}
_COLOR: Final = {value: name for name, value in COLORS.items()}


class Cell(NamedTuple):
    """What one cell shows, in names; "" where there is no answer. `cluster` sent the smiley."""

    part: str
    status: int
    smiley: str = ""
    color: str = ""
    cluster: str = ""
    errors: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """For people: `HeartEyes on blue`."""
        if self.status != 200:
            return f"status {self.status}"
        return f"{self.smiley} on {self.color}"


class Page:
    """One gui, at `http://host:port/`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._at = urlsplit(url)

    def round(self, user: str = "") -> list[Cell]:
        """All cells once, some at the same time. A cell without an answer has status 0."""
        places = [(row, col) for row in range(ROWS) for col in range(ROWS)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda place: self.cell(place[0], place[1], user), places))

    def cell(self, row: int, col: int, user: str = "") -> Cell:
        """One cell."""
        inner = range(1, ROWS - 1)
        part = "center" if row in inner and col in inner else "edge"
        path = f"/face/{part}/?row={row}&col={col}"
        connection = http.client.HTTPConnection(
            self._at.hostname or "", self._at.port or 80, timeout=PATIENCE
        )
        try:
            connection.request("GET", path, headers={"X-Faces-User": user} if user else {})
            answer = connection.getresponse()
            return cell(part, answer.status, answer.read(1 << 20))
        except (OSError, http.client.HTTPException):
            return Cell(part, 0)
        finally:
            connection.close()


def cell(part: str, status: int, body: bytes) -> Cell:
    """What a cell shows of an answer."""
    try:
        read: dict[str, Any] = json.loads(body)
        smiley, color = str(read["smiley"]), str(read["color"])
    except (ValueError, KeyError, TypeError):
        return Cell(part, status)
    answered = read.get("answered") or {}
    return Cell(
        part,
        status,
        _SMILEY.get(smiley, smiley),
        _COLOR.get(color, color),
        str((answered.get("smiley") or {}).get("cluster") or ""),
        tuple(map(str, read.get("errors") or ())),
    )


def summary(cells: Iterable[Cell]) -> str:
    """How often each look is there: `12 HeartEyes on blue, 4 Cursing on grey`."""
    counts: dict[str, int] = {}
    for each in cells:
        counts[each.shown] = counts.get(each.shown, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {shown}" for shown, count in ordered) or "nothing"

"""Lists of ports: `25, 4000-4003, mysql`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from isthmus.model.annotations.grammar import Problem
from isthmus.model.annotations.keys import OPAQUE_PORTS
from isthmus.model.names import port_name_problems

_NUMBER: Final = re.compile(r"[0-9]{1,5}")
_RANGE: Final = re.compile(r"([0-9]{1,5})\s{0,8}-\s{0,8}([0-9]{1,5})")
MAX_ITEMS: Final = 4096
"""Items of one list; there are only 65535 ports."""


class Ports(NamedTuple):
    """A set of ports: inclusive ranges, and names that containers give to ports."""

    ranges: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    def holds(self, port: int, names: Collection[str] = ()) -> bool:
        """Whether the port is meant, by number or by one of its names."""
        by_number = any(low <= port <= high for low, high in self.ranges)
        return by_number or any(name in self.names for name in names)


NO_PORTS: Final = Ports()


def port_list(text: str, *, names: bool = False, key: str = OPAQUE_PORTS) -> Ports | Problem:
    """The ports of a list. Items are trimmed, empty ones passed over; one bad item spoils it all.

    `names` lets names of container ports stand in it (pods and ExternalWorkloads know theirs).
    """
    if text.count(",") >= MAX_ITEMS:
        return Problem(key, text[:128], f"may not have more than {MAX_ITEMS} items")
    ranges: list[tuple[int, int]] = []
    named: list[str] = []
    for item in filter(None, map(str.strip, text.split(","))):
        found = _range(item)
        if found is not None:
            ranges.append(found)
        elif names and not port_name_problems(item):
            named.append(item)
        else:
            return Problem(key, text[:128], f"{item[:64]!r} is no port and no range of ports")
    return Ports(tuple(ranges), tuple(named))


def _range(item: str) -> tuple[int, int] | None:
    if _NUMBER.fullmatch(item):
        low = high = int(item)
    else:
        found = _RANGE.fullmatch(item)
        if found is None:
            return None
        low, high = int(found[1]), int(found[2])
    return (low, high) if 1 <= low <= high <= 65535 else None

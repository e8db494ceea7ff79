"""Tables as linkerd's newer commands draw them, with lines from a row to those below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

LINE: Final = "─"
ARROW: Final = "─►"
BRANCH: Final = "├─"
LAST: Final = "└─"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """The first `left` columns are left-aligned, the others right-aligned.

    Two blanks follow every cell, also the last; cells that end or begin in a line are drawn
    through.
    """
    lines = [header, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    return "".join(f"{_line(line, widths, left)}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    parts = []
    for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        parts.append(_padded(cell, width, right=at >= left))
        after = cells[at + 1] if at + 1 < len(cells) else ""
        drawn = cell.endswith(LINE) and after.startswith(LINE)
        parts.append(LINE * 2 if drawn else "  ")
    return "".join(parts)


def _padded(cell: str, width: int, *, right: bool) -> str:
    if cell.startswith(LINE):
        return cell.rjust(width, LINE)
    if cell.endswith(LINE):
        return cell.ljust(width, LINE)
    return cell.rjust(width) if right else cell.ljust(width)


def percent(value: float) -> str:
    """`92.31%`."""
    return "NaN%" if math.isnan(value) else f"{value * 100:.2f}%"


def millis(value: float) -> str:
    """`11ms`; `-` where there was nothing."""
    return "-" if math.isnan(value) else f"{value:.0f}ms"


def at_port(name: str, port: str) -> str:
    """`name:port`, without a colon where there is no port."""
    return f"{name}:{port}" if port else name

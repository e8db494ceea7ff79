"""A log that a test can read."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    level: str
    event: str
    fields: dict[str, object]


class ListLog:
    """Keeps what is logged, in order; has the shape of a structlog logger."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def debug(self, event: str, /, **fields: object) -> None:
        self.lines.append(Line("debug", event, fields))

    def info(self, event: str, /, **fields: object) -> None:
        self.lines.append(Line("info", event, fields))

    def warning(self, event: str, /, **fields: object) -> None:
        self.lines.append(Line("warning", event, fields))

    def error(self, event: str, /, **fields: object) -> None:
        self.lines.append(Line("error", event, fields))

    def events(self) -> list[str]:
        return [line.event for line in self.lines]

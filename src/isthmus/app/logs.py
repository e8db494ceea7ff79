"""The log: events with fields, on stderr.

On a terminal lines are coloured (unless NO_COLOR is set); `json` writes one object per line. Values
come from outside too, so control characters never reach a terminal. Losing the reader of stderr
loses log lines, never requests.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from isthmus.config import LogFormat

Fields = MutableMapping[str, Any]


class _Unbreakable:
    """A text file that swallows what its reader does not want; of one, what structlog uses."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._file.write(text)
        return 0

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()


BURST = 5
"""How often a library may say the same within `PERIOD`."""

PERIOD = 10.0
"""Seconds."""

TOPICS = 256
"""How many different things are told apart."""


class _Forward(logging.Handler):
    """What libraries say through the standard module, as events.

    Some say the same thousands of times a second (asyncio, of connections that it cannot accept):
    what is over `BURST` is counted, and told with the next line of its sort.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage()
        topic = (record.name, message.partition("\n")[0][:80], type(error).__name__)
        since, count = self._said.get(topic, (record.created, 0))
        more: Fields = {}
        if not 0 <= record.created - since < PERIOD:
            if count > BURST:
                more["left_out"] = count - BURST
            since, count = record.created, 0
        if len(self._said) >= TOPICS:
            self._said.clear()
        self._said[topic] = (since, count + 1)
        if count < BURST:
            log = structlog.get_logger()
            log.log(record.levelno, message, source=record.name, exc_info=error, **more)


def configure(form: LogFormat, file: TextIO | None = None) -> None:
    """Write the log of this process to `file` (stderr) in `form`."""
    out = file or sys.stderr
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _plain,
            *_render(form, out),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Unbreakable(out))),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


def _render(form: LogFormat, out: TextIO) -> list[Any]:
    match form:
        case LogFormat.JSON:
            tracebacks = structlog.processors.format_exc_info
            return [tracebacks, structlog.processors.JSONRenderer(default=str)]
        case LogFormat.CONSOLE:
            colours = out.isatty() and not os.environ.get("NO_COLOR")
            formatter = structlog.dev.plain_traceback
            return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=formatter)]


def _plain(_logger: object, _method: str, fields: Fields) -> Fields:
    """Escape control characters: a name in a log line must not write a line of its own."""
    for key, value in fields.items():
        if isinstance(value, str) and not value.isprintable():
            fields[key] = value.encode("unicode_escape").decode()
    return fields

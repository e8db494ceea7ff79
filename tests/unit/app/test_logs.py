"""The log: two forms, no control characters, and a reader that may leave."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from isthmus.app import logs
from isthmus.config import LogFormat


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers, logging.root.level = handlers, level
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def lines(form: LogFormat, name: str = "x") -> str:
    out = io.StringIO()
    logs.configure(form, out)
    structlog.get_logger().info("served", name=name, count=3)
    return out.getvalue()


def test_json_is_an_object_per_line() -> None:
    read = json.loads(lines(LogFormat.JSON))
    assert read.pop("timestamp").endswith("Z")
    assert read == {"event": "served", "level": "info", "name": "x", "count": 3}


def test_console_without_a_terminal_has_no_colours() -> None:
    told = lines(LogFormat.CONSOLE)
    assert "served" in told
    assert "count=3" in told
    assert "\x1b" not in told


@pytest.mark.parametrize("form", list(LogFormat))
def test_a_name_cannot_write_a_line_or_move_the_cursor(form: LogFormat) -> None:
    told = lines(form, name="a\nerror: forged\x1b[2J\u202e")
    assert told.count("\n") == 1
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_a_traceback_is_kept() -> None:
    out = io.StringIO()
    logs.configure(LogFormat.JSON, out)
    structlog.get_logger().warning("failed", exc_info=ZeroDivisionError("oops"))
    assert "ZeroDivisionError: oops" in json.loads(out.getvalue())["exception"]


def test_libraries_speak_through_it() -> None:
    out = io.StringIO()
    logs.configure(LogFormat.JSON, out)
    logging.getLogger("isthmus.engine").error("%s failed", "q", exc_info=ValueError("v"))
    read = json.loads(out.getvalue())
    assert read["event"] == "q failed"
    assert read["source"] == "isthmus.engine"
    assert "ValueError: v" in read["exception"]
    logging.getLogger("aiohttp.access").info("not told")
    assert out.getvalue().count("\n") == 1


def test_a_reader_that_left_stops_nobody() -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    logs.configure(LogFormat.JSON, Gone())
    structlog.get_logger().info("still here")


def test_a_library_that_repeats_itself_is_cut_short_and_counted() -> None:
    out = io.StringIO()
    logs.configure(LogFormat.JSON, out)
    library = logging.getLogger("library")

    def say(text: str, at: float) -> None:
        record = library.makeRecord("library", logging.ERROR, "", 0, text, (), None)
        record.created = at
        library.handle(record)

    for number in range(1000):
        say(f"no more files\n{number}", 100.0 + number / 1000)
    say("something else", 101.0)
    say("no more files\nstill", 200.0)
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    again = ["no more files\\n" + each for each in ("0", "1", "2", "3", "4")]
    assert [each["event"] for each in told] == [
        *again, "something else", "no more files\\nstill",
    ]  # fmt: skip
    assert [each.get("left_out") for each in told] == [None] * 6 + [995]

"""Checks, in categories: how they are run and how they are told, as `linkerd check` does.

A check is a function: what it returns is told below it when all is well (mostly nothing); an
IsthmusError is what is wrong; Skip means that there is nothing to say, and then nothing is printed.
A fatal one that fails ends the run: what follows would fail for the same reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import click

from isthmus.errors import IsthmusError, UserFault

HINTS: Final = "docs/checks.md"
"""Where every hint leads: this file has a heading for each."""
AGAIN: Final = 1.0
"""Seconds between two looks at something that may still become right."""
MOMENT: Final = 3.0
"""Seconds for failures that somebody has to mend: he may just have done it."""
WAIT: Final = "5m0s"

Work = Callable[[], str]


class Skip(Exception):
    """There is nothing to check."""


class Settled(UserFault):
    """A failure that waiting alone does not mend: it is looked at again for a moment only."""


class Result(StrEnum):
    """How a check ended, in the words of the JSON form."""

    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


MARKS: Final = {Result.SUCCESS: "√", Result.WARNING: "‼", Result.ERROR: "×"}


class Check(NamedTuple):
    """One line. `hint` is a heading of HINTS. `warns`: a failure is no error.

    `waits`: a failure is looked at again until the time of --wait is over.
    """

    description: str
    hint: str
    work: Work
    fatal: bool = False
    warns: bool = False
    waits: bool = False


class Category(NamedTuple):
    """Checks under one title."""

    name: str
    checks: Sequence[Check]


class Outcome(NamedTuple):
    """What came of one check. `detail` is told when all is well."""

    category: str
    description: str
    result: Result
    error: str = ""
    hint: str = ""
    detail: str = ""
    settled: bool = False


def outcomes(
    categories: Iterable[Category], seconds: float, now: Callable[[], float],
    pause: Callable[[float], None],
) -> Iterator[Outcome]:  # fmt: skip
    """Run them in order, each until it is well or `seconds` are over, counted from the start."""
    end = now() + seconds
    for category in categories:
        for check in category.checks:
            found, brief = _once(category.name, check), min(now() + MOMENT, end)
            while found and check.waits and found.result is not Result.SUCCESS:
                if now() >= (brief if found.settled else end):
                    break
                pause(AGAIN)
                found = _once(category.name, check)
            if found is None:
                continue
            yield found
            if check.fatal and found.result is Result.ERROR:
                return


def _once(category: str, check: Check) -> Outcome | None:
    try:
        detail = check.work()
    except Skip:
        return None
    except IsthmusError as fault:
        result = Result.WARNING if check.warns else Result.ERROR
        hint, settled = f"{HINTS}#{check.hint}", isinstance(fault, Settled)
        return Outcome(category, check.description, result, fault.message, hint, settled=settled)
    return Outcome(category, check.description, Result.SUCCESS, detail=detail)


# ----------------------------------------------------------------------------------------- telling


def tell(found: Iterable[Outcome], form: str) -> int:
    """Print them as they come (as JSON: at the end); the exit code."""
    if form == "json":
        return _json(list(found))
    category, well = "", True
    for each in found:
        well = well and each.result is not Result.ERROR
        if form == "short" and each.result is Result.SUCCESS:
            continue
        if each.category != category:
            click.echo(
                f"\n{_title(each.category)}" if category else _title(each.category), nl=False
            )
            category = each.category
        click.echo(_lines(each), nl=False)
        sys.stdout.flush()
    if category:
        click.echo()
    click.echo(f"Status check results are {'√' if well else '×'}")
    return 0 if well else 1


def _title(name: str) -> str:
    return f"{name}\n{'-' * len(name)}\n"


def _lines(found: Outcome) -> str:
    lines = [f"{MARKS[found.result]} {found.description}"]
    if found.result is Result.SUCCESS:
        lines += found.detail.splitlines()
    else:
        lines += [f"    {line}" for line in found.error.splitlines()]
        lines.append(f"    see {found.hint} for hints")
    return "".join(f"{line}\n" for line in lines)


def _json(found: Sequence[Outcome]) -> int:
    well = all(each.result is not Result.ERROR for each in found)
    categories: dict[str, list[dict[str, str]]] = {}
    for each in found:
        told = {
            "description": each.description,
            "hint": each.hint,
            "error": each.error,
            "result": each.result.value,
        }
        shown = {name: value for name, value in told.items() if value}
        categories.setdefault(each.category, []).append(shown)
    listed = [{"categoryName": name, "checks": held} for name, held in categories.items()]
    click.echo(json.dumps({"success": well, "categories": listed}, indent=2, ensure_ascii=False))
    return 0 if well else 1


# ----------------------------------------------------------------------------------------- options

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "short")),
    default="table",
    show_default=True,
    metavar="table|json|short",
    help="Form of the output.",
)
wait_option = click.option(
    "--wait", metavar="DURATION", default=WAIT, show_default=True,
    help="How long what may still become right is waited for.",
)  # fmt: skip


def seconds(text: str) -> float:
    """Of --wait: a Go duration such as 5m0s. UserFault if it is none."""
    from isthmus.model.duration import parse_duration

    found = parse_duration(text)
    if found is None or found < 0:
        raise UserFault(f"--wait {text!r} is no duration such as 30s or 5m")
    return found / 1e9


def run(categories: Iterable[Category], form: str, wait: str) -> int:
    """Run and tell; the exit code: 1 if anything is an error."""
    from isthmus.aio import SystemClock

    clock = SystemClock()
    return tell(outcomes(categories, seconds(wait), clock.now, pause), form)


def pause(span: float) -> None:
    """Do nothing for so many seconds."""
    from threading import Event

    Event().wait(span)

"""`-o`: the same facts for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from isthmus.errors import UserFault

F = TypeVar("F", bound=Callable[..., Any])


def output_option(*formats: str, default: str) -> Callable[[F], F]:
    """Give a command `-o/--output`, one of `formats`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=default,
        show_default=True,
        metavar="|".join(formats),
        help="Form of the output.",
    )


def text(value: object, form: str) -> str:
    """`value` as json or yaml, ending in a newline."""
    match form:
        case "json":
            return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            import yaml

            return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
        case _:
            raise UserFault(f"there is no output format {form!r}; use json or yaml")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, gap: int = 3) -> str:
    """Columns as wide as their widest cell, `gap` blanks apart, none behind the last."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    pad = " " * gap
    return "".join(
        pad.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )

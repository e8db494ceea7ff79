"""`isthmus version`."""

from __future__ import annotations

import platform

import click

from isthmus import __version__
from isthmus.cli.options import hidden_global_options
from isthmus.cli.output import output_option, table, text

EPILOG = """\b
Examples:
  isthmus version
  isthmus version -o short      (the number alone)
"""


@click.command(epilog=EPILOG)
@output_option("table", "json", "yaml", "short", default="table")
@hidden_global_options
def version(output: str) -> None:
    """Print the version of this program and of what runs it."""
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    match output:
        case "short":
            click.echo(__version__)
        case "table":
            click.echo(table(list(map(str.upper, facts)), [list(facts.values())]), nl=False)
        case _:
            click.echo(text(facts, output), nl=False)

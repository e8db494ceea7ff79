"""`isthmus viz stat-outbound` and `stat-inbound`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import click

from isthmus.cli.commands.viz_asking import Counted, counted, window_option
from isthmus.cli.options import Globals, global_options

OUTBOUND_EPILOG = """\b
Examples:
  isthmus viz stat-outbound -n faces deploy/face
  watch isthmus viz stat-outbound -n faces deploy/face
"""
INBOUND_EPILOG = """\b
Examples:
  isthmus viz stat-inbound -n faces deploy
  isthmus viz stat-inbound -n faces sts/web -t 5m
"""

_output = click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True,
    metavar="table|json", help="Form of the output.",
)  # fmt: skip

Tell = Callable[[list[Counted], str], str]


@click.command(name="stat-outbound", epilog=OUTBOUND_EPILOG)
@click.argument("resource", metavar="RESOURCE", nargs=-1, required=True)
@window_option
@_output
@global_options
@click.pass_context
def stat_outbound(
    context: click.Context, resource: tuple[str, ...], time_window: str, output: str
) -> None:
    """Show what leaves workloads: success, rate and latency by service, route and backend.

    RESOURCE is TYPE/NAME or TYPE, such as deploy/face. Backends count attempts, so that retries
    show: a route may succeed where its backends fail.
    """
    found = counted(context.find_root().ensure_object(Globals), resource, time_window)
    click.echo(told_outbound(found, output), nl=False)


@click.command(name="stat-inbound", epilog=INBOUND_EPILOG)
@click.argument("resource", metavar="RESOURCE", nargs=-1, required=True)
@window_option
@_output
@global_options
@click.pass_context
def stat_inbound(
    context: click.Context, resource: tuple[str, ...], time_window: str, output: str
) -> None:
    """Show what comes to workloads: success, rate and latency by server and route."""
    found = counted(context.find_root().ensure_object(Globals), resource, time_window)
    click.echo(told_inbound(found, output), nl=False)


def told_outbound(found: list[Counted], output: str) -> str:
    """A table, or a compact array."""
    from isthmus.cli.viz import outbound
    from isthmus.cli.viz.tables import table

    every = [(each.name, outbound.routes(each.changes)) for each in found]
    if output == "json":
        return _compact(one for each in every for one in outbound.documents(*each))
    return table(
        outbound.HEADER, [row for each in every for row in outbound.rows(*each)], outbound.LEFT
    )


def told_inbound(found: list[Counted], output: str) -> str:
    """A table, or a compact array."""
    from isthmus.cli.viz import inbound
    from isthmus.cli.viz.tables import table

    every = [(each.name, inbound.doors(each.changes)) for each in found]
    if output == "json":
        return _compact(one for each in every for one in inbound.documents(*each))
    return table(
        inbound.HEADER, [row for each in every for row in inbound.rows(*each)], inbound.LEFT
    )


def _compact(found: Iterator[dict[str, Any]]) -> str:
    return json.dumps(list(found), separators=(",", ":")) + "\n"

"""`isthmus viz`: success, rate and latency, from the proxies themselves."""

from __future__ import annotations

import click

from isthmus.cli.group import LazyGroup
from isthmus.cli.options import global_options

COMMANDS = {
    "edges": ("isthmus.cli.commands.viz_edges:edges", "Who calls whom, and whether by mTLS."),
    "stat-inbound": (
        "isthmus.cli.commands.viz_stat:stat_inbound",
        "What comes to workloads, by server and route.",
    ),
    "stat-outbound": (
        "isthmus.cli.commands.viz_stat:stat_outbound",
        "What leaves workloads, by service, route and backend.",
    ),
}

EPILOG = """\b
Examples:
  isthmus viz stat-outbound -n faces deploy/face
  isthmus viz stat-inbound -n faces deploy -t 30s -o json
  isthmus viz edges -n faces deploy
"""


@click.command(cls=LazyGroup, commands=COMMANDS, epilog=EPILOG, name="viz")
@global_options
def viz() -> None:
    """Show what proxies counted over the last minute or minutes.

    They are asked through the cluster's API, and remember ten minutes: no Prometheus is needed.
    """

"""`isthmus diagnostics`: what a control plane tells proxies, asked as a proxy asks."""

from __future__ import annotations

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.group import LazyGroup

COMMANDS = {
    "endpoints": (
        "isthmus.cli.commands.diagnostics_endpoints:endpoints",
        "Addresses that proxies would send to.",
    ),
    "policy": (
        "isthmus.cli.commands.diagnostics_policy:policy",
        "What proxies are told of a pod's or a Service's port.",
    ),
    "profile": (
        "isthmus.cli.commands.diagnostics_profile:profile",
        "How proxies would treat connections to an address.",
    ),
    "proxy-metrics": (
        "isthmus.cli.commands.diagnostics_metrics:proxy_metrics",
        "What the proxies of a workload count.",
    ),
}

EPILOG = """\b
Examples:
  isthmus diagnostics endpoints web.shop.svc.cluster.local:80
  isthmus diagnostics --context east profile 10.96.0.10:80
"""


@click.command(
    cls=LazyGroup, commands=COMMANDS, aliases={"ep": "endpoints"}, epilog=EPILOG, name="diagnostics"
)
@place_options
def diagnostics() -> None:
    """Ask a control plane what it tells proxies.

    The control plane is that of --context: its listener is found through its cluster's API.
    """

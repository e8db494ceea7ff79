"""`isthmus multicluster`: clusters that use each other's services."""

from __future__ import annotations

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.group import LazyGroup

COMMANDS = {
    "install": (
        "isthmus.cli.commands.multicluster_install:install",
        "Print what a cluster needs before others link to it.",
    ),
    "link": (
        "isthmus.cli.commands.multicluster_link:link",
        "Print what lets another cluster use this one's services.",
    ),
    "link-gen": (
        "isthmus.cli.commands.multicluster_link:link_gen",
        "The same as link, under the name of newer versions.",
    ),
    "unlink": (
        "isthmus.cli.commands.multicluster_unlink:unlink",
        "Print what is to be deleted to end a link.",
    ),
    "check": (
        "isthmus.cli.commands.multicluster_check:check",
        "Check links, credentials, trust and mirrors, in both directions.",
    ),
    "gateways": (
        "isthmus.cli.commands.multicluster_gateways:gateways",
        "Show the gateways of linked clusters.",
    ),
}

EPILOG = """\b
Let cluster hub use services of cluster east:
  isthmus --context=east multicluster install | kubectl --context=east apply -f -
  isthmus --context=hub multicluster install | kubectl --context=hub apply -f -
  isthmus --context=east multicluster link --cluster-name=east | kubectl --context=hub apply -f -
  isthmus --context=hub multicluster check
"""


@click.command(cls=LazyGroup, commands=COMMANDS, epilog=EPILOG, name="multicluster")
@place_options
def multicluster() -> None:
    """Link clusters, so that each uses the others' services.

    Mirroring runs inside `isthmus server`: install and link print no Deployments for it. On one
    flat network no gateway is needed either: --gateway=false.
    """

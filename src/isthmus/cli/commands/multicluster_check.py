"""`isthmus multicluster check`."""

from __future__ import annotations

import click

from isthmus import __version__
from isthmus.cli.checks import output_option, run, wait_option
from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.options import Globals

EPILOG = """\b
Example:
  isthmus --context=hub multicluster check
"""


@click.command(epilog=EPILOG)
@click.option("--expected-version", metavar="TEXT", default=__version__, hidden=True)
@click.option("--proxy", is_flag=True, hidden=True)
@wait_option
@output_option
@place_options
@click.pass_context
def check(
    context: click.Context, wait: str, output: str, expected_version: str, *, proxy: bool
) -> int:
    """Check the links of a cluster, and what waits for those that link to it.

    Credentials, trust, rights, gateways and mirrors. What may still become right is waited for.
    """
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.multicluster import facts
    from isthmus.cli.multicluster.checks import World, categories
    from isthmus.errors import NotFound

    del proxy  # its checks are always made
    said = context.find_root().ensure_object(Globals)
    cluster = Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))
    try:
        own = facts.ask(cluster, said.linkerd_namespace)
    except NotFound:
        own = facts.Facts()
    return run(categories(World(cluster, own), expected_version), output, wait)

"""`isthmus check`."""

from __future__ import annotations

import click

from isthmus import __version__
from isthmus.cli.checks import output_option, run, wait_option
from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.options import Globals

EPILOG = """\b
Examples:
  isthmus check
  isthmus --context=east check --proxy -n shop
  isthmus check -o short
"""


@click.command(epilog=EPILOG)
@click.option("--proxy", is_flag=True, help="Check the data plane too; with -n, of a namespace.")
@click.option("--expected-version", metavar="TEXT", default=__version__, hidden=True)
@wait_option
@output_option
@place_options
@click.pass_context
def check(
    context: click.Context, wait: str, output: str, expected_version: str, *, proxy: bool
) -> int:
    """Check a cluster: its API, control plane and trust, what its objects say, links, proxies.

    Exit code 1 if anything is wrong (×); warnings (‼) do not count. What may still become right is
    waited for.
    """
    from isthmus.aio import SystemClock
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.mesh_checks import World, categories

    said = context.find_root().ensure_object(Globals)

    def connect() -> Cluster:
        return Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))

    world = World(connect, said.linkerd_namespace, SystemClock().utc())
    found = categories(world, expected_version, proxies=proxy, namespace=said.namespace)
    return run(found, output, wait)

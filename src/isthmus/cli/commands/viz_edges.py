"""`isthmus viz edges`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from isthmus.cli.commands.viz_asking import ask, window_option
from isthmus.cli.options import Globals, global_options

if TYPE_CHECKING:
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.viz.edges import Edge, Member
    from isthmus.cli.workloads import Found, Workload

EPILOG = """\b
Examples:
  isthmus viz edges -n faces deploy
  isthmus viz edges -A deploy/face -o wide
"""


@click.command(epilog=EPILOG)
@click.argument("resource", metavar="RESOURCE", nargs=-1, required=True)
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@window_option
@click.option(
    "-o", "--output", type=click.Choice(("table", "wide", "json")), default="table",
    show_default=True, metavar="table|wide|json", help="Form of the output.",
)  # fmt: skip
@global_options
@click.pass_context
def edges(
    context: click.Context,
    resource: tuple[str, ...],
    time_window: str,
    output: str,
    *,
    all_namespaces: bool,
) -> None:
    """Show who calls whom, and whether mTLS secures it.

    RESOURCE is a TYPE, such as deploy, or TYPE/NAME for the edges from and to one. Calls are seen
    where they arrive: those that leave the namespace, or the cluster, are shown where they go.
    """
    from isthmus.cli import kubeconfig, workloads
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.viz import edges as viz
    from isthmus.cli.viz.window import duration

    said = context.find_root().ensure_object(Globals)
    seconds = duration(time_window)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    cluster = Cluster(access)
    wanted = workloads.read(resource)
    spaces = _all(cluster) if all_namespaces else [said.namespace or access.namespace]
    found = {space: _meshed(cluster, space, wanted) for space in spaces}
    told = [
        (_member(space, workload), each.changes)
        for space, some in found.items()
        if some
        for workload, each in zip(some, ask(access, some, seconds), strict=True)
    ]
    senders = [member for member, changes in told if viz.sends(changes)]
    made = {edge for member, changes in told for edge in viz.edges(member, changes, senders)}
    named = {each.name for each in wanted if each.name}
    shown = {each for each in made if not named or {each.source, each.target} & named}
    _print(shown, output)


def _print(shown: set[Edge], output: str) -> None:
    from isthmus.cli.output import table
    from isthmus.cli.viz import edges as viz

    if output == "json":
        click.echo(json.dumps(viz.documents(shown), indent=2))
    elif not shown:
        click.echo("No edges found.")
    else:
        wide = output == "wide"
        click.echo(table(viz.WIDE if wide else viz.HEADER, viz.rows(shown, wide=wide)), nl=False)


def _all(cluster: Cluster) -> list[str]:
    items = cluster.get("/api/v1/namespaces").get("items") or []
    return sorted(str(each["metadata"]["name"]) for each in items)


def _meshed(cluster: Cluster, namespace: str, wanted: Sequence[Workload]) -> list[Found]:
    """All workloads of these kinds whose pods have proxies."""
    from isthmus.cli import workloads

    kinds = dict.fromkeys(workloads.Workload(each.kind) for each in wanted)
    every = workloads.find(cluster, namespace, list(kinds))
    some = [each._replace(pods=tuple(filter(_has_proxy, each.pods))) for each in every]
    return [each for each in some if each.pods]


def _has_proxy(pod: object) -> bool:
    from isthmus.cli import proxies
    from isthmus.errors import UserFault

    try:
        proxies.port(pod)  # type: ignore[arg-type]  # an object
    except UserFault:
        return False
    return True


def _member(namespace: str, found: Found) -> Member:
    from isthmus.cli.viz.edges import Member

    spec = found.pods[0].get("spec") or {}
    return Member(namespace, found.name, str(spec.get("serviceAccountName") or "default"))

"""`isthmus multicluster gateways`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from isthmus.cli.checks import wait_option
from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.multicluster import names
from isthmus.cli.options import Globals
from isthmus.errors import IsthmusError

if TYPE_CHECKING:
    from isthmus.cli.cluster import Cluster

HEADER = ("CLUSTER", "ALIVE", "NUM_SVC", "LATENCY")
WIDTHS = (7, 5, 9, 11)

EPILOG = """\b
Example:
  isthmus --context=hub multicluster gateways
"""


class Row(NamedTuple):
    """One linked cluster with a gateway. `latency` in ms, None where nothing was measured."""

    cluster: str
    alive: bool
    services: int
    latency: int | None


@click.command(epilog=EPILOG)
@click.option("--cluster-name", metavar="NAME", default="", help="Only this one.")
@click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True,
    metavar="table|json", help="Form of the output.",
)  # fmt: skip
@wait_option
@place_options
@click.pass_context
def gateways(context: click.Context, cluster_name: str, output: str, wait: str) -> None:
    """Show the gateways of linked clusters: whether they answer, and for how many services.

    Links without a gateway are not listed.
    """
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster

    del wait  # nothing is waited for
    said = context.find_root().ensure_object(Globals)
    cluster = Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))
    mirrors = cluster.get("/api/v1/services", labelSelector=f"{names.MIRRORED}=true")
    links = cluster.get(names.LINKS).get("items") or []
    found = rows(links, mirrors.get("items") or [], _latencies(cluster, said.linkerd_namespace))
    shown = [row for row in found if cluster_name in ("", row.cluster)]
    if output == "json":
        click.echo(json.dumps([as_json(row) for row in shown] or None, indent=2))
    else:
        click.echo(table(shown), nl=False)


def _latencies(cluster: Cluster, namespace: str | None) -> dict[str, int]:
    """What the control plane measures, in ms, by cluster; nothing if it cannot be asked."""
    from isthmus.cli.admin import page

    try:
        _, found = page(cluster.listener("admin", namespace), "/links")
    except IsthmusError:
        return {}
    return {
        str(each["cluster"]): int(each["gatewayLatencyMillis"])
        for each in (found if isinstance(found, list) else [])
        if each.get("gatewayLatencyMillis") is not None
    }


def rows(
    links: Iterable[dict[str, Any]],
    mirrors: Iterable[dict[str, Any]],
    latencies: Mapping[str, int],
) -> list[Row]:
    """Of the Links that have a gateway, by their clusters' names."""
    counts: dict[str, int] = {}
    for each in mirrors:
        labels = each["metadata"].get("labels") or {}
        name = labels.get(names.MIRROR_CLUSTER)
        if name and names.REMOTE_DISCOVERY not in labels:
            counts[name] = counts.get(name, 0) + 1
    found = []
    for link in links:
        spec = link.get("spec") or {}
        if spec.get("gatewayAddress"):
            cluster = str(spec.get("targetClusterName") or link["metadata"]["name"])
            services = counts.get(cluster, 0)
            found.append(Row(cluster, _alive(link), services, latencies.get(cluster)))
    return sorted(found)


def _alive(link: dict[str, Any]) -> bool:
    from isthmus.cli.multicluster.checks import GATEWAY

    conditions = (link.get("status") or {}).get("conditions") or []
    nothing: dict[str, Any] = {}
    said = next((each for each in conditions if each.get("type") == GATEWAY), nothing)
    return said.get("status") == "True"


def as_json(row: Row) -> dict[str, Any]:
    """As programs read it."""
    return {
        "clusterName": row.cluster,
        "alive": row.alive,
        "numberOfServices": row.services,
        "latency": row.latency or 0,
    }


def table(found: Sequence[Row]) -> str:
    """Two blanks behind every column; the last two are right-aligned."""
    lines = [HEADER, *(_cells(row) for row in found)]
    widths = [
        max(least, *(len(line[column]) for line in lines)) for column, least in enumerate(WIDTHS)
    ]
    return "".join(
        "".join(
            (cell.ljust(width) if column < 2 else cell.rjust(width)) + "  "
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + "\n"
        for line in lines
    )


def _cells(row: Row) -> tuple[str, str, str, str]:
    latency = f"{row.latency}ms" if row.alive and row.latency is not None else "-"
    return (row.cluster, str(row.alive), str(row.services), latency)

"""`isthmus lab status`, `exec` and `logs`: asked of the lab itself, over its Unix socket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.commands.lab_up import state_option
from isthmus.cli.options import Globals, hidden_global_options
from isthmus.cli.output import output_option, table, text

if TYPE_CHECKING:
    from isthmus.lab.local import Local


@click.command()
@state_option
@output_option("table", "json", "yaml", default="table")
@hidden_global_options
def status(state_dir: str, output: str) -> None:
    """Show clusters, hosts, pods, and what can be reached from this machine."""
    from isthmus.lab import State
    from isthmus.lab.local import Local

    found = Local(State(Path(state_dir))).status()
    click.echo(_tables(found) if output == "table" else text(found, output), nl=False)


def _tables(found: dict[str, Any]) -> str:
    parts = []
    clusters = found["clusters"]
    if clusters:
        rows = [
            [c["name"], "yes" if c["ready"] else "no", c["api"], c["network"], c["podCIDR"],
             str(len(c["nodes"])), str(len(c["pods"]))]
            for c in clusters
        ]  # fmt: skip
        head = ["CLUSTER", "READY", "API", "NETWORK", "POD CIDR", "NODES", "PODS"]
        parts.append(table(head, rows))
    if found["hosts"]:
        rows = [[h["name"], h["network"], h["ip"], h["image"] or "-"] for h in found["hosts"]]
        parts.append(table(["HOST", "NETWORK", "IP", "RUNS"], rows))
    pods = [
        [c["name"], p["namespace"], p["name"], f"{p['ready']}/{p['containers']}",
         str(p["restarts"]), p["ip"] or "-"]
        for c in clusters
        for p in c["pods"]
    ]  # fmt: skip
    if pods:
        parts.append(table(["CLUSTER", "NAMESPACE", "POD", "READY", "RESTARTS", "IP"], pods))
    published = [
        [c["name"], p["service"], f"{p['address']}:{p['port']}", f"http://{p['host']}/"]
        for c in clusters
        for p in c["published"]
    ]
    if published:
        parts.append(table(["CLUSTER", "SERVICE", "ADDRESS", "FROM THIS MACHINE"], published))
    return "\n".join(parts)


_target = click.argument("target")
_container = click.option("-c", "--container", metavar="NAME", default="", help="Which container.")


@click.command(context_settings={"ignore_unknown_options": True})
@_target
@click.argument("command", nargs=-1, required=True)
@_container
@click.option("-i", "--stdin", is_flag=True, help="Pass our standard input on.")
@state_option
@hidden_global_options
@click.pass_context
def execute(
    context: click.Context,
    target: str,
    command: tuple[str, ...],
    container: str,
    state_dir: str,
    *,
    stdin: bool,
) -> int:
    """Run COMMAND in the pod, or on the host, TARGET.

    The cluster is that of --context; without one, the only cluster that has such a pod.
    """
    local, scope = _find(context, target, state_dir)
    return local.execute(scope, target, container, command, stdin=stdin)


@click.command()
@_target
@_container
@click.option("-f", "--follow", is_flag=True, help="Go on as more comes.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last so many lines.")
@click.option("-p", "--previous", is_flag=True, help="Of the run before this one.")
@state_option
@hidden_global_options
@click.pass_context
def logs(
    context: click.Context,
    target: str,
    container: str,
    tail: int | None,
    state_dir: str,
    *,
    follow: bool,
    previous: bool,
) -> int:
    """Print what the pod, or the host, TARGET says."""
    local, scope = _find(context, target, state_dir)
    query = {"follow": str(follow).lower(), "previous": str(previous).lower()}
    if tail is not None:
        query["tailLines"] = str(tail)
    return local.logs(scope, target, container, query)


def _find(context: click.Context, target: str, state_dir: str) -> tuple[Local, str]:
    from isthmus.lab import State
    from isthmus.lab.local import Local

    flags = context.find_root().ensure_object(Globals)
    local = Local(State(Path(state_dir)))
    return local, local.scope(target, flags.context, flags.namespace)

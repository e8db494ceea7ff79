"""`isthmus lab run` and `stop`: what machines outside the clusters do, in docker's words."""

from __future__ import annotations

from pathlib import Path

import click

from isthmus.cli.commands.lab_up import state_option
from isthmus.cli.options import hidden_global_options
from isthmus.errors import UserFault

EPILOG = """\b
Example:
  isthmus lab run --network egress --detach --rm --name color \\
    -e FACES_SERVICE=color ghcr.io/buoyantio/faces-color:2.0.0-rc.2
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="HOST", required=True, help="The host, as the topology has it.")
@click.option("--network", metavar="NAME", default="", help="Its network; checked if given.")
@click.option("-e", "--env", metavar="NAME=VALUE", multiple=True, help="A variable; repeatable.")
@click.option("-d", "--detach", is_flag=True, help="Always so: the command returns at once.")
@click.option("--rm", "remove", is_flag=True, help="Always so: nothing is left when it ends.")
@state_option
@hidden_global_options
@click.argument("image")
@click.argument("args", nargs=-1)
def run(
    name: str,
    network: str,
    env: tuple[str, ...],
    state_dir: str,
    image: str,
    args: tuple[str, ...],
    *,
    detach: bool,
    remove: bool,
) -> None:
    """Have a host outside the clusters run IMAGE, with ARGS.

    Hosts and networks stand in the lab's topology; images mean what they mean in pods.
    """
    from isthmus.lab import State
    from isthmus.lab.local import Local
    from isthmus.lab.topology import Run

    del detach, remove
    pairs = [each.partition("=") for each in env]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise UserFault(f"-e {key!r} is not NAME=VALUE")
    local = Local(State(Path(state_dir)))
    if network:
        _require(local.status()["hosts"], name, network)
    local.start(name, Run(image=image, args=args, env={key: value for key, _, value in pairs}))
    click.echo(name)


def _require(hosts: list[dict[str, str]], name: str, network: str) -> None:
    for each in hosts:
        if each["name"] == name and each["network"] != network:
            raise UserFault(f"the host {name!r} is on network {each['network']!r}")


@click.command()
@click.argument("host")
@state_option
@hidden_global_options
def stop(host: str, state_dir: str) -> None:
    """End what HOST runs."""
    from isthmus.lab import State
    from isthmus.lab.local import Local

    Local(State(Path(state_dir))).stop(host)
    click.echo(host)

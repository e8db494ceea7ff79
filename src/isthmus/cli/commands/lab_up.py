"""`isthmus lab up` and `isthmus lab down`."""

from __future__ import annotations

import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path

import click

from isthmus.cli.options import hidden_global_options
from isthmus.errors import UserFault

STATE = "~/.local/state/isthmus/lab"
LOOPBACK = "127.55.0.0/16"
PATIENCE = 30.0
"""Seconds that a lab may take to end."""

state_option = click.option(
    "--state-dir",
    metavar="DIR",
    default=STATE,
    show_default=True,
    envvar="ISTHMUS_LAB_STATE_DIR",
    help="Folder of the kubeconfig, the clusters' data and the pods' logs.",
)


@click.command()
@click.argument("topology")
@state_option
@click.option(
    "--loopback",
    metavar="CIDR",
    default=LOOPBACK,
    show_default=True,
    help="Where clusters listen on this machine: the N-th at address .N.1.",
)
@click.option("-d", "--detach", is_flag=True, help="Return when the lab is ready.")
@hidden_global_options
def up(topology: str, state_dir: str, loopback: str, *, detach: bool) -> int:
    """Bring up TOPOLOGY: faces, workshop, or a YAML file; run until Ctrl-C.

    The lab is ready when every cluster answers and its manifests are applied: one line is printed
    on stdout, and DIR holds `kubeconfig` with a context for each cluster. Pods may still be
    starting; `kubectl wait` tells when they are there.
    """
    from isthmus.lab import State
    from isthmus.lab.starter import up as run

    state = State(Path(state_dir))
    where = network(loopback)
    if detach:
        return _detached(topology, state_dir, loopback)

    def ready() -> None:
        _say(_ready(topology))
        click.echo(f"  export KUBECONFIG={state.kubeconfig}", err=True)

    return run(topology, state, where, step=_step, ready=ready)


def network(text: str) -> IPv4Network:
    """What --loopback says. UsageError if it is no /16 of loopback."""
    try:
        found = IPv4Network(text)
    except ValueError as fault:
        raise click.UsageError(
            f"--loopback {text!r} is no network such as 127.56.0.0/16"
        ) from fault
    if not found.is_loopback or found.prefixlen != 16:
        raise click.UsageError(f"--loopback {text} is no /16 of 127.0.0.0/8, such as 127.56.0.0/16")
    return found


def _step(text: str) -> None:
    try:
        click.echo(f"  {text}", err=True)
    except OSError:  # nobody listens any more
        return


def _say(line: str) -> None:
    try:
        click.echo(line)
    except OSError:
        return


def _detached(topology: str, state_dir: str, loopback: str) -> int:
    """Start another one of ourselves, and go when it is ready."""
    from isthmus.lab import State

    state = State(Path(state_dir))
    command = [
        sys.executable, "-m", "isthmus", "lab", "up", topology,
        "--state-dir", str(state.folder), "--loopback", loopback,
    ]  # fmt: skip
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    for line in child.stdout or ():
        if line == f"{_ready(topology)}\n":
            click.echo(line, nl=False)
            click.echo(f"  export KUBECONFIG={state.kubeconfig}", err=True)
            return 0
        click.echo(line, err=True, nl=False)
    return child.wait()


def _ready(topology: str) -> str:
    return f"isthmus: lab {topology} ready"


@click.command()
@state_option
@hidden_global_options
def down(state_dir: str) -> None:
    """Take the lab down: its processes, its networks, its files."""
    from isthmus.lab import State

    state = State(Path(state_dir))
    if not state.end(PATIENCE):
        raise UserFault(f"no lab runs in {state.folder}, and none left anything there")
    click.echo(f"isthmus: the lab in {state.folder} is gone", err=True)

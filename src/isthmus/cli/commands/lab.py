"""`isthmus lab`: clusters on this machine."""

from __future__ import annotations

import click

from isthmus.cli.group import LazyGroup
from isthmus.cli.options import global_options

COMMANDS = {
    "up": ("isthmus.cli.commands.lab_up:up", "Bring a lab up."),
    "down": ("isthmus.cli.commands.lab_up:down", "Take a lab down, and remove all it made."),
    "status": ("isthmus.cli.commands.lab_show:status", "What runs in a lab."),
    "exec": ("isthmus.cli.commands.lab_show:execute", "Run a command in a pod, or on a host."),
    "run": ("isthmus.cli.commands.lab_run:run", "Have a host outside the clusters run an image."),
    "stop": ("isthmus.cli.commands.lab_run:stop", "End what such a host runs."),
    "logs": ("isthmus.cli.commands.lab_show:logs", "What a pod, or a host, says."),
}

EPILOG = """\b
Examples:
  isthmus lab up faces
  isthmus lab up workshop --detach
  isthmus lab status
  isthmus lab exec -n faces face-5d8f7 -- env
  isthmus lab down
"""


@click.command(cls=LazyGroup, commands=COMMANDS, epilog=EPILOG)
@global_options
def lab() -> None:
    """Whole clusters on this machine: control planes, nodes, and pods as processes."""

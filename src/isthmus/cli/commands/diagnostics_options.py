"""Which server a diagnostics command asks, and as whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from isthmus.cli.options import Globals, global_options
from isthmus.errors import UserFault

F = TypeVar("F", bound=Callable[..., Any])

LISTENER = "destination"


def place_options(command: F) -> F:
    """Give a command or group --context and its kin, -L and --api-addr; the innermost wins."""
    return global_options(_with_place(command, hidden=False))


def hidden_place_options(command: F) -> F:
    """Give -L and --api-addr to a group, most of whose commands need neither: unmentioned."""
    return _with_place(command, hidden=True)


def _with_place(command: F, *, hidden: bool) -> F:
    for names, variables, metavar, what in (
        (
            ("--api-addr",),
            (),
            "HOST:PORT",
            "Ask the server that listens here, instead of that of the context.",
        ),
        (
            ("-L", "--linkerd-namespace"),
            ("LINKERD_NAMESPACE", "ISTHMUS_CONTROL_PLANE_NAMESPACE"),
            "TEXT",
            "Namespace of the control plane; looked for if not given.",
        ),
    ):
        command = click.option(
            *names,
            metavar=metavar,
            help=what,
            envvar=variables,
            expose_value=False,
            callback=_note,
            hidden=hidden,
        )(command)
    return command


def client_options(command: F) -> F:
    """Give a command the flags that say as whom it asks."""
    command = click.option(
        "--destination-pod",
        metavar="TEXT",
        expose_value=False,
        help="Accepted as linkerd does; the one server of the context answers.",
    )(command)
    return click.option(
        "--token",
        metavar="TEXT",
        default="",
        help='Context token of the client, such as \'{"ns":"shop","nodeName":"n1"}\'.',
    )(command)


def _note(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """A variable says nothing where a flag of an outer level did."""
    if not value or parameter.name is None:
        return
    said = context.find_root().ensure_object(Globals)
    typed = context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    if typed or getattr(said, parameter.name) is None:
        setattr(said, parameter.name, value)


def address(said: Globals, listener: str = LISTENER) -> str:
    """`host:port` of the server to ask, at one of its listeners.

    Raises:
        IsthmusError: it cannot be found.
    """
    if said.api_addr is not None:
        host, _, port = said.api_addr.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise UserFault(f"--api-addr {said.api_addr!r} is not HOST:PORT")
        return said.api_addr
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster

    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    return Cluster(access).listener(listener, said.linkerd_namespace)


def check_output(output: str) -> str:
    """The one form or the other; a text that linkerd's users know for anything else."""
    if output not in ("table", "json"):
        raise UserFault("--output currently only supports table and json")
    return output

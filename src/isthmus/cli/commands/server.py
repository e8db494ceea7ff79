"""`isthmus server`: flags to a ServerConfig; the rest is `isthmus.app`.

The flags are made from the table of settings, so that flag, variable, key of the file and help
never differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from isthmus.cli.options import Globals, GoBool, GoCommand, hidden_global_options
from isthmus.config import SETTINGS, ServerConfig, Setting, Shape, config_file, resolve
from isthmus.errors import Invalid

Flag = str | bool | Sequence[str] | None

WIDEST = 32
"""Characters of a metavar that the left column of the help bears."""

EPILOG = """\b
Flags beat the environment, which beats the file of --config (TOML, keys as the flags).
When everything listens, the data directory holds `kubeconfig` and `endpoints.json`.

\b
Examples:
  isthmus server
  isthmus server --cluster east --listen kube=127.0.0.1:0 --listen xds=off
  ISTHMUS_STORE=memory: isthmus server --log-format json
"""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for setting in reversed(SETTINGS):
        command = _option(setting)(command)
    return click.option(
        "--config",
        metavar="FILE",
        help="TOML file of settings.  [env: ISTHMUS_CONFIG]",
    )(command)


def _option(setting: Setting) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    help_text = f"{setting.meaning}  {_origin(setting)}"
    if setting.shape is Shape.SWITCH:
        return click.option(setting.flag, setting.name, cls=GoBool, help=help_text)
    several = setting.shape in (Shape.LIST, Shape.PAIRS)
    metavar = setting.metavar
    if len(metavar) > WIDEST:
        help_text = f"{setting.meaning}  One of {metavar.replace('|', ', ')}.  {_origin(setting)}"
        metavar = "WORD"
    return click.option(
        setting.flag, setting.name, metavar=metavar, multiple=several, help=help_text
    )


def _origin(setting: Setting) -> str:
    """`[default: ...; env: ...]`; lists are broken after their commas."""
    default = (setting.default or "").replace(",", ", ")
    return f"[{f'default: {default}; ' if default else ''}env: {setting.variable}]"


@click.command(cls=GoCommand, epilog=EPILOG)
@_options
@hidden_global_options
@click.pass_context
def server(context: click.Context, /, config: str | None, **flags: Flag) -> int:
    """Run the control plane of one cluster until it is told to stop (SIGTERM, Ctrl-C).

    It serves the Kubernetes API of the cluster's objects and tells the mesh's proxies what to do.
    It needs nothing else: objects live in a file of the data directory, unless --store says
    otherwise.
    """
    if context.find_root().ensure_object(Globals).context is not None:
        told = "--context has no meaning here: a server is named with --cluster"
        raise click.UsageError(told, context)
    settings = _settings(context, {"config": config, **flags})
    from isthmus.app import serve

    return serve(settings)


def _settings(context: click.Context, flags: dict[str, Flag]) -> ServerConfig:
    try:
        path = config_file(flags, os.environ)
        name = str(path) if path else "the config file"
        return resolve(flags, os.environ, path.read_bytes() if path else None, file_name=name)
    except Invalid as fault:
        raise click.UsageError(fault.message, context) from fault
    except (OSError, ValueError) as fault:
        raise click.UsageError(f"cannot read the config file: {fault}", context) from fault

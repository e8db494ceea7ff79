"""Flags that mean the same everywhere.

`--context`, `--kubeconfig` and `-n` may stand at any level (`isthmus --context a multicluster
link`, `isthmus multicluster --context a link`, `isthmus multicluster link --context a`): each level
writes what it was given into one Globals, so the innermost wins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Globals:
    """What the flags of every level said; None where nobody said anything."""

    def __init__(self) -> None:
        self.context: str | None = None
        self.kubeconfig: str | None = None
        self.namespace: str | None = None
        self.linkerd_namespace: str | None = None
        self.api_addr: str | None = None

    @property
    def kubeconfig_path(self) -> str | None:
        """The file named by --kubeconfig, else by $KUBECONFIG."""
        return self.kubeconfig or os.environ.get("KUBECONFIG") or None


def global_options(command: F) -> F:
    """Give a command or group --context, --kubeconfig and -n."""
    return _with_globals(command, hidden=False)


def hidden_global_options(command: F) -> F:
    """The same, unmentioned in the help: for commands that take them and need none."""
    return _with_globals(command, hidden=True)


def _with_globals(command: F, *, hidden: bool) -> F:
    for names, what in (
        (("-n", "--namespace"), "Namespace of the objects."),
        (("--kubeconfig",), "Path of the kubeconfig. [env: KUBECONFIG]"),
        (("--context",), "Context of the kubeconfig, which names a cluster."),
    ):
        command = click.option(
            *names, metavar="TEXT", help=what, expose_value=False, callback=_note, hidden=hidden
        )(command)
    return command


def _note(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and parameter.name is not None:
        setattr(context.find_root().ensure_object(Globals), parameter.name, value)


class GoCommand(click.Command):
    """A command whose booleans read as Go's do: `--flag`, `--flag=true`, `--flag=false`.

    A value never stands apart, so that in `--gateway east` the word is an argument.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = {
            name
            for parameter in self.params
            if isinstance(parameter, GoBool)
            for name in parameter.opts
        }
        end = args.index("--") if "--" in args else len(args)
        spelt = [f"{a}=true" if a in flags else a for a in args[:end]]
        return super().parse_args(ctx, spelt + args[end:])


class GoBool(click.Option):
    """One such boolean, of a GoCommand. Without it the value is None: nobody said anything."""

    def __init__(self, declarations: list[str], **attributes: Any) -> None:  # noqa: ANN401  # click's
        attributes |= {"type": click.BOOL, "is_flag": False}
        attributes.setdefault("metavar", "[=true|false]")
        super().__init__(declarations, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return (record[0].replace(" [=", "[="), record[1]) if record else None

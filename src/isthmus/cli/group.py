"""A command group whose members are imported when they are called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import NoReturn

import click


class LazyGroup(click.Group):
    """`commands` maps a name to ("module:attribute", one line of help).

    `aliases` maps short names, which the help does not list, to those names.
    """

    def __init__(
        self,
        name: str | None = None,
        commands: Mapping[str, tuple[str, str]] | None = None,
        aliases: Mapping[str, str] | None = None,
        **attributes: object,
    ) -> None:
        attributes.setdefault("no_args_is_help", True)
        super().__init__(name, **attributes)  # type: ignore[arg-type]  # click's own keywords
        self._lazy = dict(commands or {})
        self._aliases = dict(aliases or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            msg = f"{module}:{attribute} is no command"
            raise TypeError(msg)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args:
            args = [self._aliases.get(args[0], args[0]), *args[1:]]
            if args[0] not in self._lazy:
                self._unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> NoReturn:
        near = difflib.get_close_matches(name, self._lazy, n=1, cutoff=0.5)
        hint = f"; did you mean `{ctx.command_path} {near[0]}`?" if near else ""
        raise click.UsageError(f"there is no command {name!r}{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._lazy[name][1]) for name in sorted(self._lazy)])

"""`isthmus proxy status`: what a control plane told its proxies, and what they made of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from isthmus.cli import output as form
from isthmus.cli.commands.diagnostics_options import address, place_options
from isthmus.cli.group import LazyGroup
from isthmus.cli.options import Globals
from isthmus.model.times import age

LISTENER: Final = "admin"
PATIENCE: Final = 10.0
"""Seconds that connecting and the answer may take."""
LARGEST: Final = 64 << 20
"""Bytes of an answer."""
HEADER: Final = ("PROXY", "TYPE", "SENT", "ACKED", "WAITING", "REJECTED", "LAST ACK", "SCOPE")

COMMANDS = {
    "status": (
        "isthmus.cli.commands.proxy:status",
        "What each proxy was sent, took and rejected, type by type.",
    ),
}


@click.command(cls=LazyGroup, commands=COMMANDS, name="proxy")
@place_options
def proxy() -> None:
    """Look at the proxies of a control plane.

    The control plane is that of --context: its listener is found through its cluster's API.
    """


EPILOG = """\b
Examples:
  isthmus proxy status
  isthmus proxy status face-7d9.faces -o json
"""


@click.command(name="status", epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="[PROXY]...")
@form.output_option("table", "json", "yaml", default="table")
@place_options
@click.pass_context
def status(context: click.Context, names: tuple[str, ...], output: str) -> None:
    """Show what proxies were told over xDS; all, or those that are named.

    WAITING counts what is still to be told; clusters for example wait until a proxy has accepted
    the clusters before. A rejected resource stays as it was before, until its content changes.
    """
    from isthmus.aio import SystemClock

    said = context.find_root().ensure_object(Globals)
    found = [one for one in ask(address(said, LISTENER)) if not names or one["proxy"] in names]
    if output != "table":
        click.echo(form.text({"proxies": found}, output), nl=False)
    elif not found:
        click.echo("No proxies.")
    else:
        click.echo(form.table(HEADER, list(rows(found, SystemClock().time()))), nl=False)
        for line in rejections(found):
            click.echo(line)


def ask(at: str) -> list[dict[str, Any]]:
    """The proxies, as the admin listener at `host:port` tells of them.

    Raises:
        Unavailable: it does not answer.
        UserFault: it answers something else.
    """
    import http.client

    from isthmus.errors import Unavailable, UserFault

    host, _, port = at.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=PATIENCE)
    try:
        connection.request("GET", "/proxies")
        answer = connection.getresponse()
        body = answer.read(LARGEST)
    except (OSError, http.client.HTTPException) as fault:
        raise Unavailable(f"cannot reach the admin listener at {at}: {fault}") from fault
    finally:
        connection.close()
    if answer.status == http.client.NOT_FOUND:
        raise UserFault(f"the control plane at {at} serves no proxies over xDS")
    try:
        found: list[dict[str, Any]] = json.loads(body)["proxies"]
    except (ValueError, KeyError, TypeError):
        raise UserFault(f"{at} answers with status {answer.status} and no proxies") from None
    return found


def rows(proxies: Iterable[dict[str, Any]], now: float) -> Iterator[tuple[str, ...]]:
    """A line for each type of each proxy; one for a proxy that has asked for nothing."""
    for one in proxies:
        scope = ",".join(one["scope"]) or "(unknown)"
        if not one["types"]:
            yield (one["proxy"], "-", "0", "0", "0", "0", "-", scope)
        for kind in one["types"]:
            counts = [str(kind[count]) for count in ("sent", "acked", "waiting")]
            rejected = str(len(kind["rejected"]))
            acked = age(kind["ackedAt"], now) if kind["ackedAt"] else "-"
            yield (one["proxy"], kind["type"], *counts, rejected, acked, scope)


def rejections(proxies: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each resource that some proxy does not accept, with the proxy's words."""
    for one in proxies:
        for kind in one["types"]:
            for each in kind["rejected"]:
                what = f"{kind['type']} {each['name']}"
                yield f"{one['proxy']} rejects {what} since {each['since']}: {each['message']}"

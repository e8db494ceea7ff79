"""`isthmus diagnostics profile`: how a proxy would be told to treat an address."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from isthmus.cli.commands.diagnostics_options import (
    address,
    check_output,
    client_options,
    place_options,
)
from isthmus.cli.options import Globals
from isthmus.errors import DeadlineExceeded

SECONDS = 10.0
"""How long the first answer is waited for."""

EPILOG = """\b
Examples:
  isthmus diagnostics profile web.shop.svc.cluster.local:80
  isthmus diagnostics profile 10.96.0.10:80 --token '{"ns":"shop"}'
  isthmus dg profile --watch web.shop.svc.cluster.local:80
"""


@click.command(epilog=EPILOG)
@click.argument("authority")
@click.option("-o", "--output", default="json", show_default=True, metavar="table|json")
@click.option("--watch", is_flag=True, help="Print every answer on a line, until Ctrl-C.")
@client_options
@place_options
@click.pass_context
def profile(
    context: click.Context,
    authority: str,
    output: str,
    token: str,
    *,
    watch: bool,
) -> None:
    """Print how proxies would treat connections to AUTHORITY.

    AUTHORITY is an IP address or a name, with a port. The JSON is that of `linkerd diagnostics
    profile`; `-o table` has the same facts in lines.
    """
    from isthmus.cli.commands import diagnostics_client as client

    said = context.find_root().ensure_object(Globals)
    form = check_output(output)
    try:
        if watch:
            show = partial(_tell, form)
            where = partial(address, said)
            client.run(client.follow(where, token, lambda it: it.profile(authority), show))
        else:
            _print(client.run(_first(address(said), authority, token)), form)
    except client.ApiError as fault:
        client.fail(fault.whole)


async def _first(at: str, authority: str, token: str) -> Any:  # noqa: ANN401  # a message
    from isthmus.cli.commands.diagnostics_client import connected

    async with connected(at, token) as client:
        async for answer in client.profile(authority, SECONDS):
            return answer
    raise DeadlineExceeded(f"{at} did not answer within {SECONDS:g} s")


def _print(answer: Any, form: str) -> None:  # noqa: ANN401  # a message
    from isthmus.cli import gojson
    from isthmus.cli.output import table

    said = gojson.struct(answer)
    if form == "json":
        click.echo(gojson.dumps(said))
        return
    rows = [(name, gojson.dumps(value, indent=None)) for name, value in said.items()]
    click.echo(table(("FIELD", "VALUE"), rows), nl=False)


def _tell(form: str, answer: Any) -> None:  # noqa: ANN401  # a message
    from isthmus.cli import gojson

    said = gojson.struct(answer)
    if form == "json":
        click.echo(gojson.dumps(said, indent=None))
    else:
        values = (f"{name}={gojson.dumps(value, indent=None)}" for name, value in said.items())
        click.echo(" ".join(values))
    sys.stdout.flush()

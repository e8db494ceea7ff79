"""`isthmus diagnostics policy`: what a proxy would be told of a pod's or a Service's port."""

from __future__ import annotations

from typing import Any

import click

from isthmus.cli.commands.diagnostics_options import address, client_options, place_options
from isthmus.cli.options import Globals
from isthmus.errors import UserFault

LISTENER = "policy"
DEFAULT = "default:diagnostics"
"""The workload as which is asked, unless somebody says another."""

KINDS = {
    "po": "pod", "pod": "pod", "pods": "pod",
    "svc": "service", "service": "service", "services": "service",
}  # fmt: skip

EPILOG = """\b
Examples:
  isthmus diagnostics policy -n faces svc/smiley 80
  isthmus dg policy -n faces po/face-5b9c4d7f6d-8hv2p 8000 -o json
"""


@click.command(epilog=EPILOG)
@click.argument("words", metavar="RESOURCE PORT", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True,
    metavar="yaml|json", help="Form of the output.",
)  # fmt: skip
@client_options
@place_options
@click.pass_context
def policy(context: click.Context, words: tuple[str, ...], output: str, token: str) -> None:
    """Print the policy of a port, as proxies are told it.

    RESOURCE is a pod (po/NAME), for what its proxy lets in, or a Service (svc/NAME), for what
    clients' proxies do with requests to it; --token says for whom, as namespace:pod.
    """
    from isthmus.cli import kubeconfig
    from isthmus.cli import output as forms
    from isthmus.cli.commands import policy_client as client
    from isthmus.cli.commands.diagnostics_client import ApiError
    from isthmus.cli.gojson import dumps, struct

    kind, name, port = read(words)
    said = context.find_root().ensure_object(Globals)
    namespace = said.namespace
    if namespace is None:
        access = kubeconfig.load(said.kubeconfig_path).access(said.context)
        namespace = access.namespace
    at = address(said, LISTENER)
    try:
        if kind == "pod":
            answer: Any = client.inbound(at, f"{namespace}:{name}", [port])[0]
        else:
            answer = client.outbound(at, token or DEFAULT, f"{name}.{namespace}.svc:{port}")
    except ApiError as fault:
        click.echo(f"Policy API error: {fault.whole}", err=True)
        raise SystemExit(1) from None
    document = struct(answer)
    click.echo(
        dumps(document) + "\n" if output == "json" else forms.text(document, "yaml"), nl=False
    )


def read(words: tuple[str, ...]) -> tuple[str, str, int]:
    """Kind, name and port of `po/x 80` or `po x 80`.

    Raises:
        UserFault: they are no such thing, in linkerd's words.
    """
    *resource, port = words
    if len(resource) == 1:
        kind, _, name = resource[0].partition("/")
    elif len(resource) == 2:
        kind, name = resource
    else:
        kind = name = ""
    if not kind or not name:
        raise UserFault("resource type and name are required, and a port: po/web-1 8080")
    if kind.lower() not in KINDS:
        raise UserFault(f"invalid resource type {kind}; must be one of Pod or Service")
    if not (port.isdecimal() and 0 < int(port) < 65536):
        raise UserFault(f"{port!r} is no port")
    return KINDS[kind.lower()], name, int(port)

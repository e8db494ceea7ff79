"""`isthmus explain`: the way of one request, and which object decided what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import click

from isthmus.cli import output as form
from isthmus.cli.commands.diagnostics_options import address, place_options
from isthmus.cli.options import Globals
from isthmus.errors import NotFound, UserFault

LISTENER: Final = "admin"
_KINDS: Final = frozenset({"deploy", "deployment", "po", "pod", "sa", "serviceaccount"})

EPILOG = """\b
FROM is NAMESPACE/POD, NAMESPACE/deploy/NAME or NAMESPACE/sa/NAME; with -n the namespace may be
left out. It may also be the identity of a client of another cluster, IDENTITY@ADDRESS.
TO is a host as the client would write it, an address, or NAMESPACE/POD.

\b
Examples:
  isthmus explain faces/deploy/face smiley
  isthmus explain -n faces deploy/face smiley GET /center -H 'x-faces-user: somebody'
  isthmus explain faces/deploy/face api.example.org:443 --ip 203.0.113.10
"""


@click.command(epilog=EPILOG)
@click.argument("sender", metavar="FROM")
@click.argument("to", metavar="TO[:PORT]")
@click.argument("method", required=False, default="")
@click.argument("path", required=False, default="")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header; repeatable."
)
@click.option(
    "--session",
    type=click.Choice(("http", "grpc", "tls", "tcp")),
    help="What is spoken; by default what the port is known to speak, else HTTP.",
)
@click.option("--ip", default="", metavar="ADDRESS", help="What the client's DNS gives for TO.")
@click.option(
    "--at", default="", metavar="TEXT", help="The endpoint: an address, a pod, or a cluster."
)
@click.option(
    "--throw",
    type=click.IntRange(0, 999),
    default=0,
    show_default=True,
    metavar="0..999",
    help="Where the dice fall, for weights.",
)
@form.output_option("table", "json", "yaml", default="table")
@place_options
@click.pass_context
def explain(context: click.Context, /, sender: str, to: str, output: str, **said: str) -> int:
    """Explain the way of one request from FROM to TO.

    Nothing is sent: it is worked out from what proxies are told. The control plane is that of
    --context, which is FROM's cluster. Exits with 1 if the request is not delivered.
    """
    globals_ = context.find_root().ensure_object(Globals)
    asked = {"from": qualified(sender, globals_.namespace), "to": to, **_query(said)}
    found = ask(address(globals_, LISTENER), asked)
    _name_contexts(found, globals_)
    if output == "table":
        click.echo("\n".join(text(found)))
    else:
        click.echo(form.text(found, output), nl=False)
    return 1 if found["verdict"]["outcome"] in ("refused", "answered") else 0


def qualified(sender: str, namespace: str | None) -> str:
    """FROM with the namespace of `-n`, where it has none itself."""
    first, _, rest = sender.partition("/")
    bare = (not rest and "." not in first and "@" not in first) or first.lower() in _KINDS
    return f"{namespace or 'default'}/{sender}" if bare else sender


def _query(said: Mapping[str, Any]) -> dict[str, str]:
    return {
        "method": said["method"],
        "path": said["path"],
        "headers": "\n".join(said["headers"]),
        "session": said["session"] or "",
        "address": said["ip"],
        "at": said["at"],
        "throw": str(said["throw"]),
    }


def _name_contexts(found: Mapping[str, Any], said: Globals) -> None:
    """Commands to be run elsewhere name contexts of our kubeconfig, not clusters as Links do."""
    from isthmus.cli import kubeconfig

    try:
        contexts = kubeconfig.load(said.kubeconfig_path).contexts
    except UserFault:  # none is needed with --api-addr
        return

    def named(option: re.Match[str]) -> str:
        return f"--context={context_of(option[1], contexts)}"

    for end in found.get("ends", ()):
        if end.get("ask"):
            end["ask"] = re.sub(r"--context=(\S+)", named, end["ask"], count=1)


def context_of(cluster: str, contexts: Iterable[str]) -> str:
    """The context of a cluster: of its name, else the only one that ends so (`kind-east`)."""
    ending = [each for each in contexts if each == cluster or each.endswith(f"-{cluster}")]
    exact = cluster in ending or len(ending) != 1
    return cluster if exact else ending[0]


def ask(at: str, query: dict[str, str]) -> dict[str, Any]:
    """The explanation of the control plane whose admin listener is at `host:port`.

    Raises:
        Unavailable: it does not answer.
        UserFault: it cannot explain that, or is of a version that explains nothing.
    """
    from isthmus.cli.admin import page

    given = {name: value for name, value in query.items() if value}
    status, found = page(at, f"/explain?{urlencode(given)}")
    if status == NotFound.http:
        raise UserFault(
            f"the control plane at {at} explains nothing: it is older than this command"
        )
    if not isinstance(found, dict) or not {"problem", "verdict"} & found.keys():
        raise UserFault(f"{at} answers with status {status} and no explanation")
    if "problem" in found:
        raise UserFault(str(found["problem"]))
    return found


# ------------------------------------------------------------------------------------- text


def text(found: dict[str, Any]) -> Iterator[str]:
    """A line for each step in columns, a paragraph for each end, and the verdict."""
    yield from _columns(found.get("lines", ()))
    for end in found.get("ends", ()):
        yield ""
        yield from _columns(end["lines"])
        if end.get("ask"):
            yield f"ask there: {end['ask']}"
    yield ""
    yield verdict(found["verdict"])


def verdict(said: dict[str, Any]) -> str:
    """`refused by default deny: 403, no authorization lets this client in`."""
    numbers = [str(said["status"])] if said.get("status") else []
    if said.get("grpc") is not None:
        numbers.append(f"grpc-status {said['grpc']}")
    about = ", ".join(filter(None, [*numbers, said.get("text", "")]))
    by = f" by {said['by']}" if said.get("by") else ""
    return f"{said['outcome'].upper()}{by}{f': {about}' if about else ''}"


def _columns(lines: Iterable[dict[str, str]]) -> Iterator[str]:
    rows = [(each["part"], each["object"], each["text"]) for each in lines]
    wide = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for part, what, says in rows:
        yield f"{part.ljust(wide[0])}  {what.ljust(min(wide[1], 60))}  {says}".rstrip()

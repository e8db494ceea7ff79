"""`isthmus authz`: who may call a workload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from isthmus.cli.commands.diagnostics_options import address, place_options
from isthmus.cli.options import Globals
from isthmus.errors import UserFault

if TYPE_CHECKING:
    from isthmus.proto.linkerd.inbound_pb2 import Authz, Server

LISTENER = "policy"
HEADER = ("ROUTE", "SERVER", "AUTHORIZATION_POLICY", "SERVER_AUTHORIZATION")
WIDE = (*HEADER, "PORT", "CLIENTS", "NETWORKS")
EVERY = "*"
DEFAULT = "default:"
POLICY = "authorizationpolicy"
AUTHORIZATION = "serverauthorization"
EVERYWHERE = frozenset({"0.0.0.0/0", "::/0"})

EPILOG = """\b
Examples:
  isthmus authz -n faces deploy/smiley
  isthmus authz -n faces deploy/smiley -o wide
"""


class Row(NamedTuple):
    """Somebody may call. `server` is that of the port; `default` is its policy where none is."""

    route: str
    server: str
    policy: str
    authorization: str
    port: int
    clients: str
    networks: str
    default: bool

    @property
    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "route": self.route,
            "server": self.server,
            "authorizationPolicy": self.policy,
            "serverAuthorization": self.authorization,
            "port": self.port,
            "clients": self.clients,
            "networks": self.networks,
        }


@click.command(epilog=EPILOG)
@click.argument("resource", metavar="RESOURCE", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Choice(("table", "wide", "json")), default="table",
    show_default=True, metavar="table|wide|json", help="Form of the output.",
)  # fmt: skip
@place_options
@click.pass_context
def authz(context: click.Context, resource: tuple[str, ...], output: str) -> None:
    """Show which policies let clients call a workload.

    RESOURCE is TYPE/NAME, such as deploy/smiley. With -o wide and -o json: who those clients are,
    and the defaults where nobody wrote a policy.
    """
    from isthmus.cli import kubeconfig, workloads
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.commands import policy_client as client
    from isthmus.cli.commands.diagnostics_client import ApiError

    said = context.find_root().ensure_object(Globals)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    namespace = said.namespace or access.namespace
    pods = workloads.pods(Cluster(access), namespace, workloads.read(resource))
    if not pods:
        raise UserFault(f"no pods of {' '.join(resource)} run in namespace {namespace!r}")
    at = address(said, LISTENER)
    found: set[Row] = set()
    try:
        for pod in pods:
            meta, ports = pod["metadata"], list(ports_of(pod))
            told = client.inbound(at, f"{meta['namespace']}:{meta['name']}", ports)
            for port, server in zip(ports, told, strict=True):
                found.update(rows(server, port))
    except ApiError as fault:
        click.echo(f"Policy API error: {fault.whole}", err=True)
        raise SystemExit(1) from None
    click.echo(printed(found, output), nl=False)


def ports_of(pod: Mapping[str, Any]) -> Iterator[int]:
    """The ports of its containers, but for the proxy's own."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        if container.get("name") != "linkerd-proxy":
            for each in container.get("ports") or ():
                if each.get("protocol", "TCP") == "TCP":
                    yield int(each["containerPort"])


def rows(server: Server, port: int) -> Iterator[Row]:
    """One for each authorization of a port, and of its routes."""
    name, default = _server(server)
    for one in server.authorizations:
        yield _row(EVERY, name, port, one, default=default)
    for route in routes(server):
        for one in route.authorizations:
            meta = route.metadata
            said = meta.resource.name if meta.WhichOneof("kind") == "resource" else meta.default
            yield _row(said, name, port, one, default=default)


def _server(server: Server) -> tuple[str, bool]:
    labels = server.labels
    default = labels.get("kind", "default") == "default"
    return (f"{DEFAULT}{labels.get('name', '')}" if default else labels["name"]), default


def routes(server: Server) -> Sequence[Any]:
    """Its routes, whatever it speaks."""
    kind = server.protocol.WhichOneof("kind")
    said = getattr(server.protocol, kind) if kind else None
    return getattr(said, "http_routes", None) or getattr(said, "routes", None) or ()


def _row(route: str, server: str, port: int, one: Authz, *, default: bool) -> Row:
    kind, name = one.labels.get("kind", ""), one.labels.get("name", "")
    default_name = f"{DEFAULT}{name}" if kind == "default" else ""
    return Row(
        route=route,
        server=server,
        policy=name if kind == POLICY else default_name,
        authorization=name if kind == AUTHORIZATION else "",
        port=port,
        clients=clients(one),
        networks=networks(one),
        default=default,
    )


def clients(one: Authz) -> str:
    """Who must a client be."""
    authn = one.authentication
    if authn.WhichOneof("permit") != "meshTLS":
        return "anybody"
    proof = authn.meshTLS
    if proof.WhichOneof("clients") != "identities":
        return "any TLS"
    names = [each.name for each in proof.identities.identities]
    ends = [".".join((EVERY, *each.parts)) for each in proof.identities.suffixes]
    return ", ".join(sorted((*names, *ends)))


def networks(one: Authz) -> str:
    """Where must a client be."""
    from isthmus.cli.commands.diagnostics_endpoints import ip_text

    said = []
    for each in one.networks:
        cut = "".join(
            f" but {ip_text(part.ip)}/{part.prefix_len}" for part in getattr(each, "except")
        )
        said.append(f"{ip_text(each.net.ip)}/{each.net.prefix_len}{cut}")
    return "anywhere" if set(said) == EVERYWHERE else ", ".join(said)


def printed(found: Iterable[Row], output: str) -> str:
    """A table, sorted; or JSON."""
    from isthmus.cli.viz.tables import table

    every = sorted(found, key=lambda row: (row.default, row.server, row.port, row))
    match output:
        case "json":
            return json.dumps([row.document for row in every], indent=2) + "\n"
        case "wide":
            cells = [(*row[:4], str(row.port), row.clients, row.networks) for row in every]
            return table(WIDE, cells, len(WIDE))
    written = (row for row in every if not row.policy.startswith(DEFAULT))
    narrow = dict.fromkeys(row[:4] for row in written)
    return table(HEADER, list(narrow), len(HEADER))

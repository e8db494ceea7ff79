"""`isthmus diagnostics endpoints`: which addresses a proxy would be told."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from ipaddress import IPv6Address, ip_address
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from isthmus.cli.commands.diagnostics_options import (
    address,
    check_output,
    client_options,
    place_options,
)
from isthmus.cli.options import Globals

if TYPE_CHECKING:
    from isthmus.cli.commands.diagnostics_client import Client

SECONDS = 5.0
"""How long addresses are gathered, as linkerd does: they may come in several messages."""

HEADER = ("NAMESPACE", "IP", "PORT", "POD", "SERVICE")
CLUSTER = "CLUSTER"
"""A sixth column, where an address is of another cluster; an own one has `-` there."""
TARGET = "target_cluster"
"""The metric label that names a linked cluster."""
GAP = " " * 3

EPILOG = """\b
Examples:
  isthmus diagnostics endpoints web.shop.svc.cluster.local:80
  isthmus dg ep --context east -o json web.shop.svc.cluster.local:80
  isthmus dg ep --watch web.shop.svc.cluster.local:80
"""


class Row(NamedTuple):
    """One address as it was told."""

    namespace: str
    ip: str
    port: int
    pod: str
    service: str
    weight: int
    http2: dict[str, Any] | None
    labels: dict[str, str]
    cluster: str = ""
    """The linked cluster that it is of; "" for our own."""

    @property
    def at(self) -> str:
        """`ip:port`, an IPv6 address in brackets."""
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"

    @property
    def shown(self) -> dict[str, Any]:
        """As JSON tells it."""
        fields = self._asdict()
        optional = {"http2": self.http2 is not None, "cluster": bool(self.cluster)}
        return {name: fields[name] for name in fields if optional.get(name, True)}


@click.command(epilog=EPILOG)
@click.argument("authorities", metavar="AUTHORITY...", nargs=-1, required=True)
@click.option("-o", "--output", default="table", show_default=True, metavar="table|json")
@click.option("--watch", is_flag=True, help="Print changes as they come, until Ctrl-C.")
@client_options
@place_options
@click.pass_context
def endpoints(
    context: click.Context,
    authorities: tuple[str, ...],
    output: str,
    token: str,
    *,
    watch: bool,
) -> None:
    """Print the addresses that proxies would send to.

    AUTHORITY is a Service's name with its port, `web.shop.svc.cluster.local:80`. Addresses are
    gathered for five seconds.
    """
    from isthmus.cli.commands import diagnostics_client as client

    said = context.find_root().ensure_object(Globals)
    form = check_output(output)
    try:
        if watch:
            client.run(_watch(said, authorities, token, form))
            return
        rows = client.run(_gather(address(said), authorities, token))
    except client.ApiError as fault:
        client.fail(fault.text)
    _print(rows, form)


# ------------------------------------------------------------------------------- asking


async def _gather(at: str, authorities: Sequence[str], token: str) -> list[Row]:
    from isthmus.cli.commands.diagnostics_client import connected

    rows: list[Row] = []
    async with connected(at, token) as client, asyncio.TaskGroup() as group:
        for authority in authorities:
            group.create_task(_collect(client.get(authority, SECONDS), rows))
    return rows


async def _collect(updates: AsyncIterator[Any], rows: list[Row]) -> None:
    async for update in updates:
        rows.extend(added(update))


def added(update: Any) -> list[Row]:  # noqa: ANN401  # a message
    """The addresses that an Update adds."""
    from isthmus.cli import gojson

    out = []
    labels = update.add.metric_labels
    namespace = labels.get("namespace", "")
    for each in update.add.addrs:
        own = dict(sorted(each.metric_labels.items()))
        out.append(
            Row(
                namespace=namespace,
                ip=ip_text(each.addr.ip),
                port=each.addr.port,
                pod=own.get("pod", "").rpartition("/")[2],
                service=f"{labels.get('service', '')}.{namespace}",
                weight=each.weight,
                http2=gojson.struct(each.http2) if each.HasField("http2") else None,
                labels=own,
                cluster=own.get(TARGET) or labels.get(TARGET, ""),
            )
        )
    return out


def ip_text(ip: Any) -> str:  # noqa: ANN401  # a message
    """An address as people write it."""
    if ip.WhichOneof("ip") == "ipv6":
        return str(IPv6Address(ip.ipv6.first << 64 | ip.ipv6.last))
    return str(ip_address(ip.ipv4))


# ----------------------------------------------------------------------------- printing


def _print(rows: Iterable[Row], form: str) -> None:
    from isthmus.cli import gojson

    ordered = sorted(
        rows, key=lambda row: (row.namespace, row.service, row.cluster, row.ip, row.port)
    )
    if form == "json":
        click.echo(gojson.dumps([row.shown for row in ordered]))
    elif not ordered:
        click.echo("No endpoints found.", err=True)
    else:
        click.echo(tables(ordered), nl=False)


def tables(rows: Sequence[Row]) -> str:
    """One table per namespace; the namespaces and pods are as wide in all of them.

    Of a Service that has endpoints in linked clusters, one more column says in which.
    """
    blocks = []
    linked = any(row.cluster for row in rows)
    header = (*HEADER, CLUSTER) if linked else HEADER
    lines = [_cells(row)[: len(header)] for row in rows]
    common = [max(len(line[column]) for line in [header, *lines]) for column in (0, 3, 4)]
    for _, members in groupby(lines, key=lambda line: line[0]):
        block = [header, *members]
        ip, port = (max(len(line[column]) for line in block) for column in (1, 2))
        widths = (common[0], ip, port, common[1], common[2], 0) if linked else (
            common[0], ip, port, common[1], 0,
        )  # fmt: skip
        blocks.append("".join(f"{_line(line, widths)}\n" for line in block))
    return "\n".join(blocks)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.namespace, row.ip, str(row.port), row.pod, row.service, row.cluster or "-")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return GAP.join(padded)


# ----------------------------------------------------------------------------- watching


async def _watch(said: Globals, authorities: Sequence[str], token: str, form: str) -> None:
    from isthmus.cli.commands.diagnostics_client import follow

    async with asyncio.TaskGroup() as group:
        for authority in authorities:
            group.create_task(
                follow(
                    partial(address, said),
                    token,
                    partial(_ask, authority),
                    partial(_tell, authority, form),
                )
            )


def _ask(path: str, client: Client) -> AsyncIterator[Any]:
    return client.get(path)


def _tell(authority: str, form: str, update: Any) -> None:  # noqa: ANN401  # a message
    from isthmus.cli import gojson

    if form == "json":
        lines = [gojson.dumps({"authority": authority, **change(update)}, indent=None)]
    else:
        lines = [f"{authority}  {line}" for line in told(update)]
    for line in lines:
        click.echo(line)
    sys.stdout.flush()


def change(update: Any) -> dict[str, Any]:  # noqa: ANN401  # a message
    """An Update for programs."""
    match update.WhichOneof("update"):
        case "add":
            return {"add": [row.shown for row in added(update)]}
        case "remove":
            return {"remove": _removed(update)}
        case "no_endpoints":
            return {"no_endpoints": {"exists": update.no_endpoints.exists}}
    return {}


def told(update: Any) -> list[str]:  # noqa: ANN401  # a message
    """An Update for people: `+` for an address that is new or changed, `-` for one that is gone."""
    match update.WhichOneof("update"):
        case "add":
            return [
                f"+ {row.at}  {row.service}  {_facts(each, row)}"
                for each, row in zip(update.add.addrs, added(update), strict=True)
            ]
        case "remove":
            return [f"- {at}" for at in _removed(update)]
        case "no_endpoints":
            return ["no endpoints" if update.no_endpoints.exists else "no such service"]
    return []


def _facts(address: Any, row: Row) -> str:  # noqa: ANN401  # a message
    identity, hint = address.tls_identity, address.protocol_hint
    facts = {
        "pod": row.pod,
        "cluster": row.cluster,
        "weight": str(row.weight),
        "identity": identity.dns_like_identity.name or identity.uri_like_identity.uri,
        "hint": hint.WhichOneof("protocol") or "",
        "transport": str(hint.opaque_transport.inbound_port or ""),
        "authority": address.authority_override.authority_override,
    }
    return " ".join(f"{name}={value}" for name, value in facts.items() if value)


def _removed(update: Any) -> list[str]:  # noqa: ANN401  # a message
    texts = [(ip_text(each.ip), each.port) for each in update.remove.addrs]
    return [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in texts]

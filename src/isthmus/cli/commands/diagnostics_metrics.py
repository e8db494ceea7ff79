"""`isthmus diagnostics proxy-metrics`: what proxies count, as they tell it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.options import Globals
from isthmus.errors import IsthmusError, UserFault

SECRET: Final = ("authority", "client_id", "server_id", "target_addr", "dst_service",
                 "dst_namespace", "hostname")  # fmt: skip
"""Labels whose values --obfuscate hides."""

_LABEL: Final = re.compile(rf'(?<=[{{,])({"|".join(SECRET)})="((?:[^"\\]|\\.)*)"')

EPILOG = """\b
Examples:
  isthmus diagnostics proxy-metrics -n faces deploy/face
  isthmus dg proxy-metrics -n faces pod/face-5b9c4d7f6d-8hv2p | grep _statuses_total
"""


@click.command(name="proxy-metrics", epilog=EPILOG)
@click.argument("resource", metavar="RESOURCE", nargs=-1, required=True)
@click.option("--obfuscate", is_flag=True, help="Hide names of hosts, services and identities.")
@click.option(
    "-w", "--wait", metavar="DURATION", default="30s", show_default=True,
    help="Accepted as linkerd does; each pod may take ten seconds.",
)  # fmt: skip
@place_options
@click.pass_context
def proxy_metrics(
    context: click.Context, resource: tuple[str, ...], wait: str, *, obfuscate: bool
) -> int:
    """Print what the proxies of a workload's pods count.

    RESOURCE is TYPE/NAME, such as deploy/face or pod/face-1. Lines with # say which pod follows.
    """
    from isthmus.cli import kubeconfig, proxies, workloads
    from isthmus.cli.cluster import Cluster

    del wait
    said = context.find_root().ensure_object(Globals)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    namespace = said.namespace or access.namespace
    found = workloads.pods(Cluster(access), namespace, workloads.read(resource))
    if not found:
        raise UserFault(f"no pods of {' '.join(resource)} run in namespace {namespace!r}")
    names = [str(pod["metadata"]["name"]) for pod in found]
    told = proxies.pages(access, found, ["metrics"] * len(found))
    click.echo(printed(names, told, obfuscate=obfuscate), nl=False)
    return 1 if all(isinstance(each, IsthmusError) for each in told) else 0


def printed(
    names: Sequence[str], told: Sequence[str | IsthmusError], *, obfuscate: bool = False
) -> str:
    """All pods' pages, each below its name."""
    parts = []
    for number, (name, page) in enumerate(zip(names, told, strict=True), start=1):
        parts.append(f"#\n# POD {name} ({number} of {len(names)})\n#\n")
        if isinstance(page, IsthmusError):
            parts.append(f"# ERROR: {page.message}\n")
        else:
            parts.append(hidden(page) if obfuscate else page)
    return "".join(parts)


def hidden(page: str) -> str:
    """The page without names that tell whose it is: their place takes a part of their digest."""
    return _LABEL.sub(lambda found: f'{found[1]}="{_digest(found[2])}"', page)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:8]

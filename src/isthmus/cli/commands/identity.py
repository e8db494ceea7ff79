"""`isthmus identity`: the certificates that pods show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.options import Globals, global_options
from isthmus.errors import IsthmusError, UserFault

if TYPE_CHECKING:
    from isthmus.cli.cluster import Cluster

EPILOG = """\b
Examples:
  isthmus identity face-5b9c4d7f6d-8hv2p -n faces
  isthmus identity -n faces -l service=face | grep CN=
"""


@click.command(epilog=EPILOG)
@click.argument("pods", nargs=-1)
@click.option("-l", "--selector", default="", metavar="TEXT", help="Labels of the pods.")
@global_options
@click.pass_context
def identity(context: click.Context, pods: tuple[str, ...], selector: str) -> int:
    """Print the certificate of each of the PODS, as its proxy shows it."""
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster

    if not pods and not selector:
        raise UserFault("Provide the pod name argument or use the selector flag")
    said = context.find_root().ensure_object(Globals)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    namespace = said.namespace or access.namespace
    cluster = Cluster(access)
    path = f"/api/v1/namespaces/{namespace}/pods"
    if pods:
        found = [cluster.get(f"{path}/{name}") for name in pods]
    else:
        found = cluster.get(path, labelSelector=selector).get("items") or []
    if not found:
        raise UserFault(f"no pods in namespace {namespace!r} have the labels {selector!r}")
    failed = False
    for number, pod in enumerate(found, start=1):
        click.echo(f"\nPOD {pod['metadata']['name']} ({number} of {len(found)})\n")
        try:
            click.echo(_certificate(cluster, pod), nl=False)
        except IsthmusError as fault:
            failed = True
            click.echo(f"# ERROR: {fault.message}")
    return 1 if failed else 0


def _certificate(cluster: Cluster, pod: Mapping[str, Any]) -> str:
    from isthmus.ca import chains
    from isthmus.cli import proxies
    from isthmus.cli.certificate_text import describe

    answer = cluster.get(proxies.path(pod, "certificate"))
    name = pod["metadata"]["name"]
    chain = chains.read_pem(str(answer.get("chain") or "").encode(), f"the answer of pod {name}")
    return describe(chain[0])

"""`isthmus multicluster install`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.multicluster.documents import output_option
from isthmus.cli.options import Globals, GoBool, GoCommand
from isthmus.errors import UserFault

if TYPE_CHECKING:
    from isthmus.cli.multicluster.facts import Facts

PORT = click.IntRange(1, 65535)

EPILOG = """\b
Examples:
  isthmus --context=east multicluster install | kubectl --context=east apply -f -
  isthmus multicluster install --gateway=false | kubectl apply -f -
"""


@click.command(cls=GoCommand, epilog=EPILOG)
@click.option("--gateway", cls=GoBool, help="With a gateway.  [default: true]")
@click.option("--gateway-port", type=PORT, default=4143, show_default=True, help="Its port.")
@click.option(
    "--gateway-probe-seconds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Seconds between two probes of it.",
)
@click.option(
    "--gateway-probe-port", type=PORT, default=4191, show_default=True, help="Port of the probes."
)
@click.option(
    "--gateway-service-type",
    type=click.Choice(("LoadBalancer", "NodePort", "ClusterIP")),
    default="LoadBalancer",
    show_default=True,
    metavar="TYPE",
    help="Type of its Service.",
)
@click.option(
    "--gateway-healthcheck-nodeport", type=PORT, default=None, help="healthCheckNodePort of it."
)
@click.option(
    "--service-mirror-credentials",
    cls=GoBool,
    help="With the account that linked clusters use.  [default: true]",
)
@click.option("--ha", is_flag=True, help="Three replicas of the gateway, on different nodes.")
@click.option("--wait", hidden=True, expose_value=False, help="Nothing is waited for.")
@click.option("--ignore-cluster", is_flag=True, help="Do not look at the cluster.")
@output_option
@place_options
@click.pass_context
def install(
    context: click.Context,
    gateway_port: int,
    gateway_probe_seconds: int,
    gateway_probe_port: int,
    gateway_service_type: str,
    gateway_healthcheck_nodeport: int | None,
    output: str,
    *,
    gateway: bool | None,
    service_mirror_credentials: bool | None,
    ha: bool,
    ignore_cluster: bool,
) -> None:
    """Print the objects that a cluster needs before others link to it, for `kubectl apply -f -`.

    A namespace, an account for linked clusters that may read what they need and nothing else, and,
    unless --gateway=false, the gateway through which clusters without a common network come in.
    """
    from isthmus.cli.multicluster.documents import print_all
    from isthmus.cli.multicluster.install import REPLICAS_HA, Gateway, objects

    said = context.find_root().ensure_object(Globals)
    facts, kind = _look(said, ignore=ignore_cluster)
    wanted = Gateway(
        port=gateway_port,
        probe_port=gateway_probe_port,
        probe_seconds=gateway_probe_seconds,
        service_type=gateway_service_type,
        healthcheck_node_port=gateway_healthcheck_nodeport or 0,
        replicas=REPLICAS_HA if ha else 1,
    )
    credentials = service_mirror_credentials is not False
    found = objects(facts, None if gateway is False else wanted, credentials=credentials, kind=kind)
    print_all(found, output)


def _look(said: Globals, *, ignore: bool) -> tuple[Facts, bool]:
    """What the cluster says of itself, and whether it lacks the kind Link."""
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.multicluster import facts, names
    from isthmus.errors import NotFound

    if ignore:
        return facts.Facts(namespace=said.linkerd_namespace or facts.LINKERD), True
    cluster = Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))
    try:
        found = facts.ask(cluster, said.linkerd_namespace)
    except NotFound as fault:
        raise UserFault(
            f"you need Linkerd or Isthmus to be installed to install multicluster: {fault.message}"
        ) from fault
    try:
        cluster.get(names.LINKS, limit="1")
    except NotFound:
        return found, True
    return found, False

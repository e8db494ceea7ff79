"""`isthmus multicluster unlink`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.multicluster import names
from isthmus.cli.multicluster.documents import Document, named, output_option
from isthmus.cli.options import Globals
from isthmus.errors import NotFound, UserFault

EPILOG = """\b
Example:
  isthmus --context=hub multicluster unlink --cluster-name=east \\
    | kubectl --context=hub delete -f -
"""


@click.command(epilog=EPILOG)
@click.option("--cluster-name", metavar="NAME", default="", help="The linked cluster.")
@click.option("--only-controller", is_flag=True, hidden=True)
@output_option
@place_options
@click.pass_context
def unlink(
    context: click.Context, cluster_name: str, output: str, *, only_controller: bool
) -> None:
    """Print what is to be deleted to end a link, for `kubectl delete -f -`.

    Both Secrets, the Link, and the services mirrored through it. Federated services are not listed:
    the cluster leaves them by itself when its Link goes. Where the Link was deleted by hand: what
    it left.
    """
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.multicluster import facts
    from isthmus.cli.multicluster.documents import print_all

    if not cluster_name:
        raise UserFault("You need to specify cluster name")
    if only_controller:
        click.echo("isthmus: there is no controller of a link: mirroring runs inside the server",
                   err=True)  # fmt: skip
        return
    said = context.find_root().ensure_object(Globals)
    cluster = Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))
    namespace = said.namespace or names.NAMESPACE
    path = f"/apis/{names.LINK_VERSION}/namespaces/{namespace}/links/{cluster_name}"
    found: list[Document] = []
    with contextlib.suppress(NotFound):  # no control plane, or no such kind
        control_plane = said.linkerd_namespace or facts.ask(cluster, None).namespace
        link = _maybe(cluster, path)
        if link is not None:
            found = list(objects(cluster, link, control_plane))
        else:
            found = list(left(cluster, cluster_name, (namespace, control_plane)))
    if not found:
        raise UserFault(f"there is no link {cluster_name!r} in namespace {namespace!r}")
    print_all(found, output)


def objects(cluster: Any, link: Document, control_plane: str) -> Iterator[Document]:  # noqa: ANN401
    """What goes with a Link."""
    name, namespace = link["metadata"]["name"], link["metadata"]["namespace"]
    spec = link.get("spec") or {}
    target = str(spec.get("targetClusterName") or name)
    secret = str(spec.get("clusterCredentialsSecret") or f"{names.CREDENTIALS}{name}")
    yield named("v1", "Secret", secret, namespace)
    yield named("v1", "Secret", f"{names.CREDENTIALS}{target}", control_plane)
    yield named(names.LINK_VERSION, "Link", name, namespace)
    yield from _mirrors(cluster, target)


def left(cluster: Any, target: str, namespaces: tuple[str, ...]) -> Iterator[Document]:  # noqa: ANN401
    """What a Link that was deleted by hand left: its credentials give access still."""
    for namespace in dict.fromkeys(namespaces):
        name = f"{names.CREDENTIALS}{target}"
        secret = _maybe(cluster, f"/api/v1/namespaces/{namespace}/secrets/{name}") or {}
        if secret.get("type") == names.CREDENTIALS_TYPE:
            yield named("v1", "Secret", name, namespace)
    yield from _mirrors(cluster, target)


def _maybe(cluster: Any, path: str) -> Document | None:  # noqa: ANN401
    try:
        return dict(cluster.get(path))
    except NotFound:
        return None


def _mirrors(cluster: Any, target: str) -> Iterator[Document]:  # noqa: ANN401
    wanted = f"{names.MIRRORED}=true,{names.MIRROR_CLUSTER}={target}"
    for each in cluster.get("/api/v1/services", labelSelector=wanted).get("items") or []:
        yield named("v1", "Service", each["metadata"]["name"], each["metadata"]["namespace"])

"""`isthmus agent`: the agent of a host, and the tokens by which hosts join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.options import Globals
from isthmus.errors import AlreadyExists, NotFound, UserFault

NAMESPACE = "linkerd"

EPILOG = """\b
A host joins with a token that is good once, for an hour:
  isthmus agent token --host vm-1 > token          (where the cluster's kubeconfig is)
  isthmus agent --token-file token --workload shop/db=postgres     (on the host)
Deleting the Node of the host revokes it: kubectl delete node vm-1
"""


@click.group(epilog=EPILOG, invoke_without_command=True)
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="The join token."
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=Path("/var/lib/isthmus/agent"),
    show_default=True,
    metavar="DIR",
    help="Where the host's own key and certificate are kept.",
)
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    default=Path("/run/isthmus"),
    show_default=True,
    metavar="DIR",
    help="Where the workloads' keys are: it must be in memory.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="NAMESPACE/NAME=ACCOUNT",
    help="An ExternalWorkload that runs on this host; repeatable.",
)
@click.option("--xds", metavar="HOST:PORT", help="The control plane's xds listener.")
@click.option("--envoy", type=click.Path(path_type=Path), metavar="FILE", help="Another Envoy.")
@click.pass_context
def agent(
    context: click.Context,
    token_file: Path | None,
    state_dir: Path,
    run_dir: Path,
    workloads: tuple[str, ...],
    xds: str | None,
    envoy: Path | None,
) -> int:
    """Run the proxies of this host's workloads until told to stop."""
    if context.invoked_subcommand is not None:
        return 0
    from isthmus.app.host import HostConfig, run

    return run(
        HostConfig(
            token_file=token_file,
            state_dir=state_dir,
            run_dir=run_dir,
            workloads=tuple(map(_workload, workloads)),
            xds=xds,
            envoy=envoy,
        )
    )


def _workload(text: str) -> tuple[str, str, str]:
    path, _, account = text.partition("=")
    namespace, _, name = path.partition("/")
    if not (namespace and name and account):
        raise click.UsageError(f"--workload {text!r} is not NAMESPACE/NAME=ACCOUNT")
    return namespace, name, account


@agent.command()
@click.option("--host", required=True, metavar="NAME", help="The host, which becomes a Node.")
@click.option(
    "--trust-domain", default="cluster.local", show_default=True, help="That of the server."
)
@place_options
@click.pass_context
def token(context: click.Context, host: str, trust_domain: str) -> None:
    """Print a token with which the agent of a host joins: good once, for an hour."""
    from isthmus.aio import SystemClock
    from isthmus.ca import Invitation, Realm, join
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.model.names import subdomain_problems

    if subdomain_problems(host):
        raise UserFault(f"a host must be named as a Node is, and {host!r} is not")
    said = context.find_root().ensure_object(Globals)
    cluster = Cluster(kubeconfig.load(said.kubeconfig_path).access(said.context))
    namespace = said.linkerd_namespace or NAMESPACE
    realm = Realm(trust_domain, namespace)
    clock = SystemClock()
    at = said.api_addr or cluster.listener("identity", said.linkerd_namespace)
    anchors = _anchors(cluster, namespace, clock)
    made = Invitation.make(realm.host_uri(host), at, realm.server_name, join.hashes(anchors))
    expires = clock.time() + join.LIFETIME.total_seconds()
    cluster.create(
        f"/api/v1/namespaces/{namespace}/secrets", join.document(made, host, namespace, expires)
    )
    click.echo(made.token)


def _anchors(cluster: Any, namespace: str, clock: Any) -> Any:  # noqa: ANN401
    """The mesh's anchors; a CA is made if there is none, since the token must name one."""
    from isthmus.ca import chains, trust

    path = f"/api/v1/namespaces/{namespace}/configmaps"
    try:
        found = cluster.get(f"{path}/{trust.ROOTS_CONFIG_MAP}")
    except NotFound:
        found = _make(cluster, namespace, path, clock)
    bundle = str((found.get("data") or {}).get(trust.BUNDLE) or "")
    return chains.read_pem(bundle.encode(), f"ConfigMap {namespace}/{trust.ROOTS_CONFIG_MAP}")


def _make(cluster: Any, namespace: str, path: str, clock: Any) -> Any:  # noqa: ANN401
    import base64

    from isthmus.ca import trust

    made = trust.make("isthmus", now=clock.utc())
    data = {key: base64.b64encode(v).decode() for key, v in trust.secret_data(made).items()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": trust.ISSUER_SECRET, "namespace": namespace},
        "type": "linkerd.io/tls",
        "data": data,
    }
    try:
        cluster.create(f"/api/v1/namespaces/{namespace}/secrets", secret)
    except AlreadyExists as fault:
        raise UserFault(
            f"the namespace {namespace!r} has an issuer and no ConfigMap"
            f" {trust.ROOTS_CONFIG_MAP}: bring the anchors (or name them with"
            " --trust-anchors on the server and give the token the ConfigMap)"
        ) from fault
    roots = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": trust.ROOTS_CONFIG_MAP, "namespace": namespace},
        "data": {trust.BUNDLE: made.bundle.decode()},
    }
    return cluster.create(path, roots)

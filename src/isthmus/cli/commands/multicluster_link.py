"""`isthmus multicluster link` and `link-gen`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from isthmus.cli.commands.diagnostics_options import place_options
from isthmus.cli.multicluster import names
from isthmus.cli.multicluster.documents import output_option
from isthmus.cli.options import Globals, GoBool, GoCommand
from isthmus.errors import NotFound, UserFault

if TYPE_CHECKING:
    from isthmus.cli.multicluster.link import Wanted

F = TypeVar("F", bound=Callable[..., Any])

EPILOG = """\b
Examples:
  isthmus --context=east multicluster link --cluster-name=east \\
    | kubectl --context=hub apply -f -
  isthmus multicluster --context=east link --cluster-name=east --gateway=false \\
    | kubectl --context=hub apply -f -
"""

NEEDS_GATEWAY = {
    "selector": "--selector",
    "gateway_addresses": "--gateway-addresses",
    "gateway_port": "--gateway-port",
}


def _options(command: F) -> F:
    text: dict[str, Any] = {"metavar": "TEXT", "show_default": True}
    found: Callable[..., Any] = command
    for option in (
        click.option("--cluster-name", metavar="NAME", default="", help="What it is called there."),
        click.option("--api-server-address", metavar="URL", default="",
                     help="Where the other cluster reaches our API; that of the context if not"
                     " given."),
        click.option("--service-account-name", default=names.REMOTE_ACCESS, **text,
                     help="Account that the other cluster uses."),
        click.option("--gateway", cls=GoBool, help="With our gateway.  [default: true]"),
        click.option("--gateway-name", default=names.GATEWAY, **text, help="Service of it."),
        click.option("--gateway-namespace", metavar="TEXT", default="",
                     help="Namespace of it; that of the link if not given."),
        click.option("--gateway-addresses", metavar="LIST", default="",
                     help="Addresses of it, by commas; those of its Service if not given."),
        click.option("--gateway-port", type=click.IntRange(1, 65535), default=None,
                     help="Port of it; that of its Service if not given."),
        click.option("-l", "--selector", default=names.SELECTOR, **text,
                     help="Services to mirror through the gateway."),
        click.option("--remote-discovery-selector", default=names.REMOTE_DISCOVERY_SELECTOR,
                     **text, help="Services to mirror endpoint by endpoint."),
        click.option("--federated-service-selector", default=names.FEDERATED_SELECTOR, **text,
                     help="Services that join federated services."),
        click.option("--excluded-annotations", metavar="LIST", default="",
                     help="Annotations not to copy: keys or prefix/*."),
        click.option("--excluded-labels", metavar="LIST", default="", help="Labels not to copy."),
        output_option,
        place_options,
        click.pass_context,
    ):  # fmt: skip
        found = option(found)
    return cast("F", found)


MIRRORS = (
    "--service-mirror-retry-limit", "--log-level", "--log-format", "--registry",
    "--control-plane-version", "--set", "--set-string", "--set-file", "--values",
)  # fmt: skip
"""Linkerd's flags for the Deployment of its service mirror, each with a value."""


def _mirror_options(command: F) -> F:
    """Take them, and say that they change nothing here."""
    found: Callable[..., Any] = command
    for name in MIRRORS:
        found = click.option(
            name, hidden=True, expose_value=False, multiple=True, callback=_without_effect
        )(found)
    ha = click.option(
        "--ha", is_flag=True, hidden=True, expose_value=False, callback=_without_effect
    )
    return cast("F", ha(found))


def _without_effect(_: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        told = f"{parameter.opts[0]} is for a Deployment that mirrors; Isthmus needs none"
        click.echo(f"isthmus: {told}", err=True)


@click.command(cls=GoCommand, epilog=EPILOG)
@_mirror_options
@_options
def link(context: click.Context, /, **flags: Any) -> None:  # noqa: ANN401  # one per flag
    """Print what lets another cluster use this one's services, for `kubectl apply -f -` there.

    Asked of the cluster whose services shall be used. Two Secrets with credentials, and a Link.
    The credentials are a token of a week that the other cluster renews by itself; they let it read
    what it mirrors, and nothing else. All of it may as well be written by hand.
    """
    _print(context, flags, "You need to specify cluster name")


@click.command(name="link-gen", cls=GoCommand, epilog=EPILOG.replace(" link ", " link-gen "))
@_options
def link_gen(context: click.Context, /, **flags: Any) -> None:  # noqa: ANN401  # one per flag
    """Print what lets another cluster use this one's services; see `link`."""
    _print(context, flags, "you need to specify cluster name")


def _print(context: click.Context, flags: dict[str, Any], nameless: str) -> None:
    from isthmus.cli import kubeconfig
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.multicluster import facts
    from isthmus.cli.multicluster.documents import print_all
    from isthmus.cli.multicluster.link import objects

    if not flags["cluster_name"]:
        raise UserFault(nameless)
    said = context.find_root().ensure_object(Globals)
    wanted = _wanted(context, flags, said.namespace or names.NAMESPACE)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    cluster = Cluster(access)
    try:
        found = facts.ask(cluster, said.linkerd_namespace)
    except NotFound as fault:
        raise UserFault(
            "you need Linkerd to be installed on a cluster in order to get its credentials:"
            f" {fault.message}"
        ) from fault
    print_all(objects(cluster, access, found, wanted), flags["output"])


def _wanted(context: click.Context, flags: dict[str, Any], namespace: str) -> Wanted:
    from isthmus.cli.multicluster.link import GatewayAt, Wanted
    from isthmus.model.names import label_value_problems, subdomain_problems

    name = flags["cluster_name"]
    for problem in (*subdomain_problems(name), *label_value_problems(name)):
        raise UserFault(f"--cluster-name {name!r}: {problem}")
    gateway = None
    if flags["gateway"] is not False:
        gateway = GatewayAt(
            name=flags["gateway_name"],
            namespace=flags["gateway_namespace"] or namespace,
            addresses=flags["gateway_addresses"],
            port=flags["gateway_port"] or 0,
        )
    else:
        _refuse_gateway_flags(context)
    return Wanted(
        cluster=name,
        namespace=namespace,
        account=flags["service_account_name"],
        api_server=_server(flags["api_server_address"]),
        selector=flags["selector"],
        remote_discovery=flags["remote_discovery_selector"],
        federated=flags["federated_service_selector"],
        excluded_annotations=_list(flags["excluded_annotations"]),
        excluded_labels=_list(flags["excluded_labels"]),
        gateway=gateway,
    )


def _refuse_gateway_flags(context: click.Context) -> None:
    for parameter, flag in NEEDS_GATEWAY.items():
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise UserFault(f"{flag} cannot be used with --gateway=false")


def _server(text: str) -> str:
    if text and not text.startswith(("https://", "http://")):
        raise UserFault(f"--api-server-address {text!r} is no URL such as https://10.0.0.1:6443")
    return text.rstrip("/")


def _list(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())

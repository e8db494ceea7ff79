"""What the viz commands ask proxies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from isthmus.errors import IsthmusError, UserFault

if TYPE_CHECKING:
    from isthmus.cli.kubeconfig import Access
    from isthmus.cli.options import Globals
    from isthmus.cli.viz.window import Change
    from isthmus.cli.workloads import Found

F = TypeVar("F", bound=Callable[..., Any])


class Counted(NamedTuple):
    """A workload, and what its proxies counted over the window."""

    name: str
    changes: list[Change]


def window_option(command: F) -> F:
    """Give a command -t."""
    return click.option(
        "-t", "--time-window", metavar="DURATION", default="1m", show_default=True,
        help="How far to look back, at most 10m.",
    )(command)  # fmt: skip


def counted(said: Globals, resource: Sequence[str], time_window: str) -> list[Counted]:
    """What the proxies of these workloads counted.

    Raises:
        UserFault, NotFound: there are no such workloads; none of their pods has a proxy.
    """
    from isthmus.cli import kubeconfig, workloads
    from isthmus.cli.cluster import Cluster
    from isthmus.cli.viz.window import duration

    seconds = duration(time_window)
    access = kubeconfig.load(said.kubeconfig_path).access(said.context)
    namespace = said.namespace or access.namespace
    found = workloads.find(Cluster(access), namespace, workloads.read(resource))
    if not any(each.pods for each in found):
        raise UserFault(f"no pods of {' '.join(resource)} run in namespace {namespace!r}")
    return ask(access, found, seconds)


def ask(access: Access, found: Sequence[Found], seconds: float) -> list[Counted]:
    """Ask the proxies of these workloads. Those that do not answer are told of on stderr.

    Raises:
        IsthmusError: none answers.
    """
    from isthmus.cli import proxies
    from isthmus.cli.viz.window import changes

    pods = [pod for each in found for pod in each.pods]
    ago = max(round(seconds), 1)
    now = proxies.pages(access, pods, ["metrics?ago=0"] * len(pods))
    before = proxies.pages(access, pods, [f"metrics?ago={ago}"] * len(pods))
    grown: dict[str, list[Change]] = {}
    faults: list[IsthmusError] = []
    for pod, new, old in zip(pods, now, before, strict=True):
        if isinstance(new, IsthmusError):
            faults.append(new)
        elif isinstance(old, IsthmusError):
            faults.append(old)
        else:
            grown[_key(pod)] = list(changes(new, old))
    if faults and not grown:
        raise faults[0]
    for fault in faults:
        click.echo(f"warning: {fault}", err=True)
    return [
        Counted(each.name, [one for pod in each.pods for one in grown.get(_key(pod), ())])
        for each in found
    ]


def _key(pod: Any) -> str:  # noqa: ANN401  # an object
    meta = pod["metadata"]
    return f"{meta['namespace']}/{meta['name']}"

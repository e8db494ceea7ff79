"""From the shell into a command and back: exit codes and errors, nothing else.

Exit codes: 0 fine, 1 failed, 2 wrong usage; 130 after Ctrl-C, as shells count it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from isthmus import __version__
from isthmus.cli import failure
from isthmus.cli.commands.diagnostics_options import hidden_place_options
from isthmus.cli.group import LazyGroup
from isthmus.cli.options import Globals, global_options
from isthmus.errors import IsthmusError

COMMANDS = {
    "agent": ("isthmus.cli.commands.agent:agent", "Run a host's proxies; make join tokens."),
    "authz": ("isthmus.cli.commands.authz:authz", "Which policies let clients call a workload."),
    "check": ("isthmus.cli.commands.check:check", "Check a cluster and its mesh."),
    "demo": ("isthmus.cli.commands.demo:demo", "Four clusters and Faces: the workshop."),
    "diagnostics": (
        "isthmus.cli.commands.diagnostics:diagnostics",
        "Ask a control plane what it tells proxies.",
    ),
    "explain": (
        "isthmus.cli.commands.explain:explain",
        "Which objects decide about a request, from client to endpoint.",
    ),
    "lab": ("isthmus.cli.commands.lab:lab", "Whole clusters on this machine."),
    "multicluster": (
        "isthmus.cli.commands.multicluster:multicluster",
        "Link clusters, so that each uses the others' services.",
    ),
    "proxy": ("isthmus.cli.commands.proxy:proxy", "What proxies were told, and what they took."),
    "identity": (
        "isthmus.cli.commands.identity:identity",
        "Print the certificates that pods show.",
    ),
    "server": ("isthmus.cli.commands.server:server", "Run a cluster's control plane."),
    "viz": ("isthmus.cli.commands.viz:viz", "Success, rate and latency, from the proxies."),
    "version": ("isthmus.cli.commands.version:version", "Print the version."),
}

EPILOG = """\b
Start a control plane, and talk to it with kubectl (in another terminal):
  isthmus server
  export KUBECONFIG=~/.local/share/isthmus/default/kubeconfig
  kubectl get namespaces
"""


@click.command(
    cls=LazyGroup,
    commands=COMMANDS,
    aliases={"dg": "diagnostics", "mc": "multicluster"},
    epilog=EPILOG,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="isthmus %(version)s", help="Print the version.")
@global_options
@hidden_place_options
@click.pass_context
def root(context: click.Context) -> None:
    """One service mesh over many clusters and datacenters."""
    context.ensure_object(Globals)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and end the process."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command; return the exit code. What goes wrong is on stderr, one clear line."""
    try:
        code = root.main(args=list(arguments), prog_name="isthmus", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as fault:
        return failure.usage(fault)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as end:
        # Click's answer to EPIPE: it wraps stdout against further noise and exits with 1.
        # `isthmus ... | head` is no failure of ours.
        wrapped = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        return 0 if wrapped else _code(end.code)
    except IsthmusError as fault:
        return failure.refused(fault)
    except Exception as fault:  # noqa: BLE001  # the last edge: people see no traceback
        return failure.unexpected(fault)
    return _code(code)


def _code(code: object) -> int:
    return code if isinstance(code, int) else 0

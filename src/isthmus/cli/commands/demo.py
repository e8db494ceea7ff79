"""`isthmus demo`: the workshop, running or walked."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.cli.commands.lab_up import LOOPBACK, network, state_option
from isthmus.cli.options import hidden_global_options

if TYPE_CHECKING:
    from isthmus.cli.demo import Demo
    from isthmus.lab.state import State

INTERRUPTED = 130
"""Exit code of a walk that was not finished, as shells count Ctrl-C."""

EPILOG = """\b
Examples:
  isthmus demo
  isthmus demo --walk
  isthmus demo --walk --only scale
"""


@click.command(epilog=EPILOG)
@click.option("--walk", is_flag=True, help="Do the workshop's steps, and check what must be seen.")
@click.option("--only", metavar="CHAPTER", default="", help="Walk this chapter alone.")
@click.option("--until", metavar="CHAPTER", default="", help="Walk up to this chapter.")
@state_option
@click.option(
    "--loopback",
    metavar="CIDR",
    default=LOOPBACK,
    show_default=True,
    help="Where clusters listen on this machine: the N-th at address .N.1.",
)
@hidden_global_options
def demo(only: str, until: str, state_dir: str, loopback: str, *, walk: bool) -> int:
    """Run four clusters with Faces in them: three that smile, one that shows it.

    Prints where the page is, and runs until Ctrl-C. With --walk it does the workshop's steps by
    itself: it shows each command, runs it, says what must be seen, and looks; the exit code is 0
    only if all was seen.
    """
    from isthmus.aio import SystemClock
    from isthmus.cli.demo import Demo
    from isthmus.lab.state import State

    if (only or until) and not walk:
        raise click.UsageError("--only and --until belong to --walk")
    made = Demo(State(Path(state_dir)), network(loopback), SystemClock(), _say)
    if walk:
        return _walk(made, State(Path(state_dir)), only, until)
    return made.run(lambda: _show(made, State(Path(state_dir))))


def _show(made: Demo, state: State) -> None:
    from isthmus.cli.demo import to_try

    made.federate()
    made.watch.lap("links")
    url = made.url()
    made.first_smiley(url)
    made.watch.lap("first smiley")
    for text in to_try(url, made.admin(), state):
        _say(text)
    _say(f"\nFrom nothing to the first smiley: {made.watch.text}")


def _walk(made: Demo, state: State, only: str, until: str) -> int:
    from isthmus.aio import SystemClock
    from isthmus.cli.checks import pause
    from isthmus.lab.workshop.chapters import CHAPTERS
    from isthmus.lab.workshop.page import Page
    from isthmus.lab.workshop.shell import Shell, kubectl
    from isthmus.lab.workshop.walk import Walk, choose, report

    before, chosen = choose(CHAPTERS, only, until)
    kubectl()

    def work(folder: str) -> int:
        url = made.url()
        _say(f"\nThe page of Faces: {url}")
        shell = Shell(Path(folder), kubeconfig=state.kubeconfig, state=state.folder)
        walk = Walk(shell, Page(url), SystemClock(), pause, _say)
        walk.settle()
        walk.pass_through(before)
        verdicts = [walk.chapter(each) for each in chosen]
        _say(f"\n{report(verdicts)}")
        return 1 if any(each.missing for each in verdicts) else 0

    # Ours to remove: the thread that walks is gone with the process.
    with tempfile.TemporaryDirectory(prefix="isthmus-walk-", ignore_cleanup_errors=True) as folder:
        return made.run(lambda: work(folder), interrupted=INTERRUPTED)


def _say(text: str) -> None:
    try:
        click.echo(text)
        sys.stdout.flush()
    except OSError:  # nobody listens any more
        return

"""`isthmus demo`: what it says and leaves behind; and the workshop, walked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isthmus.lab.workshop.chapters import CHAPTERS
from tests.support.lab import links, loopback


@contextmanager
def demo(state: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable, "-m", "isthmus", "demo", "--state-dir", str(state),
        "--loopback", loopback(), *flags,
    ]  # fmt: skip
    with subprocess.Popen(
        # A script's background jobs are born ignoring SIGINT; the demo ends by it all the same.
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "HOME": str(state.parent), "TMPDIR": str(state.parent)},
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.terminate()
            running.communicate(timeout=30)


@pytest.mark.timeout(300)
def test_the_demo_shows_smileys_of_three_clusters_and_leaves_nothing(tmp_path: Path) -> None:
    before, state = links(), tmp_path / "state"
    with demo(state) as running:
        assert running.stdout is not None
        said: list[str] = []
        for line in running.stdout:
            said.append(line)
            if line.startswith("From nothing to the first smiley"):
                break
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
        code = running.wait(timeout=30)
    told = "".join(said)
    assert code == 0, told + rest
    assert "first smiley" in said[-1], told
    assert f"export KUBECONFIG={state / 'kubeconfig'}" in told
    assert "http://127." in told
    assert "warning" not in told
    assert not state.exists()
    assert links() == before


@pytest.mark.timeout(600)
def test_the_whole_workshop_is_walked_and_everything_is_seen(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with demo(state, "--walk") as running:
        assert running.stdout is not None
        told = running.stdout.read()
        code = running.wait(timeout=30)
    assert code == 0, told
    for each in CHAPTERS:
        assert f"\n√ {each.name} " in told
    assert "NOT SEEN" not in told
    assert not state.exists()


@pytest.mark.timeout(300)
def test_a_walk_that_is_broken_off_was_no_success_and_leaves_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with demo(state, "--walk") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "multicluster install" in line:
                break
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
        assert running.wait(timeout=30) != 0, rest
    assert not state.exists()
    assert list(tmp_path.glob("**/isthmus-walk-*")) == []


def test_a_chapter_that_is_none(tmp_path: Path) -> None:
    with demo(tmp_path / "state", "--walk", "--only", "nope") as running:
        assert running.stdout is not None
        told = running.stdout.read()
        assert running.wait(timeout=60) == 1
    assert "there is no chapter 'nope'; there are: setup, install, link," in told

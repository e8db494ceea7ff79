"""`make demo`'s script: what it says to try, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "demo.py"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_ends_in_good_order_and_leaves_nothing(
    end: signal.Signals, tmp_path: Path
) -> None:
    # A script's background jobs are born ignoring SIGINT; the demo must end by it all the same.
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, str(SCRIPT)]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        said: list[str] = []
        try:
            for line in demo.stdout:
                said.append(line)
                if "Ctrl-C ends the demo" in line:
                    break
            kubeconfig = next(tmp_path.glob("isthmus-demo-*/kubeconfig"))
            demo.send_signal(end)
            rest = demo.stdout.read()
        finally:
            demo.terminate()
    told = "".join(said)
    assert demo.returncode == 0
    assert f"KUBECONFIG={kubeconfig} " in told
    assert "warning" not in told
    assert "stopped" in rest  # the server's own last word
    assert list(tmp_path.glob("isthmus-demo-*")) == []

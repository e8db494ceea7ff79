"""`make demo`: one cluster in a fresh folder, an example in it, and what to try. Ctrl-C ends it.

Needs the development environment: the kubectl it drives is a development requirement.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
EXAMPLE = ROOT / "docs" / "examples" / "hello.yaml"
READY = "isthmus: cluster demo ready"

SERVER = (
    str(BIN / "isthmus"), "server", "--cluster", "demo",
    *(word for name in ("kube", "destination", "identity", "xds", "dns", "admin")
      for word in ("--listen", f"{name}=127.0.0.1:0")),
    "--listen", "policy=off", "--listen", "catalog=off",  # this version does not serve them
)  # fmt: skip

TO_TRY = """
A cluster is running, and the example of docs/examples/hello.yaml is in it.
In another terminal:

  export KUBECONFIG={kubeconfig} PATH="{bin}:$PATH"
  kubectl get deployments,replicasets,pods,services,endpointslices -n hello
  kubectl -n hello scale deployment/web --replicas=5
  kubectl -n hello get pods --watch
  isthmus diagnostics profile web.hello.svc.cluster.local:80

No node has joined, so pods stay Pending and `diagnostics endpoints` finds none; `isthmus lab up
faces` has both (docs/lab.md). Ctrl-C ends the demo and leaves nothing behind.
"""


def wait_until_ready(server: subprocess.Popen[str]) -> bool:
    """Pass the server's output on until it says that it is ready; False if it ended first."""
    assert server.stdout is not None  # noqa: S101  # it was opened with a pipe
    for line in server.stdout:
        print(line, end="", flush=True)
        if line.startswith(READY):
            return True
    return False


def run(folder: Path) -> int:
    """Start the server, apply the example, stay until Ctrl-C; return the exit code."""
    command = (*SERVER, "--data-dir", str(folder))
    # A session of its own: Ctrl-C reaches us alone, and we end the server in good order.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        try:
            if not wait_until_ready(server):
                return server.wait() or 1
            kubeconfig = folder / "kubeconfig"
            kubectl = [str(BIN / "kubectl"), "--kubeconfig", str(kubeconfig)]
            applied = subprocess.run([*kubectl, "apply", "-f", str(EXAMPLE)], check=False)
            if applied.returncode:
                return applied.returncode
            print(TO_TRY.format(kubeconfig=kubeconfig, bin=BIN), flush=True)
            return server.wait()
        except KeyboardInterrupt:
            print("\nending", flush=True)
            return 0
        finally:
            server.send_signal(signal.SIGTERM)


def end(_signal: int, _frame: object) -> None:
    """End in good order, so that no server is left behind."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the demo in a folder that vanishes with it."""
    # SIGINT too: what a script starts in the background is born ignoring it.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, end)
    with tempfile.TemporaryDirectory(prefix="isthmus-demo-") as folder:
        return run(Path(folder))


if __name__ == "__main__":
    sys.exit(main())

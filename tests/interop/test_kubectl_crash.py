"""The server is killed between commands: what kubectl was told is done stays done."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.interop.kubectl import Kubectl
from tests.support.server import ServerProcess

ROUNDS = 4
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    revision = 0
    for number in range(ROUNDS):
        home = tmp_path / f"home-{number}"  # a new port is a new cluster to kubectl's cache
        home.mkdir()
        with ServerProcess(tmp_path / "data") as server:
            kubectl = Kubectl(server.kubeconfig, home, "default")
            for name in acknowledged:
                kubectl("get", "configmap", name)
            listed = json.loads(kubectl("get", "--raw", CONFIG_MAPS))
            now = int(listed["metadata"]["resourceVersion"])
            assert now >= revision
            revision = now
            name = f"round-{number}"
            kubectl("create", "configmap", name, f"--from-literal=round={number}")
            kubectl("label", "configmap", name, "kept=yes")
            server.stop(signal.SIGKILL)
            acknowledged.append(name)
            assert "refused" in kubectl.fails("get", "configmap", name)
    with ServerProcess(tmp_path / "data") as server:
        kubectl = Kubectl(server.kubeconfig, tmp_path, "default")
        kept = kubectl("get", "configmap", "-l", "kept=yes", "-o", "name").split()
        assert kept == [f"configmap/{name}" for name in acknowledged]

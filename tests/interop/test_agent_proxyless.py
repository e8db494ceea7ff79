"""The folder that leads a workload's own gRPC clients to the control plane, and who may use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from isthmus import ca
from isthmus.agent import Seat, proxyless
from isthmus.agent.contract import Here
from isthmus.agent.credential import Held
from isthmus.agent.tunnel import Peer
from tests.support import netns

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEAT = Seat(cluster="east", namespace="shop", name="till-1", account="till", zone="one")


def held(made: ca.Authority) -> Held:
    """A workload's certificate."""
    return Held(made.issue_server(["till.shop"], now=NOW), made.bundle)


def test_grpc_finds_its_bootstrap_and_the_socket_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / proxyless.FOLDER
    first = held(ca.make("one", now=NOW))
    with proxyless.open_folder(folder, SEAT, "/var/run/isthmus/grpc", first):
        said = json.loads((folder / proxyless.BOOTSTRAP).read_bytes())
        assert said["node"] == {
            "id": "shop/till-1", "cluster": "till", "locality": {"zone": "one"},
        }  # fmt: skip
        [server] = said["xds_servers"]
        assert server["server_uri"] == "unix:///var/run/isthmus/grpc/ads.sock"
        assert (folder / proxyless.SOCKET).is_socket()
        [provider] = said["certificate_providers"].values()
        files = [Path(each).name for each in provider["config"].values() if "/" in each]
        written = {name: (folder / name).read_bytes() for name in files}
        assert sorted(written.values()) == sorted(
            [first.leaf.certificate, first.leaf.key, first.bundle]
        )
        second = held(ca.make("two", now=NOW))
        proxyless.write(folder, second)
        assert (folder / proxyless.BUNDLE).read_bytes() == second.bundle
        assert sorted(each.name for each in folder.iterdir()) == sorted(
            [*files, proxyless.BOOTSTRAP, proxyless.SOCKET]
        )
    with proxyless.open_folder(folder, SEAT, "/elsewhere", first):  # anew, after a crash
        assert b"/elsewhere/ads.sock" in (folder / proxyless.BOOTSTRAP).read_bytes()


def test_only_processes_inside_of_the_workload_are_let_in() -> None:
    with netns.pod() as inside:
        admit = proxyless.from_inside(inside)
        with inside.entered():
            child = subprocess.Popen(
                [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )
        try:
            assert admit(Peer(child.pid, 0))
            assert not admit(Peer(os.getpid(), 0))
        finally:
            child.communicate(b"\n")
        assert not admit(Peer(child.pid, 0))  # it has ended
    assert proxyless.from_inside(Here())(Peer(os.getpid(), 0))

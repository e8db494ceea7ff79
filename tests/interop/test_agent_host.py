"""A host joins a real server with a token made by the real command, and prints certificates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from isthmus.aio import SystemClock
from isthmus.ca import Account, chains, join, server_leaf
from isthmus.cli.certificate_text import describe
from tests.support.identities import REALM
from tests.support.server import ServerProcess
from tests.support.trusts import ordinary

PATIENCE = 60
FACE = REALM.name(Account("faces", "face"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("host"), "--store", "memory:") as made:
        yield made


def isthmus(*words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "isthmus", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def said(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def token(server: ServerProcess, host: str) -> str:
    asked = isthmus("agent", "token", "--host", host, KUBECONFIG=str(server.kubeconfig))
    code, out, err = said(asked)
    assert code == 0, err
    return out.strip()


def agent(home: Path, *flags: str) -> subprocess.Popen[str]:
    return isthmus(
        "agent", "--state-dir", str(home / "state"), "--run-dir", str(home / "run"), *flags
    )


def until_running(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if "agent runs" in line:
            return
    raise AssertionError(f"the agent ended: {told}")


def test_a_host_joins_once_and_is_known_ever_after(server: ServerProcess, tmp_path: Path) -> None:
    text = token(server, "vm-1")
    invitation = join.read(text)
    assert invitation.at == server.endpoints["identity"]
    file = tmp_path / "token"
    file.write_text(text)
    for _ in range(2):  # the second time it knows itself: no token is needed
        running = agent(tmp_path, "--token-file", str(file))
        until_running(running)
        running.send_signal(signal.SIGTERM)
        assert said(running)[0] == 0
    status, node = server.request("GET", "/api/v1/nodes/vm-1")
    assert status == 200
    assert len(node["metadata"]["annotations"]["isthmus.dev/host-key"]) == 64
    kept = json.loads((tmp_path / "state" / "host.json").read_text())
    leaf = chains.read_pem(kept["chain"].encode(), "host.json")[0]
    assert chains.uris(leaf) == ("spiffe://cluster.local/isthmus/host/vm-1",)
    assert (tmp_path / "state" / "host.key").stat().st_mode & 0o077 == 0

    other = tmp_path / "other"
    other.mkdir()
    code, _, err = said(agent(other, "--token-file", str(file)))  # replayed elsewhere
    assert code == 1
    assert "the join token is not known" in err
    assert "Traceback" not in err


def test_a_token_of_another_mesh_trusts_nobody(server: ServerProcess, tmp_path: Path) -> None:
    """The address answers, with anchors of another hash: the secret is never said."""
    invitation = join.read(token(server, "vm-2"))
    foreign = join.hashes(ordinary(SystemClock().utc()).anchors)
    forged = join.Invitation(
        invitation.id, invitation.secret, invitation.uri, invitation.at, invitation.name, foreign
    )
    file = tmp_path / "token"
    file.write_text(forged.token)
    code, _, err = said(agent(tmp_path, "--token-file", str(file)))
    assert code == 1
    assert "its trust anchors are others" in err


def test_a_host_that_never_joined_is_told_how(tmp_path: Path) -> None:
    code, _, err = said(agent(tmp_path))
    assert code == 1
    assert "isthmus agent token --host NAME" in err


def test_words_that_are_no_workload(tmp_path: Path) -> None:
    code, _, err = said(agent(tmp_path, "--workload", "shop"))
    assert code == 2
    assert "NAMESPACE/NAME=ACCOUNT" in err


def test_a_host_with_an_impossible_name(server: ServerProcess) -> None:
    asked = isthmus("agent", "token", "--host", "../x", KUBECONFIG=str(server.kubeconfig))
    code, _, err = said(asked)
    assert code == 1
    assert "named as a Node is" in err


def test_neither_pods_nor_selector(server: ServerProcess) -> None:
    code, _, err = said(isthmus("identity", KUBECONFIG=str(server.kubeconfig)))
    assert code == 1
    assert "Provide the pod name argument or use the selector flag" in err


def test_a_pod_without_a_proxy_is_told(server: ServerProcess) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    pods = "/api/v1/namespaces/default/pods"
    server.request("POST", pods, {"metadata": {"name": "bare"}, "spec": spec})
    code, out, _ = said(isthmus("identity", "bare", KUBECONFIG=str(server.kubeconfig)))
    assert code == 1
    assert "POD bare (1 of 1)" in out
    assert "# ERROR: the pod bare has no proxy" in out


def test_the_layout_of_a_certificate() -> None:
    held = ordinary(SystemClock().utc())
    names = (FACE, "spiffe://cluster.local/ns/faces/sa/face")
    pem = server_leaf(held, names, now=SystemClock().utc()).certificate
    text = describe(x509.load_pem_x509_certificate(pem))
    lines = text.splitlines()
    assert lines[:3] == ["Certificate:", "    Data:", "        Version: 3 (0x2)"]
    assert "        Issuer: CN=identity.linkerd.cluster.local" in lines
    assert "    Signature Algorithm: ECDSA-SHA256" in lines
    assert "                Digital Signature, Key Encipherment" in lines
    assert f"                DNS:{FACE}, URI:{names[1]}" in lines
    assert lines[-1].startswith("         ")
    assert text.count("CN=") == 1

"""`isthmus server` as a user meets it: what it leaves, how it ends, what it says when it cannot."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from isthmus import __version__, ca
from tests.support.server import ANYWHERE, SURFACES, ServerProcess

MEMORY = ("--store", "memory:")


def fails(*flags: str, **environment: str) -> tuple[int, str]:
    """Exit code and stderr of a server that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", "server", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# ------------------------------------------------------------------------------- it runs


def test_it_says_ready_and_leaves_files_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "east"
    process = ServerProcess(home, *MEMORY, "--cluster", "east")
    try:
        assert process.line() == "isthmus: cluster east ready\n"
        assert set(process.endpoints) == {*SURFACES}
        assert mode(home) == 0o700
        assert mode(process.kubeconfig) == 0o600
        assert mode(home / "ca") == 0o700
        readable = [p for p in home.rglob("*.key") if mode(p) != 0o600]
        assert readable == []
        assert process.admin("/ready") == (200, '{"ready": true, "reasons": {}}')
        assert process.admin("/live")[0] == 200
    finally:
        process.close()


def test_metrics_tell_of_requests_store_board_and_engine(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY) as server:
        server.request("GET", "/api/v1/namespaces/none")
        with watch(server):
            status, text = server.admin("/metrics")
    assert status == 200
    assert 'isthmus_api_requests_total{code="404",verb="get"} 1.0' in text
    assert "isthmus_api_watches 1.0" in text
    for name in ("isthmus_store_revision", "isthmus_engine_evaluations_total", "process_open_fds"):
        assert f"\n{name} " in text


def test_the_config_map_says_where_it_listens(tmp_path: Path) -> None:
    flags = ("--control-plane-namespace", "mesh-system")
    with ServerProcess(tmp_path, *MEMORY, *flags) as server:
        path = "/api/v1/namespaces/mesh-system/configmaps/isthmus-endpoints"
        status, body = server.request("GET", path)
        assert status == 200
        assert body["data"] == server.endpoints


def test_a_surface_can_be_off(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY, "--listen", "kube=off") as server:
        assert set(server.endpoints) == {*SURFACES} - {"kube"}
        assert not server.kubeconfig.exists()


def test_a_surface_of_a_later_version_is_warned_of(tmp_path: Path) -> None:
    flags = ("--listen", "catalog=127.0.0.1:0", "--log-format", "json")
    with ServerProcess(tmp_path, *MEMORY, *flags) as server:
        told = [json.loads(line) for line in server.log.splitlines()]
    warnings = [line for line in told if line["level"] == "warning"]
    assert [line["listener"] for line in warnings] == ["catalog"]


def test_nothing_secret_is_logged(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY) as server:
        server.request("GET", "/api/v1/namespaces")
        assert "PRIVATE KEY" not in server.log
        assert "PRIVATE KEY" not in server.admin("/metrics")[1]


def test_a_kubeconfig_names_the_cluster_or_what_it_is_told(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY, "--context-name", "k3d-face") as server:
        text = server.kubeconfig.read_text()
    assert "current-context: k3d-face\n" in text


# ------------------------------------------------------------------------------- it ends


def watch(server: ServerProcess) -> socket.socket:
    """A watch that is open and said so."""
    connection = server.connect()
    connection.request("GET", "/api/v1/namespaces?watch=true")
    assert connection.getresponse().status == 200
    assert connection.sock is not None
    return connection.sock


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_time_with_watches_attached(tmp_path: Path, number: int) -> None:
    with ServerProcess(tmp_path, *MEMORY) as server:
        watches = [watch(server) for _ in range(3)]
        assert server.stop(number, within=5) == 0
        assert "stopped" in server.log
        assert not (tmp_path / "endpoints.json").exists()
        for each in watches:
            each.close()


def test_a_signal_during_the_start_is_heard(tmp_path: Path) -> None:
    process = ServerProcess(tmp_path, *MEMORY)
    try:
        while not (tmp_path / "ca" / "server.pem").exists():
            assert process.process.poll() is None, process.log
        assert process.stop(within=30) in (0, -signal.SIGTERM)
    finally:
        process.close()


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}


def test_what_was_acknowledged_survives_sigkill(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        status, made = server.request("POST", "/api/v1/namespaces", NAMESPACE)
        assert status == 201
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    authority = (tmp_path / "ca" / "ca.crt").read_bytes()
    with ServerProcess(tmp_path) as server:
        status, found = server.request("GET", "/api/v1/namespaces/kept")
        assert status == 200
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        version = int(found["metadata"]["resourceVersion"])
        assert version >= int(made["metadata"]["resourceVersion"])
    assert (tmp_path / "ca" / "ca.crt").read_bytes() == authority


# ------------------------------------------------------------------------------- it cannot


def test_the_second_server_on_a_data_dir(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY) as server:
        code, told = fails("--data-dir", str(tmp_path), *MEMORY, *ANYWHERE)
        assert code == 1
        assert told == (
            f"isthmus: error: another isthmus server (pid {server.process.pid}) uses {tmp_path}; "
            "stop it, or name another --data-dir\n"
        )
        assert server.admin("/ready")[0] == 200


@pytest.mark.parametrize("name", SURFACES)
def test_a_taken_port(tmp_path: Path, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        code, told = fails(
            "--data-dir", str(tmp_path), *MEMORY, *ANYWHERE, "--listen", f"{name}={at}"
        )
    assert code == 1
    assert told.startswith(f"isthmus: error: the address {at} of listener {name} is taken; ")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--cluster", "NOT valid"], "--cluster: "),
        (["--store", "mysql://x"], "--store: "),
        (["--listen", "kube=nowhere"], "--listen: "),
        (["--listen", "soap=127.0.0.1:1"], "'soap' is not a listener"),
        (["--frobnicate"], "no such option '--frobnicate'"),
        (["--ipv6=perhaps"], "'perhaps'"),
        (["now"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(flags: list[str], says: str) -> None:
    code, told = fails(*flags)
    assert code == 2
    assert told.startswith("isthmus: error: ")
    assert says in told
    assert told.splitlines()[1:] == ["Try `isthmus server --help`."]


def test_a_wrong_environment_is_wrong_usage(tmp_path: Path) -> None:
    code, told = fails("--data-dir", str(tmp_path), ISTHMUS_SERVICE_CIDR="ten")
    assert code == 2
    assert told.startswith("isthmus: error: ISTHMUS_SERVICE_CIDR: ")
    assert told.splitlines()[1:] == ["Try `isthmus server --help`."]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"cluster = ", "is not TOML"),
        (b"\xff", "is not UTF-8"),
        (b"clustr = 'a'", "clustr: is no setting"),
        (b"service-cidr = 'x'", "service-cidr: "),
    ],
)
def test_a_wrong_config_file_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "isthmus.toml"
    path.write_bytes(content)
    code, told = fails("--config", str(path))
    assert code == 2
    assert f"isthmus: error: {path}: " in told
    assert says in told


def test_a_config_file_that_is_not_there() -> None:
    code, told = fails("--config", "/nowhere/isthmus.toml")
    assert code == 2
    assert "cannot read the config file" in told
    assert "/nowhere/isthmus.toml" in told


def test_a_data_dir_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, told = fails("--data-dir", str(tmp_path / "file"), *MEMORY)
    assert (code, told) == (
        1,
        f"isthmus: error: {tmp_path}/file is not a directory; name another one\n",
    )
    code, told = fails("--data-dir", "/proc/isthmus", *MEMORY)
    assert code == 1
    assert "cannot make the directory /proc/isthmus" in told


@pytest.mark.parametrize("store", ["etcd://127.0.0.1:2379", "kubernetes:"])
def test_a_store_of_a_later_version(tmp_path: Path, store: str) -> None:
    code, told = fails("--data-dir", str(tmp_path), *ANYWHERE, "--store", store)
    assert code == 1
    assert "not yet in this version; use sqlite:[PATH] or memory:" in told


def test_a_corrupt_database(tmp_path: Path) -> None:
    (tmp_path / "isthmus.db").write_bytes(b"this is no database " * 400)
    code, told = fails("--data-dir", str(tmp_path), *ANYWHERE)
    assert code == 1
    assert str(tmp_path / "isthmus.db") in told
    assert len(told.splitlines()) == 1
    assert (tmp_path / "isthmus.db").read_bytes().startswith(b"this is no database")


def test_a_newer_database(tmp_path: Path) -> None:
    with ServerProcess(tmp_path):
        pass
    with sqlite3.connect(tmp_path / "isthmus.db") as database:
        [version] = database.execute("PRAGMA user_version").fetchone()
        database.execute(f"PRAGMA user_version = {version + 1}")
    database.close()
    code, told = fails("--data-dir", str(tmp_path), *ANYWHERE)
    assert code == 1
    assert str(tmp_path / "isthmus.db") in told
    assert "start the version that wrote it" in told
    assert len(told.splitlines()) == 1


def test_a_spoilt_ca(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY):
        pass
    (tmp_path / "ca" / "ca.key").write_text("spoilt")
    code, told = fails("--data-dir", str(tmp_path), *MEMORY, *ANYWHERE)
    assert code == 1
    assert "ca.key" in told
    assert len(told.splitlines()) == 1


# ------------------------------------------------------------------------------- who may


def attempt(server: ServerProcess, leaf: ca.Leaf, tmp_path: Path) -> str:
    """What a client with this certificate gets: a status, or the name of what went wrong."""
    chain = tmp_path / "client.pem"
    chain.write_bytes(leaf.certificate + leaf.key)
    trust = (server.home / "ca" / "ca.crt").read_text()
    context = ssl.create_default_context(cadata=trust)
    context.load_cert_chain(chain)
    host, _, port = server.endpoints["kube"].rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=host) as channel,
    ):
        try:
            channel.sendall(
                b"GET /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            return channel.recv(12).decode().removeprefix("HTTP/1.1 ") or "closed"
        except ssl.SSLError as fault:
            return fault.reason or "refused"


def test_foreign_and_expired_certificates_are_refused(tmp_path: Path) -> None:
    now = datetime.now(UTC)  # noqa: TID251  # OpenSSL looks at the real clock
    with ServerProcess(tmp_path / "data", *MEMORY) as server:
        authority = ca.load_or_make(tmp_path / "data" / "ca", "x", now=now)
        masters = ["system:masters"]
        good = authority.issue_client("ann", masters, now=now)
        expired = authority.issue_client(
            "ann", masters, now=now - timedelta(minutes=2), lifetime=timedelta(minutes=1)
        )
        foreign = ca.make("other", now=now).issue_client("ann", masters, now=now)
        assert attempt(server, good, tmp_path) == "200"
        assert attempt(server, expired, tmp_path) == "SSLV3_ALERT_CERTIFICATE_EXPIRED"
        assert attempt(server, foreign, tmp_path) == "TLSV1_ALERT_UNKNOWN_CA"
        nobody = authority.issue_client("bob", ["others"], now=now)
        assert attempt(server, nobody, tmp_path) == "403"
        assert server.admin("/ready")[0] == 200


def test_the_version_is_the_packages() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", "version", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["version"] == __version__


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    """A limit on file sizes stands in for a full disk (to coverage too, so it stays out)."""
    environment = {name: value for name, value in os.environ.items() if "COV" not in name}
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 0; exec "$@"', "-",
         sys.executable, "-m", "isthmus", "server", "--data-dir", str(tmp_path), *ANYWHERE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("isthmus: error: cannot write in the data directory")
    assert len(done.stderr.splitlines()) == 1


def test_more_connections_than_open_files(tmp_path: Path) -> None:
    """They are closed unread, the log stays short, and who comes after is served."""
    server = ServerProcess(tmp_path / "x", *MEMORY)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (128, 128))  # before it looks
    with server, ExitStack() as held:
        host, port = server.endpoints["kube"].removeprefix("https://").rsplit(":", 1)
        before = len(server.log)
        for _ in range(300):
            held.enter_context(socket.create_connection((host, int(port))))
        assert server.admin("/live")[0] == 200  # its loop went around: all are accepted
        held.close()
        for _ in range(3):  # and now it has seen that all are closed
            assert server.admin("/live")[0] == 200
        assert server.request("GET", "/api/v1/namespaces")[0] == 200
        assert len(server.log) < before + 1000


def test_ipv6(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY, "--listen", "kube=[::1]:0") as server:
        assert server.endpoints["kube"].startswith("[::1]:")
        assert server.request("GET", "/api/v1/namespaces/default")[0] == 200


def test_readiness_is_told_at_the_api_too(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, *MEMORY) as server:
        connection = server.connect()
        connection.request("GET", "/readyz")
        assert connection.getresponse().read() == b"ok"
        connection.close()


def test_a_name_is_as_good_as_an_address(tmp_path: Path) -> None:
    """The kubeconfig has the address that was bound; the certificate answers to it."""
    with ServerProcess(tmp_path, *MEMORY, "--listen", "kube=localhost:0") as server:
        assert server.request("GET", "/api/v1/namespaces/default")[0] == 200
    at = "127.0.0.9"
    with ServerProcess(tmp_path, *MEMORY, "--listen", f"kube={at}:0") as server:
        assert server.endpoints["kube"].startswith(at)
        assert server.request("GET", "/api/v1/namespaces/default")[0] == 200

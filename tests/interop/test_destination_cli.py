"""`isthmus diagnostics` against a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.compact import Compact
from tests.support.meshapi import MeshApi
from tests.support.server import PATIENCE, ServerProcess

MESH = "isthmus"
FLAGS = (
    "--cluster=east",
    "--cluster-domain=mesh.test",
    "--trust-domain=trust.mesh.test",
    f"--control-plane-namespace={MESH}",
    "--transport-mode=transparent",
)
HTTP2 = {"keep_alive": {"interval": {"seconds": 10}, "timeout": {"seconds": 3}, "while_idle": True}}

TABLE = """\
NAMESPACE   IP          PORT   POD               SERVICE
payments    10.1.0.22   9000   till-0            till.payments

NAMESPACE   IP         PORT   POD               SERVICE
shop        10.1.0.1   8080   cart-6d5f-abcde   cart.shop
"""
CART, TILL = "cart.shop.svc.mesh.test:8080", "till.payments.svc.mesh.test:9000"
MESHED = "db.shop.svc.mesh.test:80"


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Cli:
    """Commands of a user whose kubeconfig is that of the server."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on, ended with the block."""
        with self.start(*words) as process:
            try:
                yield process
            finally:
                process.kill()

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "isthmus", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def all(self, *commands: Sequence[str]) -> list[Said]:
        """What came of them; they run at the same time."""
        running = [self.start(*words) for words in commands]
        return [Said(*_order(one, *one.communicate(timeout=PATIENCE))) for one in running]

    def __call__(self, *words: str) -> Said:
        return self.all(words)[0]


def _order(one: subprocess.Popen[str], out: str, err: str) -> tuple[int, str, str]:
    return one.returncode, out, err


def endpoint(name: str, port: int, pod: str, ip: str, **facts: object) -> list[Compact]:
    namespace, service = name.split("/")
    return [
        {"svc": name, "ports": [port]},
        {"pod": f"{namespace}/{pod}", "ip": ip, **facts},
        {
            "slice": f"{name}-1",
            "svc": service,
            "ports": [port],
            "eps": [{"ip": ip, "pod": pod, "zone": "z1"}],
        },
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("cli")
    (home / "http2.json").write_text(json.dumps(HTTP2))
    with ServerProcess(home, *FLAGS, f"--meshed-http2-params={home / 'http2.json'}") as server:
        api = MeshApi(server, MESH)
        api.apply(
            *endpoint("shop/cart", 8080, "cart-6d5f-abcde", "10.1.0.1"),
            *endpoint("payments/till", 9000, "till-0", "10.1.0.22"),
            *endpoint("shop/db", 80, "db-0", "10.1.0.3", meshed=True, sa="trolley"),
            {"svc": "shop/empty", "ports": [80]},
        )
        api.close()
        yield server


@pytest.fixture
def cli(server: ServerProcess) -> Cli:
    return Cli(server.kubeconfig)


def test_endpoints(cli: Cli, server: ServerProcess) -> None:
    """Each gathers for five seconds, so all at once."""
    at = server.endpoints["destination"]
    ep = ("diagnostics", "endpoints")
    table, as_json, alias, refused, empty, none, direct = cli.all(
        (*ep, CART, TILL),
        (*ep, "-o", "json", MESHED),
        ("dg", "--context=east", "ep", "--destination-pod=x", "-L", MESH, CART),
        (*ep, "foo"),
        (*ep, "empty.shop.svc.mesh.test:80"),
        (*ep, "-o", "json", "empty.shop.svc.mesh.test:80"),
        (*ep, "--api-addr", at, "--kubeconfig", "/nowhere", "--token", '{"ns":"shop"}', CART),
    )
    assert table == Said(0, TABLE, "")
    assert as_json.code == 0, as_json.err
    assert json.loads(as_json.out) == [
        {
            "namespace": "shop",
            "ip": "10.1.0.3",
            "port": 80,
            "pod": "db-0",
            "service": "db.shop",
            "weight": 10000,
            "http2": HTTP2,
            "labels": {
                "control_plane_ns": MESH,
                "pod": "db-0",
                "serviceaccount": "trolley",
                "zone": "z1",
                "zone_locality": "unknown",
            },
        }
    ]
    assert '[\n  {\n    "namespace": "shop",\n    "ip": "10.1.0.3",' in as_json.out
    assert alias.out.splitlines()[1].split() == [
        "shop",
        "10.1.0.1",
        "8080",
        "cart-6d5f-abcde",
        "cart.shop",
    ]
    assert refused == Said(1, "", "Destination API error: Invalid authority: foo\n")
    assert empty == Said(0, "", "No endpoints found.\n")
    assert none == Said(0, "[]\n", "")
    assert direct.out == alias.out


def test_profile(cli: Cli) -> None:
    service, single, table, missing, refused = cli.all(
        ("diagnostics", "profile", CART),
        ("dg", "profile", "10.1.0.3:80"),
        ("dg", "profile", "-o", "table", "10.1.0.3:80"),
        ("dg", "profile", "ghost.shop.svc.mesh.test:80"),
        ("dg", "profile", "foo"),
    )
    assert json.loads(service.out) == {
        "fully_qualified_name": "cart.shop.svc.mesh.test",
        "retry_budget": {"retry_ratio": 0.2, "min_retries_per_second": 10, "ttl": {"seconds": 10}},
        "parent_ref": {
            "Kind": {
                "Resource": {
                    "group": "core",
                    "kind": "Service",
                    "name": "cart",
                    "namespace": "shop",
                    "port": 8080,
                }
            }
        },
    }
    endpoint = json.loads(single.out)["endpoint"]
    assert endpoint["addr"] == {"ip": {"Ip": {"Ipv4": 0x0A010003}}, "port": 80}
    identity = "trolley.shop.serviceaccount.identity.isthmus.trust.mesh.test"
    assert endpoint["tls_identity"]["Strategy"] == {"DnsLikeIdentity": {"name": identity}}
    assert endpoint["protocol_hint"] == {"Protocol": {"H2": {}}}
    assert "FIELD          VALUE" in table.out
    assert missing == Said(
        1,
        "",
        "Destination API error: rpc error: code = NotFound desc = Service ghost.shop not found\n",
    )
    assert refused.code == 1
    assert refused.err.startswith(
        "Destination API error: rpc error: code = InvalidArgument desc = "
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-o", "xml", CART), "--output currently only supports table and json"),
        (("--context", "west", CART), "there is no context 'west' in"),
        (("--kubeconfig", "/nowhere", CART), "there is no kubeconfig /nowhere"),
        (("-L", "elsewhere", CART), "no ConfigMap isthmus-endpoints in namespace 'elsewhere'"),
        (("--api-addr", "nowhere", CART), "--api-addr 'nowhere' is not HOST:PORT"),
    ],
)
def test_what_cannot_be_asked(words: tuple[str, ...], says: str, cli: Cli) -> None:
    code, out, err = cli("diagnostics", "endpoints", *words)
    assert (code, out) == (1, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_server_that_is_not_there(cli: Cli) -> None:
    code, _, err = cli("dg", "ep", "--api-addr", "127.0.0.1:1", CART)
    assert code == 1
    assert err.startswith("Destination API error: ")


def line(process: subprocess.Popen[str]) -> Any:  # noqa: ANN401 - JSON
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_watch_tells_changes_and_outlives_the_server(tmp_path: Path) -> None:
    """It finds the server again by its kubeconfig, wherever that listens now."""
    path = "web.shop.svc.mesh.test:80"
    web = endpoint("shop/web", 80, "web-0", "10.1.0.9")
    with ServerProcess(tmp_path, *FLAGS) as first:
        cli, api = Cli(first.kubeconfig), MeshApi(first, MESH)
        api.apply(*web)
        while cli("dg", "profile", path).code:
            pass
        with cli.running("dg", "ep", "--watch", "-o", "json", path) as watch:
            told = line(watch)
            assert told["authority"] == path
            assert [row["ip"] for row in told["add"]] == ["10.1.0.9"]
            api.apply({**web[2], "eps": []})
            assert line(watch) == {"authority": path, "remove": ["10.1.0.9:80"]}
            api.apply(web[2])
            assert [row["pod"] for row in line(watch)["add"]] == ["web-0"]
            api.close()
            first.stop(signal.SIGKILL)
            with ServerProcess(tmp_path, *FLAGS):
                assert [row["ip"] for row in line(watch)["add"]] == ["10.1.0.9"]
                assert "asking again" in interrupted(watch)


def interrupted(process: subprocess.Popen[str]) -> str:
    """What a command said on stderr, when Ctrl-C ended it."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    return err


def test_watch_for_people(cli: Cli) -> None:
    with cli.running("dg", "ep", "--watch", MESHED) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == (
            f"{MESHED}  + 10.1.0.3:80  db.shop  pod=db-0 weight=10000"
            " identity=trolley.shop.serviceaccount.identity.isthmus.trust.mesh.test hint=h2\n"
        )
        assert interrupted(watch).strip() == ""
    with cli.running("dg", "profile", "--watch", "-o", "table", MESHED) as watch:
        assert watch.stdout is not None
        line = watch.stdout.readline()
        assert line.startswith('fully_qualified_name="db.shop.svc.mesh.test" ')
        assert interrupted(watch).strip() == ""


def test_watch_of_nothing_is_refused(cli: Cli) -> None:
    code, _, err = cli("dg", "ep", "--watch", "ghost.shop.svc.mesh.test:80")
    assert (code, err) == (1, "Destination API error: Service ghost.shop not found\n")


@pytest.mark.parametrize("words", [("dg",), ("dg", "ep", "-h"), ("diagnostics", "profile", "-h")])
def test_help_teaches_by_example(words: tuple[str, ...], cli: Cli) -> None:
    said = cli(*words)
    assert "Examples:\n    isthmus d" in said.out + said.err

"""Cluster DNS of a real server: objects through the API, names through dnspython's resolver."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dns import message, name, query, resolver, reversename

from tests.support.meshapi import MeshApi
from tests.support.server import ServerProcess

HOSTS = ("--dns-hosts", "Color.test=198.51.100.2", "--dns-hosts", "color.test=2001:db8::2")
SERVICE = {
    "svc": "shop/cart",
    "ip": "10.96.0.77",
    "ports": [{"port": 80, "name": "http"}],
}
HEADLESS = {"svc": "shop/db", "ip": "None", "ports": [{"port": 5432, "name": "pg"}]}
PART = {
    "slice": "shop/db-1",
    "svc": "db",
    "ports": [{"name": "pg", "port": 5432}],
    "eps": [{"ip": f"10.1.{n // 200}.{n % 200 + 1}", "host": f"db-{n}"} for n in range(300)],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("dns"), "--store", "memory:", *HOSTS) as made:
        api = MeshApi(made, "isthmus")
        api.apply(SERVICE, HEADLESS, PART)
        while not _a(stub(made), "db-7.db.shop.svc.cluster.local."):
            pass  # a moment until the tables have it; the test's own time limit ends it
        yield made
        api.close()


@pytest.fixture
def names(server: ServerProcess) -> resolver.Resolver:
    return stub(server)


def stub(server: ServerProcess) -> resolver.Resolver:
    """A stub resolver as a pod of the namespace `shop` has it."""
    host, _, port = server.endpoints["dns"].rpartition(":")
    made = resolver.Resolver(configure=False)
    made.nameservers = [host]
    made.port = int(port)
    made.search = [
        name.from_text(each)
        for each in ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local")
    ]
    made.ndots = 5
    made.lifetime = 60
    return made


def texts(answer: resolver.Answer) -> list[str]:
    return sorted(each.to_text() for each in answer)


@pytest.mark.parametrize(
    "asked", ["cart", "cart.shop", "cart.shop.svc", "cart.shop.svc.cluster.local."]
)
def test_a_service_by_any_of_its_names(names: resolver.Resolver, asked: str) -> None:
    assert texts(names.resolve(asked, search=True)) == ["10.96.0.77"]


def test_what_is_not_there(names: resolver.Resolver) -> None:
    with pytest.raises(resolver.NXDOMAIN):
        names.resolve("none", search=True)
    with pytest.raises(resolver.NoAnswer):
        names.resolve("cart", "AAAA", search=True)
    with pytest.raises(resolver.NoNameservers):
        names.resolve("example.org.")


def test_a_large_headless_service_over_udp_and_tcp(names: resolver.Resolver) -> None:
    assert len(texts(names.resolve("db", search=True))) == 300
    assert texts(names.resolve("db-7.db", search=True)) == ["10.1.0.8"]
    assert len(texts(names.resolve("_pg._tcp.db", "SRV", search=True, tcp=True))) == 300


def test_an_address_has_a_name(names: resolver.Resolver) -> None:
    found = names.resolve(reversename.from_address("10.96.0.77"), "PTR")
    assert texts(found) == ["cart.shop.svc.cluster.local."]


def test_the_operators_hosts(names: resolver.Resolver) -> None:
    assert texts(names.resolve("color.test.")) == ["198.51.100.2"]
    assert texts(names.resolve("COLOR.test.", "AAAA")) == ["2001:db8::2"]


def test_names_follow_objects(server: ServerProcess, names: resolver.Resolver) -> None:
    api = MeshApi(server, "isthmus")
    try:
        api.apply({"svc": "late/new", "ip": "10.96.0.78", "ports": [80]})
        asked = "new.late.svc.cluster.local."
        while not (found := _a(names, asked)):  # the test's own time limit ends it
            pass
        assert found == ["10.96.0.78"]
        api.delete("svc late/new")
        while _a(names, asked):
            pass
    finally:
        api.close()


def _a(names: resolver.Resolver, asked: str) -> list[str]:
    try:
        return texts(names.resolve(asked))
    except resolver.NXDOMAIN:
        return []


def test_a_flood_of_noise_and_of_unknown_names(server: ServerProcess) -> None:
    """The server answers on, and keeps nothing of it."""
    host, _, port = server.endpoints["dns"].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(3000):
            unknown = f"n{number}.shop.svc.cluster.local"
            sender.sendto(message.make_query(unknown, "A").to_wire(), (host, int(port)))
            sender.sendto(bytes([number % 256]) * (number % 1400), (host, int(port)))
    asked = message.make_query("cart.shop.svc.cluster.local", "A")
    answer = query.tcp(asked, host, port=int(port), timeout=60)
    assert answer.answer
    metrics = server.admin("/metrics")[1].splitlines()
    (cells,) = (line for line in metrics if line.startswith("isthmus_engine_cells "))
    assert float(cells.split()[1]) < 20_000
    assert any(line.startswith("isthmus_dns_answers_total{") for line in metrics)


def test_a_host_that_is_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", "server", "--data-dir", str(tmp_path),
         "--dns-hosts", "color=here"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--dns-hosts: 'here' does not appear to be an IPv4 or IPv6 address" in done.stderr

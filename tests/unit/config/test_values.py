from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest

from isthmus.config import EtcdStore, KubernetesStore, LogFormat, MemoryStore, SqliteStore, values
from isthmus.config.stores import StoreConfig, store
from isthmus.config.values import HostPort, PortRange


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (values.cluster_name, "k3d-face", "k3d-face"),
        (values.cluster_name, "dc_1", "dc_1"),
        (values.context_name, "admin@kind-east:6443/x", "admin@kind-east:6443/x"),
        (values.label, "a" * 63, "a" * 63),
        (values.dns_name, "cluster.local.", "cluster.local"),
        (values.network, "fd00::/8", ip_network("fd00::/8")),
        (values.port_range, "443", PortRange(443, 443)),
        (values.port_range, "1-65535", PortRange(1, 65535)),
        (values.host_port, "localhost:0", HostPort("localhost", 0)),
        (values.host_port, "[fd00::1]:80", HostPort("fd00::1", 80)),
        (values.host_address, "Color.=198.51.100.1", values.HostAddress("color", "198.51.100.1")),
        (values.switch, "ON", True),
        (values.switch, "0", False),
    ],
)
def test_what_is_read(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (values.cluster_name, ""),
        (values.cluster_name, "a" * 64),
        (values.cluster_name, "-a"),
        (values.cluster_name, "a\n"),
        (values.context_name, "../x"),
        (values.label, "a_b"),
        (values.label, "A"),
        (values.dns_name, "a..b"),
        (values.dns_name, "."),
        (values.dns_name, ".".join(["a" * 60] * 5)),
        (values.network, "10.0.0.0/33"),
        (values.network, "10.0.0.0"),
        (values.port_range, "0"),
        (values.port_range, "-5"),
        (values.port_range, "9-1"),
        (values.port_range, "１２"),  # noqa: RUF001  # digits that are not ASCII
        (values.port_range, "65536"),
        (values.host_port, "6443"),
        (values.host_port, ":6443"),
        (values.host_port, "::1:6443"),
        (values.host_port, "[::g]:1"),
        (values.host_port, "a b:1"),
        (values.switch, ""),
        (lambda text: values.choice(LogFormat, text), "xml"),
        (lambda text: values.path(text, None), "~"),
        (lambda text: values.path(text, "/home/ada"), ""),
    ],
)
def test_what_is_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(text)


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(HostPort("::1", 80)) == "[::1]:80"
    assert str(HostPort("localhost", 80)) == "localhost:80"


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("memory:", MemoryStore()),
        ("sqlite:", SqliteStore(Path("/data/isthmus.db"))),
        ("sqlite:/x/y.db", SqliteStore(Path("/x/y.db"))),
        ("sqlite:~/y.db", SqliteStore(Path("/home/ada/y.db"))),
        ("etcd://a:2379", EtcdStore((HostPort("a", 2379),), "/isthmus/east")),
        ("etcd://a:1,[::1]:2/p/q/", EtcdStore((HostPort("a", 1), HostPort("::1", 2)), "/p/q")),
        ("kubernetes:", KubernetesStore(None)),
        ("kubernetes:kind-east", KubernetesStore("kind-east")),
    ],
)
def test_store_urls(url: str, value: StoreConfig) -> None:
    assert store(url, cluster="east", data_dir=Path("/data"), home="/home/ada") == value


@pytest.mark.parametrize(
    "url",
    ["", "memory", "memory:x", "redis:", "etcd:a:1", "etcd://", "etcd://a", "etcd://a:0",
     "etcd://a:1/p q", "etcd://a:1,/p", "kubernetes:" + "a" * 300],
)  # fmt: skip
def test_store_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        store(url, cluster="east", data_dir=Path("/data"), home=None)

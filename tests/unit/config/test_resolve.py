from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from isthmus.config import (
    SETTINGS,
    InboundPolicy,
    Listener,
    LogFormat,
    ServerConfig,
    SqliteStore,
    TransportMode,
    config_file,
    resolve,
)
from isthmus.config.sources import Flags
from isthmus.config.values import HostPort, PortRange
from isthmus.errors import Invalid

HOME = {"HOME": "/home/ada"}


def faults_of(
    flags: Flags | None = None, environ: dict[str, str] | None = None, file: str | None = None
) -> list[str]:
    """The faults that `resolve` tells, one line each."""
    with pytest.raises(Invalid) as caught:
        resolve(
            flags or {},
            HOME | (environ or {}),
            None if file is None else file.encode(),
            file_name="east.toml",
        )
    lines = [f"{cause.path}: {cause.message}" for cause in caught.value.causes]
    assert str(caught.value) == "; ".join(lines)
    assert "\n" not in str(caught.value)
    return lines


def test_the_defaults() -> None:
    assert resolve({}, HOME) == ServerConfig(
        cluster="default",
        context_name="default",
        data_dir=Path("/home/ada/.local/share/isthmus/default"),
        store=SqliteStore(Path("/home/ada/.local/share/isthmus/default/isthmus.db")),
        listeners=(
            Listener("kube", HostPort("127.0.0.1", 6443)),
            Listener("destination", HostPort("127.0.0.1", 8086)),
            Listener("policy", HostPort("127.0.0.1", 8090)),
            Listener("identity", HostPort("127.0.0.1", 8080)),
            Listener("xds", HostPort("127.0.0.1", 15010)),
            Listener("catalog", HostPort("127.0.0.1", 8500)),
            Listener("dns", HostPort("127.0.0.1", 8600)),
            Listener("admin", HostPort("127.0.0.1", 9990)),
        ),
        cluster_domain="cluster.local",
        dns_hosts=(),
        trust_domain="cluster.local",
        control_plane_namespace="linkerd",
        cluster_networks=tuple(
            ip_network(text)
            for text in (
                "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8",
            )
        ),
        service_cidr=ip_network("10.96.0.0/16"),
        default_opaque_ports=tuple(
            PortRange(port, port)
            for port in (25, 443, 587, 3306, 4444, 5432, 6379, 9300, 11211)
        ),
        default_inbound_policy=InboundPolicy.ALL_UNAUTHENTICATED,
        trust_anchors=None,
        issuer_cert=None,
        issuer_key=None,
        ipv6=False,
        h2_upgrade=True,
        transport_mode=TransportMode.TRANSPORT_HEADER,
        zone_weights=False,
        meshed_http2_params=None,
        log_format=LogFormat.CONSOLE,
    )  # fmt: skip


def test_every_setting_is_a_field_and_every_field_a_setting() -> None:
    names = {setting.name for setting in SETTINGS} - {"listen"} | {"listeners"}
    assert names == set(ServerConfig.__struct_fields__)


def test_flags_beat_environment_beats_file_beats_default() -> None:
    file = b'cluster = "f"\ncluster-domain = "f.example"\ntrust-domain = "f.example"\n'
    environ = {"ISTHMUS_CLUSTER": "e", "ISTHMUS_CLUSTER_DOMAIN": "e.example"}
    config = resolve({"cluster": "c", "log_format": None}, HOME | environ, file)
    assert (config.cluster, config.cluster_domain, config.trust_domain, config.log_format) == (
        "c", "e.example", "f.example", LogFormat.CONSOLE,
    )  # fmt: skip


def test_an_empty_variable_counts_as_not_set() -> None:
    assert resolve({}, HOME | {"ISTHMUS_CLUSTER": ""}, b'cluster = "f"').cluster == "f"


def test_the_variables_of_others_are_left_alone() -> None:
    assert resolve({}, HOME | {"ISTHMUS_AGENT_TOKEN": "x"}).cluster == "default"


def test_each_listener_is_decided_by_the_strongest_source_that_names_it() -> None:
    config = resolve(
        {"listen": ("kube=127.0.0.1:1", "admin=off", "kube=[::1]:2")},
        HOME | {"ISTHMUS_LISTEN": "kube=off, dns=off ,admin=127.0.0.1:3,xds=0.0.0.0:0"},
        b'[listen]\nxds = "127.0.0.1:4"\ncatalog = false\nidentity = "localhost:5"',
    )
    assert [f"{one.name} {one.at}" for one in config.listeners] == [
        "kube [::1]:2",
        "destination 127.0.0.1:8086",
        "policy 127.0.0.1:8090",
        "identity localhost:5",
        "xds 0.0.0.0:0",
    ]
    assert config.listener("kube") == HostPort("::1", 2)
    assert config.listener("admin") is None


def test_listeners_in_a_file_may_be_an_array_as_on_the_command_line() -> None:
    config = resolve({}, HOME, b'listen = ["kube=off", "xds=127.0.0.1:7"]')
    assert config.listener("kube") is None
    assert config.listener("xds") == HostPort("127.0.0.1", 7)


def test_any_number_of_listeners_may_take_a_free_port_but_no_two_the_same() -> None:
    resolve({"listen": ("kube=127.0.0.1:0", "admin=127.0.0.1:0")}, HOME)
    assert faults_of({"listen": ("admin=127.0.0.1:6443",)}) == [
        "--listen: kube and admin both want 127.0.0.1:6443"
    ]


@pytest.mark.parametrize(
    ("flags", "environ", "file"),
    [
        ({"default_opaque_ports": "25, 4000-4999,25"}, {}, None),
        ({}, {"ISTHMUS_DEFAULT_OPAQUE_PORTS": "25,4000-4999"}, None),
        ({}, {}, b'default-opaque-ports = [25, "4000-4999"]'),
    ],
)
def test_a_list_from_any_source(flags: Flags, environ: dict[str, str], file: bytes | None) -> None:
    config = resolve(flags, HOME | environ, file)
    assert config.default_opaque_ports == (PortRange(25, 25), PortRange(4000, 4999))


def test_a_list_may_be_given_as_empty() -> None:
    assert resolve({"default_opaque_ports": ""}, HOME).default_opaque_ports == ()
    assert resolve({}, HOME, b"default-opaque-ports = []").default_opaque_ports == ()


def test_switches_from_any_source() -> None:
    assert not resolve({"h2_upgrade": False}, HOME).h2_upgrade
    assert not resolve({}, HOME | {"ISTHMUS_H2_UPGRADE": "No"}).h2_upgrade
    assert resolve({}, HOME, b"ipv6 = true").ipv6


def test_paths_know_the_home_and_what_follows_from_the_cluster() -> None:
    config = resolve({"cluster": "east", "context_name": "kind-east"}, HOME)
    assert config.data_dir == Path("/home/ada/.local/share/isthmus/east")
    assert config.context_name == "kind-east"
    assert resolve({"data_dir": "~/here"}, HOME).data_dir == Path("/home/ada/here")
    assert resolve({"data_dir": "/d"}, {}).store == SqliteStore(Path("/d/isthmus.db"))


def test_without_a_home_the_data_dir_must_be_given() -> None:
    with pytest.raises(Invalid, match="^--data-dir: must be given, since HOME is not set$"):
        resolve({}, {})
    with pytest.raises(Invalid, match="^--data-dir: '~/x' needs HOME, which is not set$"):
        resolve({"data_dir": "~/x"}, {})


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    assert faults_of(
        {"cluster": "East!", "listen": ("kube=127.0.0.1:99999", "tea=127.0.0.1:1", "dns")},
        {"ISTHMUS_SERVICE_CIDR": "10.96.0.1/16", "ISTHMUS_IPV6": "perhaps"},
        'cluster-networks = ["10.0.0.0/8", "x"]\nlogformat = "json"\nstore = "redis:"\n',
    ) == [
        "east.toml: logformat: is no setting",
        "--cluster: 'East!' is not a cluster name (a-z, 0-9, - and _, at most 63)",
        (
            "east.toml: store: 'redis:' is not a store: memory:, sqlite:[PATH], "
            "etcd://HOST:PORT[,HOST:PORT][/PREFIX] or kubernetes:[CONTEXT]"
        ),
        "--listen: '99999' is not a port from 0 to 65535",
        (
            "--listen: 'tea' is not a listener "
            "(kube, destination, policy, identity, xds, catalog, dns, admin)"
        ),
        "--listen: 'dns' is neither NAME=HOST:PORT nor NAME=off",
        "east.toml: cluster-networks: 'x' is not a network; write it as ADDRESS/BITS",
        "ISTHMUS_SERVICE_CIDR: 10.96.0.1/16 has host bits set",
        "ISTHMUS_IPV6: 'perhaps' is neither true nor false",
    ]


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ('"a\\nb" = 1', r"east.toml: 'a\nb': is no setting"),
        ("k" * 100 + " = 1", f"east.toml: {'k' * 64}...: is no setting"),
        ("cluster = ", "east.toml: is not TOML: Invalid value (at end of document)"),
        ("x" * (1 << 20 | 1), "east.toml: is larger than 1048576 bytes"),
        ("a = " + "[" * 5000, "east.toml: is nested too deeply"),
        (
            "[cluster]\nname = 1",
            "east.toml: cluster: must be a text, or where several may stand an array of texts",
        ),
        (
            "default-opaque-ports = [[25]]",
            ("east.toml: default-opaque-ports: "
            "must be a text, or where several may stand an array of texts"),
        ),
        ("service-cidr = 10", ("east.toml: service-cidr: '10' is not a network; "
         "write it as ADDRESS/BITS")),
        ('cluster = "a\\u001bb"', "east.toml: cluster: holds a control character"),
        (f'cluster = "{"a" * 5000}"', "east.toml: cluster: is too long"),
        (f"default-opaque-ports = {[1] * 1025}", "east.toml: default-opaque-ports: is too long"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_in_one_line(file: str, fault: str) -> None:
    assert faults_of(file=file) == [fault]


def test_a_file_that_is_no_text() -> None:
    with pytest.raises(Invalid, match=r"^the config file: is not UTF-8 \(byte 2\)$"):
        resolve({}, HOME, b"a \xff")


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"issuer_cert", "trust_anchors"}, "--issuer-cert: needs --issuer-key too"),
        ({"issuer_key"}, "--issuer-key: needs --issuer-cert too"),
        ({"issuer_cert", "issuer_key"}, "--issuer-cert: needs --trust-anchors too"),
        ({"trust_anchors"}, "--trust-anchors: needs --issuer-cert and --issuer-key too"),
    ],
)
def test_an_issuer_comes_whole(given: set[str], fault: str) -> None:
    assert faults_of({name: f"/{name}.pem" for name in given}) == [fault]


def test_a_whole_issuer() -> None:
    config = resolve(
        {"trust_anchors": "/a", "issuer_cert": "/c", "issuer_key": "~/k"}, HOME
    )  # fmt: skip
    assert (config.trust_anchors, config.issuer_cert, config.issuer_key) == (
        Path("/a"), Path("/c"), Path("/home/ada/k"),
    )  # fmt: skip


def test_which_file_to_read() -> None:
    environ = HOME | {"ISTHMUS_CONFIG": "/e.toml"}
    assert config_file({}, HOME) is None
    assert config_file({}, environ) == Path("/e.toml")
    assert config_file({"config": "~/f.toml"}, environ) == Path("/home/ada/f.toml")
    with pytest.raises(Invalid, match="^--config: '~/f' needs HOME"):
        config_file({"config": "~/f"}, {})

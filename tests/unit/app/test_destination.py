"""What the operator's flags mean for the mesh, and the calls of the Destination service."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.app.destination import mesh_settings, service, whole
from isthmus.app.http2 import LARGEST, parse_params, read_params
from isthmus.calls import Refusal
from isthmus.config import resolve
from isthmus.engine import Database
from isthmus.errors import UserFault
from isthmus.mesh.settings import Http2Params, MeshSettings


def settings(**flags: str) -> MeshSettings:
    return mesh_settings(resolve(flags, {"HOME": "/nowhere"}, None, file_name="none")).row


def test_flags_become_the_row_of_settings() -> None:
    said = settings(
        cluster="east",
        cluster_domain="mesh.test",
        trust_domain="trust.test",
        control_plane_namespace="isthmus",
        default_opaque_ports="25,4000-4003",
        transport_mode="transparent",
    )
    assert said.cluster == "east"
    assert said.default_opaque_ports.ranges == ((25, 25), (4000, 4003))
    assert not said.transport_header
    assert (said.cluster_domain, said.trust_domain) == ("mesh.test", "trust.test")
    assert said.control_plane_namespace == "isthmus"
    assert said.meshed_http2 is None


def test_the_modes_default_to_what_proxies_expect_today() -> None:
    said = settings()
    assert said.transport_header
    assert said.h2_upgrade
    assert not said.ipv6


def test_http2_params_are_read_as_charts_write_them() -> None:
    text = b"""{"keep_alive": {"interval": {"seconds": 10}, "timeout": {"seconds": 3,
        "nanos": 500000000}, "while_idle": true},
        "flow_control": {"initial_connection_window_size": 1048576, "initial_stream_window_size":
        65536}}"""
    assert parse_params(text) == Http2Params(
        ping_interval=10_000,
        ping_timeout=3_500,
        ping_while_idle=True,
        connection_window=1_048_576,
        stream_window=65_536,
    )
    assert parse_params(b"{}") == Http2Params()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"keepAlive": {}}',
        b'{"keep_alive": {"interval": "10s"}}',
        b'{"keep_alive": {"interval": {"seconds": -1}}}',
        b'{"flow_control": {"initial_stream_window_size": 4294967296}}',
        b" " * (LARGEST + 1),
    ],
)
def test_a_file_that_says_something_else_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "http2.json"
    path.write_bytes(text)
    with pytest.raises(UserFault, match=r"--meshed-http2-params .*http2\.json: "):
        read_params(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="cannot read --meshed-http2-params"):
        read_params(tmp_path / "none")


def test_a_fault_of_the_dialect_is_a_refusal_of_the_server() -> None:
    for method in service().values():
        found = method.question(Database().read, b"\xff")
        assert isinstance(found, Refusal)
        assert found.status == "INVALID_ARGUMENT"


def test_an_equal_profile_is_not_told_again() -> None:
    assert whole(None, b"") == (b"",)
    assert whole(b"x", b"x") == ()
    assert whole(b"x", b"y") == (b"y",)

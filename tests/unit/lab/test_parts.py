"""Manifests, state, trust, relays, endpoints of load balancers."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from isthmus.aio import SystemClock
from isthmus.errors import Unavailable, UserFault
from isthmus.lab.balancers import Endpoints
from isthmus.lab.manifests import documents
from isthmus.lab.network import broker
from isthmus.lab.network.broker import Outside
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.network.relay import DatagramRelay, Relay, to
from isthmus.lab.state import State
from isthmus.lab.topology import Trust
from isthmus.lab.trust import write_trust

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_manifests_are_split_into_objects() -> None:
    body = b"""# a comment
---
kind: A
text: |
  ---
  inner
--- # the second
kind: List
items: [{kind: B}, {kind: C}]
---
# nothing
---
{"kind": "D"}
"""
    assert [each["kind"] for each in documents(body, "x.yaml")] == ["A", "B", "C", "D"]
    with pytest.raises(UserFault, match=r"^x\.yaml: "):
        list(documents(b"kind: [", "x.yaml"))


def piece(name: str, *endpoints: tuple[str, bool | None], port: int = 8080) -> dict[str, object]:
    return {
        "metadata": {
            "uid": name, "namespace": "ns", "labels": {"kubernetes.io/service-name": "s"},
        },
        "ports": [{"name": "http", "port": port}],
        "endpoints": [
            {"addresses": [ip], "conditions": {} if ready is None else {"ready": ready}}
            for ip, ready in endpoints
        ],
    }  # fmt: skip


def test_ready_endpoints_take_turns() -> None:
    known = Endpoints()
    known.upsert(piece("a", ("10.0.0.1", True), ("10.0.0.2", False), ("10.0.0.3", None)))
    known.upsert(piece("b", ("10.0.0.4", True), port=9090))
    first = {known.ready(("ns", "s"), "http")[0] for _ in range(3)}
    assert first == {("10.0.0.1", 8080), ("10.0.0.3", 8080), ("10.0.0.4", 9090)}
    assert known.ready(("ns", "s"), "other") == []
    known.gone(piece("a"))
    assert known.ready(("ns", "s"), "http") == [("10.0.0.4", 9090)]


# -------------------------------------------------------------------------------------------- state


def test_one_lab_per_folder_and_nothing_left(tmp_path: Path) -> None:
    state = State(tmp_path / "lab")
    with state.hold("x") as left:
        assert left is False
        assert state.running
        assert state.pid == os.getpid()
        with pytest.raises(UserFault, match=f"a lab runs already in .*pid {os.getpid()}"):
            state.hold("y").__enter__()
        (state.folder / "trust").mkdir()
        (state.folder / "mine").touch()
        state.clear()
    assert State(tmp_path / "lab").running is False
    assert [each.name for each in state.folder.iterdir()] == ["mine"]


def test_what_a_crash_left_is_removed_and_told(tmp_path: Path) -> None:
    state = State(tmp_path)
    (tmp_path / "clusters").mkdir()
    with state.hold("x") as left:
        assert left is True
        assert not (tmp_path / "clusters").exists()
    assert state.end(1.0) is True
    assert state.end(1.0) is False


# -------------------------------------------------------------------------------------------- trust


@pytest.mark.parametrize(("mode", "anchors"), [(Trust.SHARED, 1), (Trust.SEPARATE, 2)])
def test_issuers_hang_on_one_anchor_or_each_on_its_own(
    tmp_path: Path, mode: Trust, anchors: int
) -> None:
    names = dict.fromkeys(("east", "west"), "identity.linkerd.cluster.local")
    found = write_trust(tmp_path, names, mode, NOW)
    assert len({files.anchors.read_bytes() for files in found.values()}) == anchors
    for files in found.values():
        anchor = x509.load_pem_x509_certificate(files.anchors.read_bytes())
        issuer = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        issuer.verify_directly_issued_by(anchor)
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
        assert (constraints.ca, constraints.path_length) == (True, 0)
        assert files.key.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------------------- relays and listeners


@pytest.fixture
def here() -> Namespace:
    return Namespace.current("here")


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read())  # until the client has said its last
    await writer.drain()
    writer.close()


def _may_enter() -> bool:
    try:
        with Namespace.current("here").entered():
            return True
    except PermissionError:
        return False


needs_power = pytest.mark.skipif(not _may_enter(), reason="entering namespaces needs CAP_SYS_ADMIN")


@needs_power
async def test_a_relay_carries_both_ways_and_passes_ends_on(here: Namespace) -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    listening = here.listen("127.0.0.1", 0)
    at = listening.getsockname()[1]
    async with server, asyncio.TaskGroup() as group:
        relay = group.create_task(
            Relay(listening, to(here, "127.0.0.1", port), SystemClock()).run()
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", at)
        data = b"x" * 1_000_000
        writer.write(data)
        writer.write_eof()
        assert await reader.read() == data
        writer.close()
        await writer.wait_closed()
        relay.cancel()
    assert listening.fileno() == -1


@needs_power
async def test_a_relay_to_nobody_hangs_up(here: Namespace) -> None:
    nobody = here.listen("127.0.0.1", 0)
    port = nobody.getsockname()[1]
    nobody.close()
    listening = here.listen("127.0.0.1", 0)
    at = listening.getsockname()[1]
    async with asyncio.TaskGroup() as group:
        relay = group.create_task(
            Relay(listening, to(here, "127.0.0.1", port), SystemClock()).run()
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", at)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        relay.cancel()


@needs_power
async def test_datagrams_find_their_way_back(here: Namespace) -> None:
    loop = asyncio.get_running_loop()
    server = here.datagrams("127.0.0.1", 0)
    listening = here.datagrams("127.0.0.1", 0)
    at = listening.getsockname()
    clients = [here.datagrams("127.0.0.1", 0) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        relay = group.create_task(DatagramRelay(listening, here, server.getsockname()).run())
        for number, client in enumerate(clients):
            await loop.sock_sendto(client, b"ask %d" % number, at)
            data, back = await loop.sock_recvfrom(server, 100)
            await loop.sock_sendto(server, data.upper(), back)
            assert await loop.sock_recv(client, 100) == b"ASK %d" % number
        relay.cancel()
    for each in (server, *clients):
        each.close()


async def test_listeners_are_handed_in_from_outside() -> None:
    ours, theirs = broker.pair()
    stopped = asyncio.Event()
    outside = Outside(theirs, stopped.set)
    outside.start()

    async def answered(count: int) -> None:
        for _ in range(count):
            got = await asyncio.get_running_loop().run_in_executor(None, broker.receive, ours)
            assert got is not None
            broker.answer(ours, got[0])

    async with asyncio.TaskGroup() as group:
        group.create_task(answered(3))
        first = await outside.listen("127.0.0.1", 0)
        port = first.getsockname()[1]
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port} cannot be had: Address already"):
            await outside.listen("127.0.0.1", port)
        other = await outside.listen("127.0.0.1", port, other=True)
        assert other.getsockname()[1] != port
        assert other.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    ours.close()
    await stopped.wait()
    for each in (first, other, theirs):
        each.close()

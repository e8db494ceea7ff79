"""`isthmus agent`: a host joins, keeps its own certificate fresh, and runs its workloads' proxies.

The token is believed for what it pins: the hash of an anchor. Whatever answers at its address first
tells its anchors over an unverified connection; only those with the right hash are kept, and only
over a connection verified with them is the token's secret ever said.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from pathlib import Path
from random import SystemRandom
from typing import Final

import msgspec
import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.agent import Agent, Place, Seat, Wires, Workload, binary
from isthmus.agent.agent import Telling
from isthmus.agent.client import IdentityClient
from isthmus.agent.contract import Dial, Here, Means
from isthmus.agent.credential import Credential, checked
from isthmus.agent.process import MARK
from isthmus.agent.tunnel import Shown, Tunnel
from isthmus.aio import Clock, Latest, SystemClock, deadline
from isthmus.app import logs
from isthmus.app.sidecars import envoy_bootstrap
from isthmus.ca import (
    Invitation,
    Leaf,
    Realm,
    chains,
    join,
    private_directory,
    request,
    tls,
    write_atomic,
)  # fmt: skip
from isthmus.config import LogFormat
from isthmus.config.values import HostPort
from isthmus.errors import IsthmusError, UserFault

PATIENCE: Final = 30.0
PAUSE: Final = 0.1
"""Seconds between two questions whether peers know."""
LOCAL_IP: Final = "127.0.0.1"


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What `isthmus agent` was told."""

    token_file: Path | None
    state_dir: Path
    run_dir: Path
    workloads: tuple[tuple[str, str, str], ...]
    """Namespace, name and ServiceAccount of each ExternalWorkload."""
    xds: str | None
    envoy: Path | None


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """What a host keeps of having joined. Its key is a file beside."""

    uri: str
    at: str
    name: str
    bundle: str
    chain: str


def run(config: HostConfig) -> int:
    """Run until SIGTERM or SIGINT; then return 0. UserFault, Unavailable: it cannot."""
    logs.configure(LogFormat.CONSOLE)
    os.umask(0o077)
    return asyncio.run(_Host(config).run())


class _Host:
    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._means = Means(SystemClock(), SystemRandom(), structlog.get_logger())
        self._clock: Clock = self._means.clock
        self._key: ec.EllipticCurvePrivateKey = request.make_key()
        self._anchors: Latest[bytes] = Latest(b"")
        self._leaf: Leaf | None = None
        self._telling: Telling | None = None

    async def run(self) -> int:
        found = binary.load(self._config.envoy)
        private_directory(self._config.state_dir)
        private_directory(self._config.run_dir)
        joined = await self._join()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # we run in one
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            await self._serve(joined, found)
        except asyncio.CancelledError:
            task.uncancel()
        return 0

    # ------------------------------------------------------------------------------------ joining

    async def _join(self) -> Joined:
        kept, key = self._config.state_dir / "host.json", self._config.state_dir / "host.key"
        if self._config.token_file is not None and not kept.exists():
            write_atomic(key, request.key_pem(self._key))
            joined = await self._redeem(_read_token(self._config.token_file))
            write_atomic(kept, msgspec.json.encode(joined))
        try:
            joined = msgspec.json.decode(kept.read_bytes(), type=Joined)
            loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        except (OSError, ValueError) as fault:
            raise UserFault(
                f"this host has not joined (nothing usable in {self._config.state_dir}):"
                " give it --token-file FILE, with the output of `isthmus agent token --host NAME`"
            ) from fault
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise UserFault(f"{key} holds no key of a host")
        self._key = loaded
        self._anchors.set(joined.bundle.encode())
        chain = chains.read_pem(joined.chain.encode(), str(kept))
        pem = request.key_pem(loaded)
        self._leaf = Leaf(joined.chain.encode(), pem, chain[0].not_valid_after_utc)
        return joined

    async def _redeem(self, invitation: Invitation) -> Joined:
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
        told = await self._ask_anchors(invitation, blind)
        bundle = pinned(told, invitation)
        context = tls.client(None, bundle, alpn=("h2",))
        async with _Line(invitation.at, context, invitation.name, self._means) as client:
            csr = request.make(self._key, invitation.uri)
            answer = await client.certify(invitation.uri, invitation.token.encode(), csr)
        leaf = checked(answer, invitation.uri, self._key, bundle, self._clock)
        return Joined(
            uri=invitation.uri,
            at=invitation.at,
            name=invitation.name,
            bundle=bundle.decode(),
            chain=leaf.certificate.decode(),
        )

    async def _ask_anchors(self, invitation: Invitation, blind: ssl.SSLContext) -> bytes:
        async with (
            deadline(self._clock, PATIENCE, f"reaching the control plane at {invitation.at}"),
            _Line(invitation.at, blind, invitation.name, self._means) as client,
        ):
            following = asyncio.get_running_loop().create_task(client.run())
            try:
                with client.anchors.watch() as watch:
                    while not (told := await watch.next()):
                        pass
            finally:
                following.cancel()
                await asyncio.wait((following,))
        return told

    # ------------------------------------------------------------------------------------ serving

    async def _serve(self, joined: Joined, found: binary.Binary) -> None:
        realm, host = realm_of(joined)
        agent = self._make_agent(joined, realm, found)
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run())
            await agent.ready()
            self._telling = agent.telling
            group.create_task(self._keep_own(agent, joined))
            self._means.log.info("agent runs", host=host, workloads=len(self._config.workloads))
            running = [agent.beside(self._place(*each)) for each in self._config.workloads]
            try:
                async with asyncio.TaskGroup() as starting:
                    for each in running:
                        starting.create_task(self._started(each))
                await asyncio.get_running_loop().create_future()
            finally:
                for each in running:
                    await each.drain(5.0)
                    await each.stop()

    async def _drained(self, seat: Seat) -> None:
        """Return when every proxy that may send to the workload has accepted that it leaves."""
        path = f"{seat.namespace}/{seat.name}"
        while self._telling is None or not await self._telling.tell(path, leaving=True):
            await self._clock.sleep(PAUSE)

    async def _started(self, workload: Workload) -> None:
        """Try until it works: the control plane may come later than the host."""
        while True:
            try:
                await workload.start()
            except IsthmusError as fault:
                self._means.log.warning("waits", workload=workload.name, why=fault.message)
                await self._clock.sleep(2.0)
            else:
                await self._stays(workload)
                return

    async def _stays(self, workload: Workload) -> None:
        """Take back what an earlier agent may have said."""
        seat = workload.place.seat
        try:
            if self._telling is not None:
                await self._telling.tell(f"{seat.namespace}/{seat.name}", leaving=False)
        except IsthmusError as fault:
            self._means.log.warning("may still seem to leave", workload=workload.name,
                                    why=fault.message)  # fmt: skip

    def _make_agent(self, joined: Joined, realm: Realm, found: binary.Binary) -> Agent:
        root = os.getuid() == 0
        xds = self._config.xds or str(HostPort(joined.at.rpartition(":")[0], 15010))
        return Agent(
            realm=realm,
            wires=Wires(identity=dialling(joined.at), xds=dialling(xds)),
            binary=found,
            bootstrap=envoy_bootstrap(0 if root else MARK),
            means=self._means,
            folder=self._config.run_dir,
            secure=lambda: self._shown(joined),
            drained=self._drained,
            switches_users=root,
        )

    def _shown(self, joined: Joined) -> Shown:
        """The host's own certificate, as it is now."""
        leaf = self._leaf
        lasts = leaf.not_after.timestamp() - self._clock.time() if leaf is not None else 60.0
        context = tls.client(leaf, self._anchors.value, alpn=("h2",))
        return Shown(context, joined.name, lasts)

    async def _keep_own(self, agent: Agent, joined: Joined) -> None:
        async def nothing() -> bytes:
            return b""

        service, told = agent.identity
        own = Credential(joined.uri, nothing, service, told, self._means, key=self._key)
        async with asyncio.TaskGroup() as group:
            group.create_task(own.run())
            with own.held.watch() as watch:
                while True:
                    held = await watch.next()
                    if held is not None:
                        self._leaf = held.leaf
                        self._anchors.set(held.bundle)
                        self._keep(joined, held.leaf, held.bundle)

    def _keep(self, joined: Joined, leaf: Leaf, bundle: bytes) -> None:
        now = msgspec.structs.replace(
            joined, chain=leaf.certificate.decode(), bundle=bundle.decode()
        )
        write_atomic(self._config.state_dir / "host.json", msgspec.json.encode(now))

    def _place(self, namespace: str, name: str, account: str) -> Place:
        async def token() -> bytes:
            return f"externalworkload/{namespace}/{name}".encode()

        folder = self._config.run_dir / f"{namespace}_{name}"
        folder.mkdir(exist_ok=True, mode=0o711)
        return Place(
            seat=Seat(
                cluster="", namespace=namespace, name=name, account=account,
                labels={"namespace": namespace, "workload": name},
            ),
            ip=LOCAL_IP,
            namespace=Here(),
            folder=folder,
            log=self._config.run_dir / f"{namespace}_{name}.log",
            token=token,
        )  # fmt: skip


class _Line:
    """An identity client through a tunnel of its own."""

    def __init__(self, at: str, context: ssl.SSLContext, name: str, means: Means) -> None:
        self._at, self._context, self._name, self._means = at, context, name, means

    async def __aenter__(self) -> IdentityClient:
        listening = socket.create_server((LOCAL_IP, 0))
        shown = Shown(self._context, self._name, PATIENCE * 2)
        clock, _, log = self._means
        pipe = Tunnel(listening, dialling(self._at), clock=clock, log=log, secure=lambda: shown)
        self._task = asyncio.get_running_loop().create_task(pipe.run())
        host, port = listening.getsockname()
        self._client = IdentityClient(f"{host}:{port}", self._means)
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        self._task.cancel()
        await asyncio.wait((self._task,))


def dialling(at: str) -> Dial:
    """Connects to `host:port`."""

    async def dial() -> socket.socket:
        host, _, port = at.rpartition(":")
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        try:
            await loop.sock_connect(made, address)
        except BaseException:
            made.close()
            raise
        return made

    return dial


def pinned(told: bytes, invitation: Invitation) -> bytes:
    """Those anchors that the token vouches for. UserFault without any: who answers is false."""
    anchors = chains.read_pem(told, f"the answer of {invitation.at}")
    kept = [each for each in anchors if chains.fingerprint(each) in invitation.anchors]
    if not kept:
        raise UserFault(
            f"what answers at {invitation.at} is not the control plane of the token: its trust"
            " anchors are others"
        )
    return chains.write_pem(kept)


def realm_of(joined: Joined) -> tuple[Realm, str]:
    """The realm and the host's name, from what the host was called when it joined."""
    domain = joined.uri.removeprefix("spiffe://").partition("/")[0]
    namespace = joined.name.removeprefix("control-plane.identity.").removesuffix(f".{domain}")
    realm = Realm(domain, namespace)
    host = realm.host(joined.uri)
    if host is None or realm.server_name != joined.name:
        raise UserFault("the host's identity cannot be read; let it join again")
    return realm, host


def _read_token(path: Path) -> Invitation:
    try:
        return join.read(path.read_text().strip())
    except (OSError, UnicodeDecodeError) as fault:
        raise UserFault(f"cannot read the token in {path}") from fault

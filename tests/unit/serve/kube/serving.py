"""The real server on TLS in this process, over the memory store, and clients for it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aiohttp
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import Clock, SystemClock
from isthmus.board import Board, Intake, Intakes
from isthmus.ca import Authority, Keyring, make
from isthmus.controllers import Settings, Wiring, build
from isthmus.controllers.roles import settled
from isthmus.engine import Database
from isthmus.mesh import CENSUS, SOURCES, facts
from isthmus.model.registry import BUILT_IN, Registry
from isthmus.serve.kube.accounts import AccountTokens
from isthmus.serve.kube.api import Dispatcher, Verdict, no_fence
from isthmus.serve.kube.auth import Authorizer
from isthmus.serve.kube.escalation import NoEscalation
from isthmus.serve.kube.limits import DEFAULT_LIMITS, Limits
from isthmus.serve.kube.rbac import Rbac
from isthmus.serve.kube.server import KubeApi
from isthmus.store.memory import Memory
from isthmus.store.objects import Admission, Objects
from tests.support.log import ListLog
from tests.support.rights import HERE
from tests.support.rights import authorizer as rights_of

ISSUER = "https://kubernetes.default.svc.cluster.local"
JSON = {"Content-Type": "application/json"}


class Reply(NamedTuple):
    """A whole answer."""

    code: int
    headers: Mapping[str, str]
    raw: bytes
    warnings: list[str]

    @property
    def json(self) -> Any:  # noqa: ANN401 - bytes become values
        return json.loads(self.raw)


class Client:
    """One user of the server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext) -> None:
        self.session = session
        self.url = url
        self.tls = tls

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        /,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; a body that is not bytes goes as JSON."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        data = None if raw is None else BytesIO(raw)
        sent = dict(headers or {})
        if data is not None:
            sent.setdefault("Content-Type", content_type)
        async with self.session.request(
            method, self.url + path, data=data, headers=sent, ssl=self.tls
        ) as answer:
            raw = await answer.read()
            warnings = answer.headers.getall("Warning", [])
            return Reply(answer.status, answer.headers, raw, warnings)

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.ask("GET", path, headers=headers)

    async def post(self, path: str, body: object) -> Reply:
        return await self.ask("POST", path, body)

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[Lines]:
        """An open watch, event by event."""
        timeout = aiohttp.ClientTimeout(total=30)
        async with self.session.get(
            self.url + path, headers=headers, ssl=self.tls, timeout=timeout
        ) as answer:
            yield Lines(answer)


class Lines:
    """The events of a watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> Any:  # noqa: ANN401 - bytes become values
        """The next event; None at the end."""
        raw = await self.answer.content.readline()
        return json.loads(raw) if raw else None

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The types and names of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[Any]:
        """What comes until the end."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


class Served:
    """A running server and what it runs on."""

    def __init__(self, stack: AsyncExitStack, clock: Clock, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self.clock = clock
        self.authority: Authority = make("test", now=SystemClock().utc() - timedelta(days=9))
        self.keyring = Keyring(ISSUER, ec.generate_private_key(ec.SECP256R1()))
        self.store = Memory()
        self.log = ListLog()
        self.verdicts: list[Verdict] = []
        self.port = 0
        self.admin: Client
        self.api: KubeApi
        self.running: asyncio.Task[None]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def server_tls(self) -> ssl.SSLContext:
        leaf = self.authority.issue_server(["127.0.0.1"], now=SystemClock().utc())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file("server.pem", leaf.certificate + leaf.key))
        context.load_verify_locations(cadata=self.authority.bundle.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def file(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(data)
        return path

    def client_tls(
        self,
        user: str = "",
        *groups: str,
        authority: Authority | None = None,
        lifetime: timedelta = timedelta(hours=1),
        age: timedelta = timedelta(),
    ) -> ssl.SSLContext:
        """A client's context; with a user, with a certificate."""
        context = ssl.create_default_context(cadata=self.authority.bundle.decode())
        if user:
            signer = authority or self.authority
            now = SystemClock().utc() - age
            leaf = signer.issue_client(user, groups, now=now, lifetime=lifetime)
            context.load_cert_chain(self.file(f"{user}.pem", leaf.certificate + leaf.key))
        return context

    def keep(self, writer: asyncio.StreamWriter) -> None:
        """Close the connection when the server has ended."""
        self._stack.callback(writer.close)

    async def client(
        self, user: str = "", *groups: str, tls: ssl.SSLContext | None = None, token: str = ""
    ) -> Client:
        """A client who is this user, or nobody, or the bearer of a token."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(limit=0)
        session = aiohttp.ClientSession(headers=headers, connector=connector)
        await self._stack.enter_async_context(session)
        return Client(session, self.url, tls or self.client_tls(user, *groups))


class Government:
    """Board and controllers of a server: what makes of written roles rights that count."""

    def __init__(self, served: Served) -> None:
        clock, log = served.clock, served.log
        intakes = {name: Intake(*source) for name, source in SOURCES.items()}
        where = Intakes(intakes, Intake(CENSUS, facts))
        store = served.store
        self.board = Board(Database(), HERE, store, where, clock=clock, random=Random(2), log=log)
        self.rights = Rbac(self.board, HERE)
        objects = Objects(store, clock=clock, random=Random(3))
        wiring = Wiring(
            self.board, self.board.commit, objects, BUILT_IN.by_key_resource,
            served.keyring.sign_kept, clock, Random(4), log,
        )  # fmt: skip
        self.controllers = build(HERE, Settings("linkerd", "PEM"), wiring)

    async def begin(self, tasks: asyncio.TaskGroup, stack: AsyncExitStack) -> None:
        """Run; return when every default role is there."""
        for run in (self.board.run, self.controllers.run):
            stack.callback(tasks.create_task(run()).cancel)
        await self.board.at(0)
        async with self.board.subscribe() as watched:
            watched.add(settled, HERE)
            while not (await watched.next())[settled, HERE]:
                pass


@asynccontextmanager
async def serving(
    *,
    limits: Limits = DEFAULT_LIMITS,
    clock: Clock | None = None,
    kinds: Registry = BUILT_IN,
    authorizer: Authorizer | None = None,
    admissions: tuple[Admission, ...] = (),
    tls: bool = True,
    governed: bool = False,
) -> AsyncIterator[Served]:
    """A server that runs while the block does; `admin` may everything.

    `governed`: with board and controllers, so that roles and bindings that are written count.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        served = Served(stack, clock or SystemClock(), folder)
        government = Government(served) if governed else None
        rights = government.rights if government else authorizer or rights_of()
        gates = (*admissions, NoEscalation(rights, served.store))
        objects = Objects(served.store, clock=served.clock, random=Random(7), admissions=gates)
        dispatcher = Dispatcher(
            store=served.store,
            objects=objects,
            kinds=kinds,
            clock=served.clock,
            authorizer=rights,
            tokens=AccountTokens(served.keyring, served.store, kinds, served.clock),
            issuer=served.keyring,
            limits=limits,
            secret=b"test",
            observe=served.verdicts.append,
            fence=government.board.at if government else no_fence,
        )
        api = served.api = KubeApi(dispatcher, clock=served.clock, log=served.log, limits=limits)
        listening = socket.create_server(("127.0.0.1", 0))
        served.port = listening.getsockname()[1]
        await api.start(listening, served.server_tls() if tls else None)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        served.running = tasks.create_task(api.run())
        stack.callback(served.running.cancel)
        if government is not None:
            await government.begin(tasks, stack)
        served.admin = await served.client("admin", "system:masters")
        yield served

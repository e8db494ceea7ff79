"""Everything beside one workload, from before its start until after its end.

Coming: certificate, files, rules, pipe, Envoy; it is there when the Envoy is ready. Going, in
order: peers are told and have had time to hear it; listeners drain; SIGTERM; SIGKILL after the
grace; rules and keys away. An Envoy that crashes comes back, with growing pauses; its rules stay,
so that nothing passes beside it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from isthmus.agent import proxyless, redirect, tunnel
from isthmus.agent.admin import Admin
from isthmus.agent.binary import Binary
from isthmus.agent.contract import Bootstrap, Drained, Means, Place, Standing, Wires
from isthmus.agent.credential import Certifying, Credential, Held
from isthmus.agent.files import ADMIN, BOOTSTRAP, Directory
from isthmus.agent.front import PORT, Front
from isthmus.agent.history import EVERY, History
from isthmus.agent.metrics import export
from isthmus.agent.process import MARK, Hand, Launch, Process
from isthmus.agent.totals import Totals
from isthmus.agent.tunnel import Peer, Shown, Tunnel
from isthmus.aio import Backoff, Latest, deadline
from isthmus.aio.supervise import describe
from isthmus.ca import Account, Realm, tls
from isthmus.errors import DeadlineExceeded, IsthmusError, Unavailable

PATIENCE: Final = 60.0
"""Seconds in which a proxy must have become ready."""
POLL: Final = 0.05
NEWS: Final = 5.0
"""Seconds that peers get at most to hear that a workload leaves."""
DRAIN: Final = 3
"""Seconds over which an Envoy's listeners drain."""
AGAIN: Final = Backoff(first=0.5, most=30.0, settled=60.0)
LOOPBACK: Final = {"identity": 8080, "destination": 8086, "policy": 8090}
"""Where linkerd2-proxy finds its control plane inside the workload's namespace (decision 11)."""


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What all workloads of an agent share."""

    realm: Realm
    wires: Wires
    binary: Binary
    bootstrap: Bootstrap
    drained: Drained
    service: Certifying
    anchors: Latest[bytes]
    hand: Hand
    means: Means
    uid: int | None
    """The user of the Envoys; None where there is but one."""
    begin: Callable[[Awaitable[None], str], asyncio.Task[None]]
    """Starts a task that the agent owns."""


class Workload:
    """One workload's. `start` (again when it failed), `drain` and `stop`, in this order."""

    def __init__(self, place: Place, tools: Tools) -> None:
        self.place = place
        self.standing = Standing()
        seat = place.seat
        own = tools.realm.name(Account(seat.namespace, seat.account))
        self.identity = place.identity or own
        self._tools = tools
        self._clock, self._random, self._log = tools.means
        self._directory = Directory(place.folder / "proxy", tools.uid)
        self._credential = Credential(
            self.identity, place.token, tools.service, tools.anchors, tools.means
        )
        self._task: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._history = History()
        self._totals = Totals()
        self._admin: Admin | None = None
        self._stopping = False

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.place.seat.namespace}/{self.place.seat.name}"

    # ------------------------------------------------------------------------------------- coming

    async def start(self) -> None:
        """Return when the proxy carries traffic.

        Raises:
            Unavailable, DeadlineExceeded: it does not; says what it waited for. Nothing is left.
        """
        up = asyncio.Event()
        self._stopping = False
        self._task = self._tools.begin(self._live(up), f"workload {self.name}")
        waiting = asyncio.get_running_loop().create_task(up.wait())
        try:
            async with deadline(self._clock, PATIENCE, f"the proxy of {self.name}"):
                await asyncio.wait((waiting, self._task), return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
        except DeadlineExceeded as fault:
            why = self.standing.why or self._credential.why
            raise DeadlineExceeded(f"{fault.message}{f': {why}' if why else ''}") from fault
        finally:
            waiting.cancel()
            if not up.is_set():
                await self.stop()

    async def _live(self, up: asyncio.Event) -> None:
        """All of it; ends when cancelled, or with the first error of its own."""
        fault: IsthmusError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                await self._come(group)
                up.set()
        except* (IsthmusError, OSError) as caught:
            first = _first(caught)
            fault = first if isinstance(first, IsthmusError) else Unavailable(describe(first))
        if fault is not None:
            self._tell(running=False, ready=False, why=fault.message)
            if up.is_set():
                self._log.warning("a proxy is lost", workload=self.name, why=fault.message)
            raise fault

    async def _come(self, group: asyncio.TaskGroup) -> None:
        self._directory.make()
        self._tell(why="waits for a certificate")
        group.create_task(self._credential.run())
        with self._credential.held.watch() as held:
            while (first := await held.next()) is None:
                pass
        self._directory.write(first)
        self._directory.write_bootstrap(self._tools.bootstrap(self.place.seat))
        group.create_task(self._follow())
        await self._install()
        self._open_pipes(group)
        group.create_task(self._keep())
        group.create_task(self._remember())
        while not self.standing.ready:
            await self._clock.sleep(POLL)
        front = self._front()
        await front.start()
        group.create_task(_until_cancelled(front.stop))

    async def _follow(self) -> None:
        """Write every new certificate, and every change of anchors."""
        with self._credential.held.watch() as changes:
            while True:
                held = await changes.next()
                if held is not None:
                    self._directory.write(held)
                    if self.place.grpc:
                        proxyless.write(self.place.folder / proxyless.FOLDER, held)

    async def _install(self) -> None:
        place = self.place
        if place.serves:
            lead = redirect.Lead(place.serves, place.spares)
            await self._tools.hand.inside(place.namespace, lambda: redirect.lead(lead))
        if not place.redirect:
            return
        uid = self._tools.uid
        rules = redirect.Rules(
            uid,
            None if uid is not None else MARK,
            place.skip_inbound,
            place.skip_outbound,
            place.skip_subnets,
        )
        await self._tools.hand.inside(place.namespace, lambda: redirect.install(rules))

    def _open_pipes(self, group: asyncio.TaskGroup) -> None:
        wires, inside = self._tools.wires, self.place.namespace
        clock, log = self._clock, self._log
        listening = tunnel.listen_unix(self._directory.ads, self._tools.uid)
        secure = self._secure if wires.secure else None
        pipe = Tunnel(
            listening, wires.xds, clock=clock, log=log, secure=secure, admit=self._is_our_envoy
        )
        group.create_task(pipe.run())
        if self.place.grpc:
            self._open_to_clients(group)
        if not self.place.linkerd:
            return
        dials = {
            "identity": wires.identity,
            "destination": wires.destination,
            "policy": wires.policy,
        }
        for name, dial in dials.items():
            if dial is not None:
                opened = inside.listen("127.0.0.1", LOOPBACK[name])
                group.create_task(Tunnel(opened, dial, clock=clock, log=log).run())

    def _open_to_clients(self, group: asyncio.TaskGroup) -> None:
        place = self.place
        folder = place.folder / proxyless.FOLDER
        listening = proxyless.open_folder(folder, place.seat, place.grpc, self._held())
        pipe = Tunnel(
            listening, self._tools.wires.xds, clock=self._clock, log=self._log,
            secure=self._secure if self._tools.wires.secure else None,
            admit=proxyless.from_inside(place.namespace),
        )  # fmt: skip
        group.create_task(pipe.run())

    def _is_our_envoy(self, peer: Peer) -> bool:
        process, uid = self._process, self._tools.uid
        ours = process is not None and process.running and peer.pid == process.pid
        return ours and (uid is None or peer.uid == uid)

    def _secure(self) -> Shown:
        held = self._held()
        context = tls.client(held.leaf, held.bundle, alpn=("h2",))
        lasts = held.leaf.not_after.timestamp() - self._clock.time()
        return Shown(context, self._tools.realm.server_name, lasts)

    def _held(self) -> Held:
        held = self._credential.held.value
        if held is None:
            raise Unavailable(f"{self.name} has no certificate")
        return held

    # ------------------------------------------------------------------------------------ the Envoy

    async def _keep(self) -> None:
        """Run the Envoy, and again when it ends by itself."""
        failures = 0
        while True:
            started = self._clock.now()
            code = await self._run_once()
            if self._stopping:
                return
            failures = 1 if self._clock.now() - started >= AGAIN.settled else failures + 1
            pause = AGAIN.pause(failures, self._random)
            self._log.warning("a proxy ended", workload=self.name, code=code, pause=round(pause, 2))
            await self._clock.sleep(pause)
            self._tell(restarts=self.standing.restarts + 1)

    async def _run_once(self) -> int:
        self._directory.admin.unlink(missing_ok=True)
        launch = Launch(
            self._tools.binary,
            (
                "-c", BOOTSTRAP, "--concurrency", "1", "--disable-hot-restart",
                "--drain-time-s", str(DRAIN), "--log-level", "warning",
            ),
            self._directory.path,
            self.place.log,
            self._tools.uid,
        )  # fmt: skip
        process = await self._tools.hand.start(launch, self.place.namespace)
        self._process = process
        self._history.begin(self._clock.now())
        self._totals.begin()
        self._admin = Admin(self._directory.path, ADMIN)
        try:
            self._tell(running=True, since=self._clock.time(), why="the proxy is starting")
            while process.running and not await self._admin.ready():
                await self._clock.sleep(POLL)
            if process.running:
                self._tell(ready=True, why="")
            code = (await process.wait()).code
        finally:
            process.kill(signal.SIGKILL)  # only if we are cancelled does it still run
            await self._admin.close()
        self._tell(
            running=False, ready=False, last_code=code, last_end=self._clock.time(),
            why=f"the proxy ended with {code}",
        )  # fmt: skip
        return code

    def _front(self) -> Front:
        try:
            # A node has other addresses too, of LoadBalancers: that port is theirs there.
            host = self.place.ip if self.place.serves else "0.0.0.0"  # noqa: S104  # the pod's own
            listening = self.place.namespace.listen(host, PORT)
        except OSError as fault:
            raise Unavailable(f"port {PORT} of {self.name}: {fault.strerror}") from fault
        return Front(
            listening,
            lambda: self.standing.ready,
            self.metrics,
            lambda: self._held().leaf.certificate,
        )

    async def metrics(self, ago: float | None = None) -> str:
        """Linkerd's metrics of this workload. Unavailable while its Envoy is away.

        `ago`: as they were so many seconds ago, with finer histograms, below a line that tells how
        long ago that was.
        """
        if not ago:
            text = await self._exported(await self._page(), fine=ago is not None)
            return text if ago is None else f"# AGE 0\n{text}"
        past = self._history.before(self._clock.now(), ago)
        text = await self._exported(past.page, fine=True)
        return f"# AGE {past.age:.3f}\n{text}"

    async def _exported(self, page: str, *, fine: bool) -> str:
        """In a thread: a large page takes a while, and others must not wait."""
        return await asyncio.to_thread(export, page, self.place.ip, fine=fine)

    async def _page(self) -> str:
        if self._admin is None or not self.standing.running:
            raise Unavailable("the proxy does not run")
        page = await self._admin.get("/stats/prometheus?usedonly")
        return self._totals.absorb(self._clock.now(), page.decode(errors="replace"))

    async def _remember(self) -> None:
        """Keep a page now and then."""
        while True:
            await self._clock.sleep(EVERY)
            with contextlib.suppress(Unavailable):  # the next one comes
                self._history.keep(self._clock.now(), await self._page())

    # --------------------------------------------------------------------------------------- going

    async def drain(self, grace: float) -> None:
        """Let peers find others first: they are told, then listeners drain."""
        try:
            async with deadline(self._clock, min(NEWS, grace), "telling peers"):
                await self._tools.drained(self.place.seat)
        except IsthmusError as fault:
            self._log.info("peers may not know yet", workload=self.name, why=fault.message)
        if self._admin is not None and self.standing.running:
            try:
                await self._admin.post("/drain_listeners?graceful")
            except IsthmusError as fault:
                self._log.info("listeners did not drain", workload=self.name, why=fault.message)

    async def stop(self, grace: float = 5.0) -> None:
        """End the Envoy, then take away everything else. Harmless twice."""
        self._stopping = True
        process, task = self._process, self._task
        if process is not None and process.running:
            process.kill(signal.SIGTERM)
            try:
                async with deadline(self._clock, grace, "ending the proxy"):
                    await process.wait()
            except DeadlineExceeded:
                process.kill(signal.SIGKILL)
                await process.wait()
        if task is not None and not task.done():
            task.cancel()
        if task is not None:
            await asyncio.wait((task,))
        await self._remove_rules()
        self._directory.remove()
        self._tell(running=False, ready=False, why="stopped")

    async def _remove_rules(self) -> None:
        if not self.place.redirect and not self.place.serves:
            return
        try:
            await self._tools.hand.inside(self.place.namespace, redirect.remove)
        except (OSError, IsthmusError) as fault:
            self._log.warning("rules are left", workload=self.name, why=describe(fault))

    def _tell(self, **changes: object) -> None:
        now = msgspec.structs.replace(self.standing, **changes)
        if now != self.standing:
            self.standing = now
            self.place.changed()


async def _until_cancelled(end: Callable[[], Awaitable[None]]) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        with contextlib.suppress(OSError):
            await end()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group, however deep."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner

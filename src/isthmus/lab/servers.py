"""One control plane of a lab: a real `isthmus server` in its cluster's router namespace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from isthmus import ca
from isthmus.aio import Backoff, Clock, Log, deadline
from isthmus.errors import DeadlineExceeded, Unavailable
from isthmus.lab import pipes
from isthmus.lab.addressing import PORTS, ClusterAt
from isthmus.lab.forks import Forks, Running
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pipes import Pipe
from isthmus.lab.pods.process import Launch
from isthmus.lab.trust import TrustFiles

PATIENCE = 60.0
"""Seconds that a server may take to be ready."""
GOODBYE = 3.0
"""Seconds that it may take to end."""
PAUSES = Backoff(first=0.2, most=5.0, jitter=0.0)


class Server:
    """Runs one server, and again when it ends before its time."""

    def __init__(
        self,
        at: ClusterAt,
        namespace: Namespace,
        folder: Path,
        trust: TrustFiles | None,
        clock: Clock,
        log: Log,
        forks: Forks,
    ) -> None:
        self._at = at
        self._forks = forks
        self._namespace = namespace
        self.data_dir = folder
        self._trust = trust
        self._clock = clock
        self._log = log
        self._process: Running | None = None
        self.pid = 0
        self._ready = asyncio.Event()

    @property
    def argv(self) -> list[str]:
        """The command that is run."""
        at = self._at
        command = [
            sys.executable, "-m", "isthmus", "server",
            "--cluster", at.name, "--context-name", at.name,
            "--data-dir", str(self.data_dir),
            "--service-cidr", str(at.cluster.service_cidr),
        ]  # fmt: skip
        for name, port in PORTS.items():
            command += ["--listen", f"{name}={at.loopback}:{port}"]
        own = at.cluster.server
        if (
            self._trust is not None
            and not {"trust_anchors", "issuer_cert", "issuer_key"} & own.keys()
        ):
            command += ["--trust-anchors", str(self._trust.anchors)]
            command += ["--issuer-cert", str(self._trust.certificate)]
            command += ["--issuer-key", str(self._trust.key)]
        for name, value in own.items():
            flag = f"--{name.replace('_', '-')}"
            match value:
                case bool():
                    command.append(f"{flag}={'true' if value else 'false'}")
                case str():
                    command += [flag, value]
                case tuple():
                    command += [word for each in value for word in (flag, each)]
        return command

    async def ready(self) -> None:
        """When it serves. Unavailable when it does not in time; the log's end says why."""
        try:
            async with deadline(self._clock, PATIENCE, "the start of a server"):
                await self._ready.wait()
        except DeadlineExceeded as fault:
            raise Unavailable(
                f"the control plane of {self._at.name} is not ready after {PATIENCE:g} s: "
                f"{self._last_words()}"
            ) from fault

    async def run(self) -> None:
        """Keep it running until cancelled. Unavailable when it never gets ready."""
        failures = 0
        while True:
            code = await self._once()
            if not self._ready.is_set():
                raise Unavailable(
                    f"the control plane of {self._at.name} ended with exit code {code}: "
                    f"{self._last_words()}"
                )
            failures += 1
            pause = min(PAUSES.most, PAUSES.first * 2 ** min(failures - 1, 8))
            self._log.warning("server ended", cluster=self._at.name, code=code, pause=pause)
            await self._clock.sleep(pause)

    async def _once(self) -> int:
        ca.private_directory(self.data_dir)
        with contextlib.ExitStack() as held:
            out = Pipe(held, outward=True)
            errors = held.enter_context((self.data_dir / "server.log").open("ab"))
            launch = Launch(
                argv=self.argv,
                env={**os.environ, "NO_COLOR": "1"},
                namespace=self._namespace,
                stdout=out.theirs.fileno(),
                stderr=errors.fileno(),
            )
            running = self._process = await self._forks.start(launch)
            out.theirs.close()
            self.pid = running.pid
            try:
                while data := await pipes.read(out.ours):
                    if b" ready\n" in data:
                        self._ready.set()
                return await running.wait()
            finally:
                running.kill(signal.SIGTERM)

    async def stop(self) -> None:
        """Ask it to end, and wait a little."""
        running = self._process
        if running is None:
            return
        running.kill(signal.SIGTERM)
        with contextlib.suppress(DeadlineExceeded):
            async with deadline(self._clock, GOODBYE, "the end of a server"):
                await running.wait()

    def endpoints(self) -> dict[str, str]:
        """Where it listens, by surface."""
        found: dict[str, str] = json.loads((self.data_dir / "endpoints.json").read_text())
        return found

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self.data_dir / "server.log").read_text(errors="replace").splitlines()
            shown = [line for line in lines if line.strip()]
            if shown:
                return shown[-1]
        return "it said nothing"

"""One container: its runs, its probes, its restarts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from isthmus.aio import deadline
from isthmus.errors import DeadlineExceeded, UserFault
from isthmus.lab.images import argv
from isthmus.lab.pods import process
from isthmus.lab.pods.context import RESTART, RETRY, Context
from isthmus.lab.pods.environment import environment
from isthmus.lab.pods.logs import Log, Pump
from isthmus.lab.pods.probes import Probe, Verdict
from isthmus.lab.pods.process import Launch, Process
from isthmus.lab.pods.sources import ConfigError
from isthmus.lab.pods.states import Record, Role, Running, State, Terminated, Waiting
from isthmus.model.document import get, mapping, number, strings, text

START_ERROR = 128
"""The exit code of a container whose program could not be started (as containerd reports it)."""
KEPT_LOGS = 2
"""Runs whose output is kept: this one and the one before (`kubectl logs --previous`)."""


class Container:
    """Runs one container until it is over or told to stop. `record` is what the status tells."""

    def __init__(self, context: Context, spec: dict[str, Any], role: Role) -> None:
        self._context = context
        self._tools = context.tools
        self.spec = spec
        self.record = Record(name=text(spec, "name"), image=text(spec, "image"), role=role)
        self.logs: list[Log] = []
        """Output of the last runs, the newest last."""
        self._process: Process | None = None
        self._env: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._started = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._policy = self._restart_policy()
        self._failures = 0

    @property
    def name(self) -> str:
        return self.record.name

    def _restart_policy(self) -> str:
        match self.record.role:
            case Role.NATIVE_SIDECAR:
                return "Always"
            case Role.INIT:
                policy = text(self._context.document, "spec.restartPolicy")
                return "Never" if policy == "Never" else "OnFailure"
            case Role.MAIN:
                return text(self._context.document, "spec.restartPolicy") or "Always"

    def _set(self, **fields: Any) -> None:  # noqa: ANN401  # fields of Record
        fresh = msgspec.structs.replace(self.record, **fields)
        if fresh != self.record:
            self.record = fresh
            self._context.changed()

    # ---------------------------------------------------------------------------------- its runs

    async def run(self) -> bool:
        """Run it until nothing restarts it; whether its last end was a good one."""
        while True:
            started = self._tools.clock.now()
            ended = await self._once()
            if self._tools.clock.now() - started >= RESTART.settled:
                self._failures = 0
            if self._stopping.is_set():
                return ended.code == 0
            again = self._policy == "Always" or (self._policy == "OnFailure" and ended.code != 0)
            if not again:
                return ended.code == 0
            await self._pause(ended)
            if self._stopping.is_set():
                return False

    async def _pause(self, ended: Terminated) -> None:
        """Wait before the next run; the first restart follows at once."""
        if self._failures:
            pause = RESTART.pause(self._failures, self._tools.random)
            message = f"back-off {pause:g}s restarting failed container={self.name}"
            self._set(state=Waiting("CrashLoopBackOff", message), last=ended)
            await self._sleep(pause)
        self._failures += 1
        self._set(restarts=self.record.restarts + 1, last=ended)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, unless told to stop meanwhile."""
        try:
            async with deadline(self._tools.clock, seconds, "the pause"):
                await self._stopping.wait()
        except DeadlineExceeded:
            return

    async def _once(self) -> Terminated:
        launch = await self._prepared()
        if launch is None:
            return self._end(Terminated(code=137, reason="Error", finished=self._now()))
        log = self._log()
        pump = Pump(log)
        out, err = pump.pipe("stdout"), pump.pipe("stderr")
        started = self._now()
        try:
            running = await process.start(launch._replace(stdout=out, stderr=err))
        except (OSError, ValueError) as fault:
            message = _why(fault, launch)
            log.write("stderr", f"{message}\n".encode())
            return self._end(
                Terminated(
                    code=START_ERROR, reason="StartError", message=message,
                    started=started, finished=self._now(),
                )
            )  # fmt: skip
        finally:
            os.close(out)
            os.close(err)
        self._process = running
        self._quiet.clear()
        try:
            return await self._watched(running, started)
        finally:
            if running.running:
                running.kill(signal.SIGKILL)
            await pump.done(self._tools.clock)
            log.close()
            self._quiet.set()

    async def _watched(self, running: Process, started: datetime) -> Terminated:
        startup = Probe.of(self.spec, "startupProbe")
        if startup is None:
            self._started.set()
        self._set(
            state=Running(started),
            id=f"{self.name}-{running.pid}",
            started=startup is None,
            ready=startup is None and Probe.of(self.spec, "readinessProbe") is None,
        )
        async with asyncio.TaskGroup() as group:
            probing = group.create_task(self._probe(startup, running))
            code = await running.wait()
            probing.cancel()
        return self._end(_ended(code, started, self._now()))

    def _end(self, ended: Terminated) -> Terminated:
        self._process = None
        self._started.clear()
        good = ended.code == 0 and self.record.role is Role.INIT
        self._set(state=ended, ready=good, started=False)
        return ended

    def _now(self) -> datetime:
        return self._tools.clock.utc()

    def _log(self) -> Log:
        path = self._context.logs / self.name / f"{self.record.restarts}.log"
        self.logs.append(Log(path, self._tools.clock))
        while len(self.logs) > KEPT_LOGS:
            gone = self.logs.pop(0)
            gone.path.unlink(missing_ok=True)
            gone.path.with_name(f"{gone.path.name}.1").unlink(missing_ok=True)
        return self.logs[-1]

    # ------------------------------------------------------------------------------ what is run

    async def _prepared(self) -> Launch | None:
        """How to start it, as soon as its configuration is there; None when told to stop."""
        pulled = False
        while not self._stopping.is_set():
            try:
                launch = await self._launch()
            except ConfigError as fault:
                self._set(state=Waiting("CreateContainerConfigError", str(fault)))
            else:
                if launch is not None:
                    return launch
                reason = "ImagePullBackOff" if pulled else "ErrImagePull"
                message = (
                    f"this lab knows no command for the image {self.record.image!r}; add it to "
                    "`images` of the topology, or give the container a command"
                )
                self._set(state=Waiting(reason, message))
                pulled = True
            await self._sleep(RETRY)
        return None

    async def _launch(self) -> Launch | None:
        context, spec = self._context, self.spec
        own = await environment(spec, context.document, context.where, self._tools.sources)
        env = {**context.env, **own}
        words = argv(
            self.record.image, strings(spec, "command"), strings(spec, "args"), env,
            self._tools.images,
        )  # fmt: skip
        if words is None:
            return None
        self._env = env
        cwd = text(spec, "workingDir")
        if not cwd:
            work = context.scratch / "work" / self.name
            work.mkdir(parents=True, exist_ok=True)
            work.chmod(0o777)
            cwd = str(work)
        user, group = self._user()
        return Launch(
            argv=words,
            env=env,
            namespace=context.namespace,
            cwd=cwd,
            hostname=env["HOSTNAME"],
            mounts=[*context.mounts, *context.volumes.mounts(spec)],
            user=user,
            group=group,
        )

    def _user(self) -> tuple[int | None, int | None]:
        if not self._tools.switches_users:
            return None, None
        pod = mapping(self._context.document, "spec.securityContext")
        security = pod | mapping(self.spec, "securityContext")
        user, group = security.get("runAsUser"), security.get("runAsGroup")
        own = isinstance(user, int)
        return (user if own else None), (group if isinstance(group, int) else user if own else None)

    # ----------------------------------------------------------------------------------- probes

    async def _probe(self, startup: Probe | None, running: Process) -> None:
        if startup is not None:
            await self._until_started(startup, running)
        async with asyncio.TaskGroup() as group:
            for name in ("livenessProbe", "readinessProbe"):
                probe = Probe.of(self.spec, name)
                if probe is not None:
                    group.create_task(self._repeat(probe, name, running))

    async def _until_started(self, probe: Probe, running: Process) -> None:
        verdict = Verdict(probe, good=False)
        await self._tools.clock.sleep(probe.delay)
        while True:
            wrong = await self._ask(probe)
            if verdict.note(well=not wrong):
                if verdict.good:
                    break
                await self._unhealthy("Startup", wrong, probe, running)
            await self._tools.clock.sleep(probe.period)
        self._started.set()
        self._set(started=True, ready=Probe.of(self.spec, "readinessProbe") is None)

    async def _repeat(self, probe: Probe, name: str, running: Process) -> None:
        readiness = name == "readinessProbe"
        verdict = Verdict(probe, good=not readiness)
        await self._tools.clock.sleep(probe.delay)
        while True:
            wrong = await self._ask(probe)
            if verdict.note(well=not wrong):
                if readiness:
                    self._set(ready=verdict.good)
                elif not verdict.good:
                    await self._unhealthy("Liveness", wrong, probe, running)
            await self._tools.clock.sleep(probe.period)

    async def _ask(self, probe: Probe) -> str:
        context = self._context
        behind = context.namespace if context.proxied else None
        return await self._tools.prober.ask(
            probe, self.spec, context.where.pod_ip, self._execute_quietly, behind
        )

    async def _execute_quietly(self, command: list[str]) -> int:
        running = await self.execute(command)
        try:
            return await running.wait()
        finally:
            running.kill(signal.SIGKILL)

    async def _unhealthy(self, what: str, wrong: str, probe: Probe, running: Process) -> None:
        self._tools.log.warning(
            "a probe failed, the container is restarted",
            probe=what,
            pod=text(self._context.document, "metadata.name"),
            container=self.name,
            why=wrong,
        )
        grace = probe.grace if probe.grace is not None else self._grace()
        await self._terminate(running, grace)

    def _grace(self) -> int:
        return number(self._context.document, "spec.terminationGracePeriodSeconds", 30)

    async def started(self) -> None:
        """When it runs and its startup probe, if any, is content."""
        await self._started.wait()

    # ------------------------------------------------------------------------------------- ends

    async def stop(self, grace: float) -> None:
        """Have it end: its hook, SIGTERM, and SIGKILL after `grace` seconds. Not restarted."""
        self._stopping.set()
        running = self._process
        if running is not None:
            await self._terminate(running, grace)
        await self._quiet.wait()

    def kill(self) -> None:
        """Have it end now."""
        self._stopping.set()
        if self._process is not None:
            self._process.kill(signal.SIGKILL)

    async def _terminate(self, running: Process, grace: float) -> None:
        clock = self._tools.clock
        try:
            async with deadline(clock, max(grace, 0.0), "the end of a container"):
                await self._before_stop()
                running.kill(signal.SIGTERM)
                await running.wait()
        except DeadlineExceeded:
            running.kill(signal.SIGKILL)
            await running.wait()

    async def _before_stop(self) -> None:
        hook = mapping(self.spec, "lifecycle.preStop")
        seconds = get(hook, "sleep.seconds")
        if isinstance(seconds, int):
            await self._tools.clock.sleep(seconds)
        command = strings(hook, "exec.command")
        if command:
            try:
                await self._execute_quietly(command)
            except OSError as fault:
                self._tools.log.warning("preStop failed", container=self.name, why=str(fault))

    # ------------------------------------------------------------------------------------- exec

    async def execute(
        self,
        command: Sequence[str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> Process:
        """Run a command beside it, in what it sees.

        Raises:
            OSError: the command cannot be started.
            UserFault: the container does not run.
        """
        running = self._process
        if running is None or running.world is None:
            raise UserFault(f"container {self.name!r} is not running")
        user, group = self._user()
        return await process.start(
            Launch(
                argv=command,
                env={"TERM": "xterm"} | self._env,
                namespace=self._context.namespace,
                cwd=text(self.spec, "workingDir") or "/",
                hostname=self._env["HOSTNAME"],
                world=running.world,
                user=user,
                group=group,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        )


def _ended(code: int, started: datetime, finished: datetime) -> Terminated:
    """The end of a process: killed by signal N counts as exit code 128 + N."""
    number = max(-code, 0)
    shown = 128 + number if number else code
    reason = "Completed" if shown == 0 else "Error"
    return Terminated(code=shown, signal=number, reason=reason, started=started, finished=finished)


def _why(fault: BaseException, launch: Launch) -> str:
    if isinstance(fault, OSError):
        about = str(fault.filename or launch.argv[0])
        if isinstance(fault, FileNotFoundError) and about == launch.cwd:
            return f"there is no folder {about!r} to work in"
        if isinstance(fault, FileNotFoundError):
            return f"exec: {about!r}: executable file not found in $PATH"
        return f"{about}: {fault.strerror}"
    return str(fault)


def state_name(state: State) -> str:
    """One word for `lab status`."""
    match state:
        case Waiting(reason=reason):
            return reason
        case Running():
            return "Running"
        case Terminated(reason=reason):
            return reason

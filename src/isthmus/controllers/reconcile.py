"""The one shape of every controller: look at the plan, carry it out, look again.

    keys(db, place) -> what to attend        plan(db, key) -> the difference, as steps

A plan is a query, so it is made again exactly when something that it read has changed. Nothing is
remembered between looks: a crash at any moment, a second replica doing the same, or a write by
somebody else only makes the next plan another one. A key that fails is tried again after a pause
that grows, alone; its neighbours do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from isthmus.aio import Alarm, Backoff, Clock, Log
from isthmus.aio.supervise import describe as describe_error
from isthmus.aio.supervise import foreseen
from isthmus.board import Subscription
from isthmus.controllers.execute import Executor
from isthmus.controllers.listing import changed
from isthmus.controllers.lives import TERMINATING
from isthmus.controllers.steps import Plan, Wait, Write, describe, writes
from isthmus.controllers.time import Commit, Timekeeper
from isthmus.controllers.trouble import TROUBLE
from isthmus.engine import Delete, Put, Query, View, query
from isthmus.errors import AlreadyExists, Conflict, Forbidden, IsthmusError, NotFound
from isthmus.mesh.census import Place
from isthmus.mesh.tables import NAMESPACES

WORKERS = 32
"""Keys attended at the same time: as many small plans (5,000 pods to delete) share a commit."""
AT_ONCE = 16
"""Steps of one plan carried out at the same time: they share the store's group commits."""
FASTER = (AlreadyExists, NotFound, Conflict)
"""What happens where somebody else was faster: no news for anybody."""
PAUSES = Backoff(first=0.1, most=30.0)


P = ParamSpec("P")
T = TypeVar("T")


class Controller(NamedTuple):
    """One controller: its name in logs, the query that lists its keys, the query that plans.

    No two controllers share a query. `rest`: seconds between two writes for one key, where a write
    is dear and the newest state is all that counts.
    """

    name: str
    keys: Query[[Place], Sequence[Any]]
    plan: Query[[Any], Plan]
    rest: float = 0.0


class Means(NamedTuple):
    """What any long-running part is given."""

    clock: Clock
    random: Random
    log: Log


class Duty(NamedTuple):
    """One key of one controller."""

    controller: Controller
    key: Any


class Board(Protocol):
    """What the shell needs of `board.Board`."""

    async def at(self, revision: int) -> None: ...
    def read(self, query: Query[P, T], /, *key: P.args, **named: P.kwargs) -> T: ...
    def subscribe(self) -> Subscription: ...


@query
def places(db: View, cluster: str) -> tuple[Place, ...]:
    """Every namespace of a cluster, and the place of what is in none."""
    top = Place(cluster, "")
    return (top, *(Place(cluster, key.name) for key in NAMESPACES.names(db, top)))


class Waiting:
    """Which tasks are to be attended: first come, first served, each by one worker at a time."""

    def __init__(self) -> None:
        self._ready: dict[Duty, None] = {}
        self._busy: set[Duty] = set()
        self._again: set[Duty] = set()
        self._some = asyncio.Event()

    def add(self, duty: Duty) -> None:
        """Attend the duty soon; if it is being attended now, once more after that."""
        if duty in self._busy:
            self._again.add(duty)
        else:
            self._ready[duty] = None
            self._some.set()

    def discard(self, duty: Duty) -> None:
        """Not any more."""
        self._ready.pop(duty, None)
        self._again.discard(duty)

    async def take(self) -> Duty:
        """The next duty, held until `done`."""
        while not self._ready:
            self._some.clear()
            await self._some.wait()
        duty = next(iter(self._ready))
        del self._ready[duty]
        self._busy.add(duty)
        return duty

    def calm(self, duty: Duty) -> None:
        """What was asked for while the duty was attended is seen to otherwise."""
        self._again.discard(duty)

    def done(self, duty: Duty) -> None:
        """The worker let go of the duty."""
        self._busy.discard(duty)
        if duty in self._again:
            self._again.discard(duty)
            self.add(duty)

    @property
    def idle(self) -> bool:
        """Nothing to attend, nobody at it."""
        return not self._ready and not self._busy


class Reconciler:
    """Runs controllers for one cluster."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        cluster: str,
        board: Board,
        executor: Executor,
        timekeeper: Timekeeper,
        means: Means,
        commit: Commit = lambda _: None,
    ) -> None:
        self._commit = commit
        self._controllers = controllers
        self._cluster = cluster
        self._board = board
        self._executor = executor
        self._timekeeper = timekeeper
        self._clock, self._random, self._log = means
        self._waiting = Waiting()
        self._plans: dict[Duty, Plan] = {}
        self._listed: dict[tuple[Controller, Place], tuple[Any, ...]] = {}
        self._failures: dict[Duty, int] = {}
        self._pauses: dict[Duty, Alarm] = {}
        self._resting: dict[Duty, Alarm] = {}

    async def run(self) -> None:
        """Attend until cancelled. Begins when the board has absorbed the store once."""
        await self._board.at(0)
        self._timekeeper.start()
        try:
            async with self._board.subscribe() as watched, asyncio.TaskGroup() as group:
                group.create_task(self._follow(watched))
                for _ in range(WORKERS):
                    group.create_task(self._work())
        finally:
            self._forget_all()

    @property
    def idle(self) -> bool:
        """Nothing to attend now; something may still wait for its pause or for a moment."""
        delayed = any(writes(self._plans.get(duty, ())) for duty in self._resting)
        return self._waiting.idle and not self._pauses and not delayed

    @property
    def attended(self) -> int:
        """How many keys it has the plans of."""
        return len(self._plans)

    def _forget_all(self) -> None:
        self._timekeeper.stop()
        for alarm in (*self._pauses.values(), *self._resting.values()):
            alarm.cancel()
        for held in (self._pauses, self._resting, self._failures, self._plans, self._listed):
            held.clear()
        self._waiting = Waiting()

    # ------------------------------------------------------------- watching

    async def _follow(self, watched: Subscription) -> None:
        watched.add(places, self._cluster)
        seen: tuple[Place, ...] = ()
        plans = {controller.plan: controller for controller in self._controllers}
        lists = {controller.keys: controller for controller in self._controllers}
        while True:
            changes = await watched.next()
            # What drops goes last: a plan of the same moment must not bring back a key that is
            # gone, nor a list a namespace.
            for (cell, *key), value in changes.items():
                if cell in plans:
                    self._notice(Duty(plans[cell], key[0]), value)
            for (cell, *key), value in changes.items():
                if cell in lists:
                    self._list(watched, lists[cell], key[0], value)
            now = changes.get((places, self._cluster), seen)
            self._relist(watched, seen, now)
            seen = now

    def _relist(self, watched: Subscription, before: Sequence[Place], now: Sequence[Place]) -> None:
        gone, new = set(before).difference(now), set(now).difference(before)
        for controller in self._controllers:
            for place in gone:
                watched.drop(controller.keys, place)
                self._list(watched, controller, place, ())
            for place in sorted(new):
                watched.add(controller.keys, place)

    def _list(
        self, watched: Subscription, controller: Controller, place: Place, keys: Sequence[Any]
    ) -> None:
        before = self._listed.pop((controller, place), ())
        if keys:
            self._listed[controller, place] = tuple(keys)
        gone, new = changed(before, keys)
        for key in gone:
            watched.drop(controller.plan, key)
            self._drop(Duty(controller, key))
        for key in sorted(new):
            watched.add(controller.plan, key)

    def _drop(self, duty: Duty) -> None:
        self._expect(self._plans.pop(duty, ()), ())
        self._forgive(duty)
        self._waiting.discard(duty)
        for alarms in (self._pauses, self._resting):
            if alarm := alarms.pop(duty, None):
                alarm.cancel()

    def _notice(self, duty: Duty, plan: Plan) -> None:
        self._expect(self._plans.get(duty, ()), plan)
        self._plans[duty] = plan
        if writes(plan) and duty not in self._resting:
            self._waiting.add(duty)

    def _expect(self, before: Plan, now: Plan) -> None:
        for step in now:
            if isinstance(step, Wait):
                self._timekeeper.expect(step.until)
        for step in before:
            if isinstance(step, Wait):
                self._timekeeper.forget(step.until)

    # -------------------------------------------------------------- working

    async def _work(self) -> None:
        while True:
            duty = await self._waiting.take()
            try:
                await self._attend(duty)
            finally:
                self._waiting.done(duty)

    async def _attend(self, duty: Duty) -> None:
        """Carry out the newest plan; if the same plan is still there afterwards, it has failed."""
        steps = self._look(duty)
        faults, revision = await self._carry_out(steps)
        try:
            await self._board.at(revision)
        except IsthmusError as fault:
            faults.append(fault)
        left = self._look(duty)
        if faults or (left and left == steps):
            self._fail(duty, steps, faults)
            return
        self._forgive(duty)
        if steps and duty.controller.rest and duty in self._plans:
            self._let_rest(duty)
        elif left:
            self._waiting.add(duty)

    def _let_rest(self, duty: Duty) -> None:
        """Nothing for this key for a while; then what the tables say by that time."""
        self._waiting.calm(duty)
        self._resting[duty] = self._clock.call_later(
            duty.controller.rest, lambda: self._rested(duty)
        )

    def _rested(self, duty: Duty) -> None:
        del self._resting[duty]
        if self._look(duty):
            self._waiting.add(duty)

    def _look(self, duty: Duty) -> tuple[Write, ...]:
        """What the tables say now, be it newer than what the subscription told."""
        if duty not in self._plans:
            return ()
        try:
            return writes(self._board.read(duty.controller.plan, duty.key))
        except Exception:  # noqa: BLE001  # the engine has logged the bug; the last plan stands
            return ()

    async def _carry_out(self, steps: Sequence[Write]) -> tuple[list[Exception], int]:
        faults: list[Exception] = []
        revision = 0
        for at in range(0, len(steps), AT_ONCE):
            async with asyncio.TaskGroup() as group:
                tries = [group.create_task(self._try(step)) for step in steps[at : at + AT_ONCE]]
            for done in tries:
                outcome = done.result()
                if isinstance(outcome, int):
                    revision = max(revision, outcome)
                else:
                    faults.append(outcome)
        return faults, revision

    async def _try(self, step: Write) -> int | Exception:
        try:
            return await self._executor.execute(step)
        except FASTER as fault:
            return fault  # somebody was faster: look again
        except Exception as fault:  # noqa: BLE001  # one bad step never stops the others
            if _too_late(fault):
                return fault
            trace = None if foreseen(fault) else fault
            why = describe_error(fault)
            self._log.warning("step refused", step=describe(step), error=why, exc_info=trace)
            return fault

    def _fail(self, duty: Duty, steps: Sequence[Write], faults: Sequence[Exception]) -> None:
        """Look again after a pause, unless the key is gone meanwhile."""
        if duty not in self._plans:
            return
        if not faults:
            undone = [describe(step) for step in steps[:3]]
            self._log.warning("plan without end", controller=duty.controller.name, steps=undone)
        self._tell(duty, faults)
        failures = self._failures[duty] = self._failures.get(duty, 0) + 1
        if alarm := self._pauses.pop(duty, None):
            alarm.cancel()
        pause = PAUSES.pause(failures, self._random)
        self._pauses[duty] = self._clock.call_later(pause, lambda: self._retry(duty))

    def _tell(self, duty: Duty, faults: Sequence[Exception]) -> None:
        """Trouble that is more than somebody being faster."""
        told = [describe_error(each) for each in faults if not isinstance(each, FASTER)]
        if told:
            self._commit([Put(TROUBLE, (duty.controller.name, duty.key), told[0])])

    def _forgive(self, duty: Duty) -> None:
        if self._failures.pop(duty, None) is not None:
            self._commit([Delete(TROUBLE, (duty.controller.name, duty.key))])

    def _retry(self, duty: Duty) -> None:
        self._pauses.pop(duty, None)
        if writes(self._plans.get(duty, ())):
            self._waiting.add(duty)


def _too_late(fault: Exception) -> bool:
    """The namespace is on its way out, which the tables do not know yet: no news for anybody."""
    return isinstance(fault, Forbidden) and any(c.reason == TERMINATING for c in fault.causes)

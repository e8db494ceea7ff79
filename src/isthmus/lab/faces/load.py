"""Load: asks a service at a steady rate, for as long as it runs."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from isthmus.lab.faces import run
from isthmus.lab.faces.http import BadMessageError, fetch
from isthmus.lab.faces.pace import within
from isthmus.lab.faces.run import Settings

PATIENCE: Final = 10.0
AT_ONCE: Final = 128
"""Requests under way; what would be more is left out, and counted as `busy`."""
_REPORT: Final = 10.0


class Load:
    """Asks LOAD_TARGET LOAD_RPS times a second. LOAD_DEBUG tells every answer."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._target = found.env.get("LOAD_TARGET") or "face"
        self._pause = 1 / max(run.number(found.env, "LOAD_RPS", 1, most=10_000), 1)
        self._debug = run.truth(found.env, "LOAD_DEBUG", default=False)
        self._task: asyncio.Task[None] | None = None
        self.counts: Counter[str] = Counter()

    async def start(self, host: str, port: int) -> int:
        """Begin. Nothing listens: the port is 0."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        return 0

    async def stop(self, grace: float) -> None:
        """End, and tell what was counted."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=grace)
        self._report()

    async def _run(self) -> None:
        pace, room = self._found.pace, asyncio.Semaphore(AT_ONCE)
        begun = told = pace.now()
        sent = 0
        async with asyncio.TaskGroup() as group:
            while True:
                if room.locked():
                    self.counts["busy"] += 1
                else:
                    await room.acquire()
                    group.create_task(self._one(room))
                sent += 1
                await pace.sleep(max(0.0, begun + sent * self._pause - pace.now()))
                if pace.now() - told >= _REPORT:
                    told = pace.now()
                    self._report()

    async def _one(self, room: asyncio.Semaphore) -> None:
        try:
            async with within(PATIENCE):
                got = await fetch(self._target, "/", ())
            outcome = str(got.status)
        except TimeoutError:
            outcome = "timeout"
        except (OSError, BadMessageError) as fault:
            outcome = type(fault).__name__
        finally:
            room.release()
        self.counts[outcome] += 1
        if self._debug:
            run.say(f"faces: load got {outcome} from {self._target}")

    def _report(self) -> None:
        shown = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        run.say(f"faces: load of {self._target}: {shown or 'nothing yet'}")


def main(argv: Sequence[str]) -> int:
    """Run it."""
    return run.run("load", argv, Load)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

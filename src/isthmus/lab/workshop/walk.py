"""One walk: each command is shown and run, what must be seen is said, looked for, and told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from isthmus.errors import UserFault
from isthmus.lab.workshop.page import Page
from isthmus.lab.workshop.shell import Done
from isthmus.lab.workshop.sights import Seen, Sight

PATIENCE: Final = 30.0
"""Seconds within which something must be seen, unless a step says otherwise."""
START: Final = 60.0
"""Seconds that the lab's pods may take to serve the page."""
AGAIN: Final = 0.3
"""Seconds between two looks."""
SHOWN: Final = 24
"""Lines of a command's output that are shown."""

Say = Callable[[str], None]
Pause = Callable[[float], None]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Commands, and what must be seen after them.

    `looks`: the commands change nothing, so a walk that only passes through may leave them out.
    """

    says: str
    commands: tuple[str, ...] = ()
    sees: tuple[Sight, ...] = ()
    looks: bool = False
    patience: float = PATIENCE


class Chapter(msgspec.Struct, frozen=True):
    """A part of the story. `name` is what --only takes."""

    name: str
    title: str
    steps: tuple[Step, ...]


class Verdict(NamedTuple):
    """How one chapter went; `missing` says what was not seen."""

    chapter: Chapter
    seconds: float
    missing: tuple[str, ...]


class Runs(Protocol):
    """A shell."""

    def run(self, command: str) -> Done:
        """Run a command line."""
        ...


class Tells(Protocol):
    """A clock."""

    def now(self) -> float:
        """Seconds since some time."""
        ...


class Walk:
    """Goes through chapters."""

    def __init__(self, shell: Runs, page: Page, clock: Tells, pause: Pause, say: Say) -> None:
        self._shell = shell
        self.page = page
        self._clock = clock
        self._pause = pause
        self._say = say
        self._command = ""
        self._done = Done(0, "")

    # --------------------------------------------------------------------------- where sights look

    @property
    def printed(self) -> str:
        """What the last command printed."""
        return self._done.text

    def again(self) -> str:
        """Run it once more."""
        self._done = self._shell.run(self._command)
        return self._done.text

    # ------------------------------------------------------------------------------------- walking

    def settle(self) -> None:
        """Wait until the page is served: pods may still be starting."""
        end = self._clock.now() + START
        while (cell := self.page.cell(0, 0)).status != 200 and self._clock.now() < end:
            self._pause(AGAIN)
        self._say(f"It shows {cell.shown}.")

    def pass_through(self, chapters: Sequence[Chapter]) -> None:
        """Only do what chapters do, without looking."""
        for chapter in chapters:
            self._say(f"\n(passing through: {chapter.title})")
            for step in chapter.steps:
                for command in () if step.looks else step.commands:
                    if not self._run(command):
                        self._say(f"  failed: {_last(self._done.text)}")

    def chapter(self, chapter: Chapter) -> Verdict:
        """Walk one chapter."""
        begin = self._clock.now()
        self._say(f"\n{chapter.title}\n{'=' * len(chapter.title)}")
        missing = [told for step in chapter.steps for told in self._step(step)]
        return Verdict(chapter, self._clock.now() - begin, tuple(missing))

    def _step(self, step: Step) -> list[str]:
        self._say(f"\n{step.says}")
        missing = []
        for command in step.commands:
            self._show(command)
            if not self._run(command):
                missing.append(f"`{_first(command)}` ended with exit code {self._done.code}")
            self._say(_output(self._done.text))
        missing += [sight.says for sight in step.sees if not self._look(sight, step.patience)]
        return missing

    def _run(self, command: str) -> bool:
        self._command = command
        self._done = self._shell.run(command)
        return self._done.code == 0

    def _look(self, sight: Sight, patience: float) -> bool:
        self._say(f"  must be seen: {sight.says}")
        begin = self._clock.now()
        found = sight.look(self)
        while not found.there and self._clock.now() - begin < patience:
            self._pause(AGAIN)
            found = sight.look(self)
        self._tell(found, self._clock.now() - begin)
        return found.there

    def _tell(self, found: Seen, seconds: float) -> None:
        mark = "√ seen" if found.there else "× NOT SEEN"
        self._say(f"  {mark} after {seconds:.1f} s: {found.what}")

    def _show(self, command: str) -> None:
        first, *more = command.splitlines()
        self._say("\n".join([f"  $ {first}", *(f"    {line}" for line in more)]))


def choose(
    chapters: Sequence[Chapter], only: str, until: str
) -> tuple[Sequence[Chapter], Sequence[Chapter]]:
    """Which chapters to pass through, and which to walk.

    Raises:
        UserFault: there is no chapter of that name; names them all.
    """
    names = [each.name for each in chapters]
    for name in (only, until):
        if name and name not in names:
            raise UserFault(f"there is no chapter {name!r}; there are: {', '.join(names)}")
    if only:
        at = names.index(only)
        return chapters[:at], chapters[at : at + 1]
    return (), chapters[: names.index(until) + 1] if until else chapters


def report(verdicts: Sequence[Verdict]) -> str:
    """A line for each chapter, and one for each thing that was not seen."""
    lines = []
    for each in verdicts:
        mark = "×" if each.missing else "√"
        lines.append(f"{mark} {each.chapter.name:<12} {each.seconds:6.1f} s  {each.chapter.title}")
        lines += [f"    not seen: {told}" for told in each.missing]
    return "\n".join(lines)


def _output(text: str) -> str:
    lines = text.rstrip("\n").splitlines()
    shown = lines[:SHOWN] + ([f"... {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])
    return "\n".join(f"  | {line}" for line in shown)


def _first(command: str) -> str:
    return command.splitlines()[0].rstrip(" \\")


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing printed"

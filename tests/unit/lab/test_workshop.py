"""The walk's eyes: what counts as seen, at the page and in what commands print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.errors import UserFault
from isthmus.lab.faces.words import COLORS, SMILEYS, entity
from isthmus.lab.workshop.chapters import CHAPTERS, FEW
from isthmus.lab.workshop.page import Cell, Page, cell, summary
from isthmus.lab.workshop.shell import Done
from isthmus.lab.workshop.sights import Differs, Faces, Prints
from isthmus.lab.workshop.walk import Chapter, Step, Verdict, Walk, choose, report

GRIN = Cell("edge", 200, "Grinning", "blue", "kind-smiley-1")
CENTER = Cell("center", 200, "HeartEyes", "grey")
CURSE = Cell("edge", 200, "Cursing", "blue", "", ("smiley: no",))
NOTHING = Cell("edge", 0)


class FakePage(Page):
    """Shows what it was given, round by round; the last for ever."""

    def __init__(self, *rounds: list[Cell]) -> None:
        super().__init__("http://127.0.0.1:1/")
        self.rounds = list(rounds)
        self.users: list[str] = []

    def round(self, user: str = "") -> list[Cell]:
        self.users.append(user)
        return self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]


class Where:
    """Where sights look: a page, and a command's outputs, one for each run."""

    def __init__(self, page: FakePage, *printed: str) -> None:
        self.page = page
        self._all = list(printed)

    @property
    def printed(self) -> str:
        return self._all[0]

    def again(self) -> str:
        if len(self._all) > 1:
            self._all.pop(0)
        return self._all[0]


def faces(sight: Faces, *cells: Cell) -> bool:
    return sight.look(Where(FakePage(list(cells)), "")).there


def test_an_answer_becomes_names() -> None:
    body = {
        "smiley": entity(SMILEYS["HeartEyes"]),
        "color": COLORS["blue"],
        "errors": [],
        "answered": {"smiley": {"cluster": "kind-smiley-2"}},
    }
    found = cell("center", 200, json.dumps(body).encode())
    assert found == Cell("center", 200, "HeartEyes", "blue", "kind-smiley-2")
    assert cell("edge", 500, b"no") == Cell("edge", 500)
    assert summary([found, GRIN, GRIN, cell("edge", 500, b"")]) == (
        "2 Grinning on blue, 1 HeartEyes on blue, 1 status 500"
    )


def test_smileys() -> None:
    only = Faces(says="", only=("Grinning",))
    assert faces(only, GRIN)
    assert not faces(only, GRIN, CURSE)
    assert not faces(only, NOTHING)
    both = Faces(says="", all_of=("Grinning", "HeartEyes"))
    assert faces(both, GRIN, CENTER)
    assert not faces(both, GRIN)


def test_the_share_that_fails() -> None:
    half = Faces(says="", failing=(0.4, 0.6))
    assert faces(half, GRIN, CURSE)
    assert not faces(half, CURSE)
    assert not faces(half, GRIN, GRIN, CURSE)
    none = Faces(says="", failing=FEW)
    assert faces(none, GRIN)
    assert not faces(none, *[GRIN] * 9, CURSE)


def test_an_answer_that_never_came_is_a_failure() -> None:
    assert not faces(Faces(says="", failing=FEW), GRIN, NOTHING)


def test_backgrounds() -> None:
    sight = Faces(says="", edge="blue", center="grey")
    assert faces(sight, GRIN, CENTER)
    assert not faces(sight, GRIN, Cell("center", 200, "Grinning", "blue"))
    assert not faces(sight, NOTHING)


def test_a_user_is_said_and_rounds_are_counted() -> None:
    page = FakePage([GRIN])
    Faces(says="", user="Center", rounds=3).look(Where(page, ""))
    assert page.users == ["Center"] * 3


@pytest.mark.parametrize(
    ("sight", "printed", "there"),
    [
        (Prints(says="", line="b"), "a\nb", True),
        (Prints(says="", line="^b$", times=2), "b\nb", True),
        (Prints(says="", line="^b$", times=1), "b\nb", False),
        (Prints(says="", line="b", times=0), "a", True),
        (Prints(says="", line="a", lacks="b"), "a\nb", False),
        (Prints(says="", lacks="c"), "a", True),
    ],
)
def test_what_is_printed(sight: Prints, printed: str, there: bool) -> None:
    assert sight.look(Where(FakePage([]), printed)).there is there


def test_a_command_that_looks_is_run_again() -> None:
    assert Prints(says="", line="b").look(Where(FakePage([]), "a", "b")).there
    assert not Prints(says="", line="b", rerun=False).look(Where(FakePage([]), "a", "b")).there


def test_numbers_that_grow_or_stay() -> None:
    number = r"^n (\d+)$"
    page = FakePage([GRIN])
    assert Differs(says="", number=number).look(Where(page, "n 1\nn 2", "n 1\nn 3")).there
    assert not Differs(says="", number=number).look(Where(page, "n 1", "n 1")).there
    assert Differs(says="", number=number, grows=False).look(Where(page, "n 1", "n 1")).there
    assert Differs(says="", number=number, grows=False).look(Where(page, "n 1", "x")).there
    assert not Differs(says="", number=number, grows=False).look(Where(page, "n 1", "n 2")).there
    assert not Differs(says="", number=number).look(Where(page, "n 1", "x")).there
    assert page.users == [""] * 6


# ------------------------------------------------------------------------------------------ walk


class FakeShell:
    """Remembers commands; those named `fails` fail."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, command: str) -> Done:
        self.ran.append(command)
        return Done(1 if "fails" in command else 0, f"out of {command}\n")


class Hand:
    """A clock that waiting turns."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def pause(self, span: float) -> None:
        self.at += span


def walked(chapter: Chapter, page: FakePage) -> tuple[Verdict, FakeShell, Sequence[str]]:
    shell, hand, said = FakeShell(), Hand(), list[str]()
    walk = Walk(shell, page, hand, hand.pause, said.append)
    return walk.chapter(chapter), shell, said


def test_what_is_seen_late_is_seen() -> None:
    step = Step(says="Do", commands=("act",), sees=(Faces(says="grins", only=("Grinning",)),))
    verdict, shell, said = walked(Chapter("c", "C", (step,)), FakePage([CURSE], [CURSE], [GRIN]))
    assert verdict.missing == ()
    assert shell.ran == ["act"]
    assert "  $ act" in said
    assert any("√ seen after 0.6 s: 1 Grinning on blue" in line for line in said)


def test_what_is_not_seen_and_what_fails_is_told() -> None:
    step = Step(says="Do", commands=("fails",), sees=(Faces(says="grins", only=("Grinning",)),))
    verdict, _, said = walked(Chapter("c", "C", (step,)), FakePage([CURSE]))
    assert verdict.missing == ("`fails` ended with exit code 1", "grins")
    assert any("× NOT SEEN after 30" in line for line in said)
    assert report([verdict]).splitlines()[1:] == [
        "    not seen: `fails` ended with exit code 1",
        "    not seen: grins",
    ]


def test_passing_through_does_without_looking() -> None:
    shell, hand = FakeShell(), Hand()
    steps = (Step(says="", commands=("act",)), Step(says="", commands=("look",), looks=True))
    walk = Walk(shell, FakePage([CURSE]), hand, hand.pause, lambda _: None)
    walk.pass_through([Chapter("c", "C", steps)])
    assert shell.ran == ["act"]


def test_which_chapters() -> None:
    names = [each.name for each in CHAPTERS]
    assert len(set(names)) == len(names)
    before, chosen = choose(CHAPTERS, "scale", "")
    assert [each.name for each in before] == ["setup", "install", "link", "mirror"]
    assert [each.name for each in chosen] == ["scale"]
    assert choose(CHAPTERS, "", "link") == ((), CHAPTERS[:3])
    assert choose(CHAPTERS, "", "") == ((), CHAPTERS)
    with pytest.raises(UserFault, match="there is no chapter 'x'; there are: setup"):
        choose(CHAPTERS, "", "x")


def test_every_manifest_is_applied_and_every_applied_one_is_there() -> None:
    folder = Path(__file__).parents[3] / "src" / "isthmus" / "lab" / "workshop" / "k8s"
    commands = [c for chapter in CHAPTERS for step in chapter.steps for c in step.commands]
    named = {word for command in commands for word in command.split() if word.startswith("k8s/")}
    assert named == {f"k8s/{each.name}" for each in folder.iterdir()}


DOCS = Path(__file__).parents[3] / "docs"


def test_the_chapters_are_those_of_the_docs() -> None:
    text = (DOCS / "multicluster.md").read_text().partition("| chapter | what |")[2]
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert listed == [each.name for each in CHAPTERS]


def test_the_docs_show_endpoints_as_the_walk_looks_for_them() -> None:
    text = (DOCS / "multicluster.md").read_text()
    sights = [
        sight
        for chapter in CHAPTERS
        if chapter.name == "mirror"
        for step in chapter.steps
        for sight in step.sees
        if isinstance(sight, Prints) and sight.times == 1
    ]
    assert len(sights) == 3
    assert all(sight.look(Where(FakePage([]), text)).there for sight in sights)


STATS = """
NAME  SERVICE              ROUTE      TYPE  BACKEND  SUCCESS   RPS  LATENCY_P50  TIMEOUTS  RETRIES
face  smiley-federated:80  [default]                 {good}  7.93         11ms     0.00%    {more}
"""


@pytest.mark.parametrize(
    ("good", "more", "seen"),
    [
        ("69.31%", "0.00%", [True, False]),
        (" 0.00%", "0.00%", [True, False]),
        ("100.00%", "41.10%", [False, True]),
        ("100.00%", "0.00%", [False, False]),
        ("NaN%", "NaN%", [False, False]),
    ],
)
def test_the_tables_of_success_are_read(good: str, more: str, seen: list[bool]) -> None:
    text = STATS.format(good=good, more=more)
    sights = [
        sight
        for chapter in CHAPTERS
        if chapter.name == "errors"
        for step in chapter.steps
        for sight in step.sees
        if isinstance(sight, Prints)
    ]
    assert [sight.look(Where(FakePage([]), text)).there for sight in sights] == seen

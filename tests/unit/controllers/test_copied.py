from __future__ import annotations

from typing import Any

import pytest

from isthmus.controllers.copied import RECORD, Keys, copies, digest, excludes, metadata
from isthmus.model.core import Service
from isthmus.model.meta import Meta

MARKS = Keys({"mirror.linkerd.io/mirrored-service": "true"}, {})
NOTHING = Keys({}, {})


class Made:
    """A Service that is brought to what is wanted again and again, as an API would."""

    def __init__(self) -> None:
        self.row: Service | None = None

    def wants(self, copied: Keys, marks: Keys = MARKS) -> dict[str, Any]:
        patch = metadata(self.row, marks, copied)
        held = self.row.metadata if self.row is not None else Meta()
        labels = _merged(held.labels, patch.get("labels"))
        self.set(labels, _merged(held.annotations, patch.get("annotations")))
        assert metadata(self.row, marks, copied) == {}
        return patch

    def set(self, labels: dict[str, str], annotations: dict[str, str]) -> None:
        self.row = Service(metadata=Meta(labels=labels, annotations=annotations))

    @property
    def labels(self) -> dict[str, str]:
        assert self.row is not None
        return dict(self.row.metadata.labels)

    def people_set(self, **labels: str) -> None:
        assert self.row is not None
        self.set({**self.labels, **labels}, dict(self.row.metadata.annotations))

    def people_unset(self, *names: str) -> None:
        assert self.row is not None
        kept = {name: text for name, text in self.labels.items() if name not in names}
        self.set(kept, dict(self.row.metadata.annotations))


def _merged(now: Any, patch: Any) -> dict[str, str]:  # noqa: ANN401 - mappings
    return {name: text for name, text in {**now, **(patch or {})}.items() if text is not None}


@pytest.fixture
def made() -> Made:
    made = Made()
    made.wants(Keys({"team": "red"}, {"note": "1"}))
    return made


def test_what_is_copied_is_recorded_by_a_digest(made: Made) -> None:
    assert made.labels == {"mirror.linkerd.io/mirrored-service": "true", "team": "red"}
    assert made.row is not None
    record = made.row.metadata.annotations[RECORD]
    assert digest("red") in record
    assert "red" not in record.replace(digest("red"), "")


def test_a_copy_follows(made: Made) -> None:
    made.wants(Keys({"team": "blue"}, {}))
    assert made.labels["team"] == "blue"
    made.wants(NOTHING)
    assert "team" not in made.labels


def test_what_people_change_is_theirs(made: Made) -> None:
    made.people_set(team="green", own="1")
    made.wants(Keys({"team": "blue"}, {"note": "1"}))
    made.wants(NOTHING)
    assert (made.labels["team"], made.labels["own"]) == ("green", "1")


def test_what_people_set_before_is_theirs_and_stays_when_a_copy_goes(made: Made) -> None:
    made.people_set(owner="kim")
    made.wants(Keys({"team": "red", "owner": "ana"}, {}))
    assert made.labels["owner"] == "kim"
    made.wants(NOTHING)
    assert made.labels["owner"] == "kim"


def test_what_people_take_away_comes_back(made: Made) -> None:
    made.people_unset("team")
    made.wants(Keys({"team": "red"}, {}))
    assert made.labels["team"] == "red"


def test_marks_are_always_ours(made: Made) -> None:
    made.people_set(**{"mirror.linkerd.io/mirrored-service": "false"})
    made.people_set(**{"mirror.linkerd.io/cluster-name": "elsewhere"})
    made.wants(NOTHING)
    assert made.labels == {"mirror.linkerd.io/mirrored-service": "true"}


def test_a_label_that_exports_a_mirror_is_a_persons_own(made: Made) -> None:
    made.people_set(**{"mirror.linkerd.io/exported": "true"})
    made.wants(NOTHING)
    assert made.labels["mirror.linkerd.io/exported"] == "true"


def test_without_a_record_what_we_would_copy_is_ours(made: Made) -> None:
    """As where another program made the mirror."""
    made.set({"team": "stale", "own": "1"}, {})
    made.wants(Keys({"team": "red"}, {}))
    assert (made.labels["team"], made.labels["own"]) == ("red", "1")


@pytest.mark.parametrize("record", ["junk", "[]", '{"labels": 3}', "null"])
def test_a_record_that_is_nonsense_is_none(made: Made, record: str) -> None:
    made.set({"team": "stale"}, {RECORD: record})
    made.wants(Keys({"team": "red"}, {}))
    assert made.labels["team"] == "red"


def test_what_is_never_copied() -> None:
    meta = Meta(
        labels={"mirror.linkerd.io/exported": "true", "mirror.linkerd.iox": "1", "a": "b"},
        annotations={
            "multicluster.linkerd.io/remote-discovery": "x@y",
            "multicluster.isthmus.dev/copied": "{}",
            "multicluster.isthmus.dev/member.east": "drain",
            "service.kubernetes.io/topology-mode": "Auto",
            "a": "b",
        },
    )
    assert copies(meta, (), ()) == Keys({"a": "b"}, {"a": "b"})


@pytest.mark.parametrize(
    ("entry", "name", "excluded"),
    [
        ("tool.test/*", "tool.test/app", True),
        ("tool.test/*", "tool.testing/app", False),
        ("tool.test/*", "tool.test", False),
        ("tool.test/app", "tool.test/app", True),
        ("tool.test/app", "tool.test/app2", False),
        ("*", "anything", False),
        ("", "", True),
    ],
)
def test_exclusions(entry: str, name: str, *, excluded: bool) -> None:
    assert excludes(entry, name) is excluded

from __future__ import annotations

import msgspec

from isthmus.model.crd import kind_of
from isthmus.model.kind import Kind
from isthmus.serve.kube import show
from isthmus.serve.kube.show import Showings
from tests.unit.model.crd.widgets import definition
from tests.unit.serve.kube.kinds import WIDGET


def defined(number: int) -> Kind:
    return kind_of(definition(plural=f"widgets{number}")["spec"], f"u{number}")


def test_a_showing_is_made_once_for_each_record_of_a_kind() -> None:
    showings, version = Showings(), WIDGET.versions[0]
    assert showings.of(WIDGET, version) is showings.of(WIDGET, version)
    old, new = defined(1), defined(1)
    assert showings.of(old, old.versions[0]) is not showings.of(new, new.versions[0])


def test_definitions_that_come_and_go_leave_nothing_that_grows() -> None:
    showings, version = Showings(), WIDGET.versions[0]
    first = showings.of(WIDGET, version)
    kind = defined(0)
    for number in range(show.MOST_SHOWINGS):
        other = msgspec.structs.replace(kind, plural=f"widgets{number}")
        showings.of(other, other.versions[0])
    assert showings.of(WIDGET, version) is not first

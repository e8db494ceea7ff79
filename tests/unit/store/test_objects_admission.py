"""Dry runs, and rules that need more than the object."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from isthmus.errors import (
    Forbidden,
    Invalid,
    Unavailable,
)
from isthmus.model.key import Key
from isthmus.store import Committed, Compare, Delete, Put, codec
from isthmus.store.objects import Proposed, Verdict
from tests.unit.store.around import (
    SERVICE,
    Around,
    service,
    spec,
    status,
)

# -------------------------------------------------------------------- dry run


async def test_a_dry_run_writes_nothing(around: Around) -> None:
    dry = await around.objects.create(SERVICE, service(), dry_run=True)
    assert dry.document["spec"] == {"port": 80, "protocol": "TCP"}
    assert "resourceVersion" not in dry.document["metadata"]
    assert (dry.revision, dry.changed) == (0, True)
    assert around.store.revision == 0

    created = await around.objects.create(SERVICE, service())
    changed = await around.objects.update(SERVICE, "faces", "face", spec(port=9), dry_run=True)
    assert changed.document["spec"]["port"] == 9
    assert changed.document["metadata"]["generation"] == 2
    assert (changed.revision, changed.changed) == (created.revision, True)
    removed = await around.objects.delete(SERVICE, "faces", "face", dry_run=True)
    assert removed.removed
    assert around.store.revision == created.revision
    with pytest.raises(Invalid):
        await around.objects.update(SERVICE, "faces", "face", spec(port=-9), dry_run=True)


# -------------------------------------------------------------------- admissions


class Rule:
    """An admission made of a function; remembers what it saw."""

    def __init__(self, say: Callable[[Proposed], Verdict]) -> None:
        self.say = say
        self.seen: list[Proposed] = []

    async def admit(self, proposed: Proposed) -> Verdict:
        self.seen.append(proposed)
        return self.say(proposed)


def agree(proposed: Proposed) -> Verdict:
    return Verdict(proposed.new)


RESERVED = Key("reserved", "", "10.96.0.1")


async def test_admissions_see_each_write(around: Around) -> None:
    rule = Rule(agree)
    objects = around.with_admissions(rule)
    await objects.create(SERVICE, service())
    await objects.update(SERVICE, "faces", "face", spec(port=2))
    await objects.update(SERVICE, "faces", "face", status({"a": 1}), subresource="status")
    await objects.delete(SERVICE, "faces", "face")
    seen = [(p.old is None, p.new is None, p.subresource) for p in rule.seen]
    assert seen == [
        (True, False, ""),
        (False, False, ""),
        (False, False, "status"),
        (False, True, ""),
    ]
    assert {(p.kind.name, p.namespace, p.name) for p in rule.seen} == {("Service", "faces", "face")}
    created = rule.seen[0].new
    assert created is not None
    assert created["spec"]["protocol"] == "TCP", "defaults come before admissions"
    assert created["metadata"]["name"] == "face"


async def test_an_admission_may_change_the_document_and_write_besides(around: Around) -> None:
    def allot(proposed: Proposed) -> Verdict:
        if proposed.new is None:
            return Verdict(None, ops=(Delete(RESERVED),))
        held = proposed.old or {"spec": {}}
        if held["spec"].get("clusterIP"):
            return Verdict({**proposed.new, "spec": {**proposed.new["spec"], "clusterIP": "1"}})
        new = {**proposed.new, "spec": {**proposed.new["spec"], "clusterIP": "1"}}
        return Verdict(new, (Compare(RESERVED, 0),), (Put(RESERVED, b"face"),), ("allotted",))

    second = Rule(agree)
    objects = around.with_admissions(Rule(allot), second)
    written = await objects.create(SERVICE, service())
    assert written.document["spec"]["clusterIP"] == "1"
    assert written.warnings == ("allotted",)
    proposed = second.seen[0].new
    assert proposed is not None
    assert proposed["spec"]["clusterIP"] == "1", "admissions see what those before them did"
    reserved = await around.store.get(RESERVED)
    assert reserved is not None
    assert reserved.revision == written.revision

    same = await objects.update(SERVICE, "faces", "face", lambda _: service())
    assert not same.changed, "what an admission fills in again is no change"
    gone = await objects.delete(SERVICE, "faces", "face")
    assert gone.removed
    assert await around.store.get(RESERVED) is None


async def test_what_an_admission_changes_is_checked(around: Around) -> None:
    def spoil(proposed: Proposed) -> Verdict:
        return Verdict(spec(port=-1)(proposed.new or {}))

    with pytest.raises(Invalid, match="must be positive"):
        await around.with_admissions(Rule(spoil)).create(SERVICE, service())
    await around.objects.create(SERVICE, service())
    with pytest.raises(Invalid, match="must be positive"):
        await around.with_admissions(Rule(spoil)).update(SERVICE, "faces", "face", spec(a=1))


async def test_an_admission_may_refuse(around: Around) -> None:
    def refuse(_: Proposed) -> Verdict:
        raise Forbidden("not here")

    with pytest.raises(Forbidden, match="not here"):
        await around.with_admissions(Rule(refuse)).create(SERVICE, service(), dry_run=True)
    assert around.store.revision == 0


async def test_a_write_runs_again_when_an_admissions_compare_fails(around: Around) -> None:
    namespace = Key("namespaces", "", "faces")
    await around.store.txn((), (Put(namespace, b"1"),))
    held = around.store.revision
    rounds: list[int] = []

    class Lives:
        async def admit(self, proposed: Proposed) -> Verdict:
            record = await around.store.get(namespace)
            assert record is not None
            rounds.append(record.revision)
            if len(rounds) < 3:
                await around.store.txn((), (Put(namespace, b"again"),))
            return Verdict(proposed.new, (Compare(namespace, record.revision),))

    written = await around.with_admissions(Lives()).create(SERVICE, service())
    assert rounds == [held, held + 1, held + 2]
    assert written.revision == held + 3


async def test_running_again_ends(around: Around) -> None:
    wrong = Rule(lambda proposed: Verdict(proposed.new, (Compare(RESERVED, 99),)))
    objects = around.with_admissions(wrong)
    with pytest.raises(Unavailable, match='services "face" was changed by others during each of'):
        await objects.create(SERVICE, service())
    await around.objects.create(SERVICE, service())
    with pytest.raises(Unavailable):
        await objects.update(SERVICE, "faces", "face", spec(port=2))
    with pytest.raises(Unavailable):
        await objects.delete(SERVICE, "faces", "face", dry_run=True)
    assert around.store.revision == 1


async def test_what_an_admission_writes_alone_is_written(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    repair = Rule(lambda proposed: Verdict(proposed.new, ops=(Put(RESERVED, b"1"),)))
    written = await around.with_admissions(repair).update(
        SERVICE, "faces", "face", lambda document: document
    )
    assert await around.store.get(RESERVED) is not None
    assert (written.revision, written.changed) == (1, False)


async def test_an_object_that_was_never_ours_can_be_updated(around: Around) -> None:
    """Written by hand or by an older version: no uid, no generation."""
    bare = codec.encode(service() | {"metadata": {"name": "face", "namespace": "faces"}})
    done = await around.store.txn((), (Put(SERVICE.key("faces", "face"), bare),))
    assert done == Committed(1)
    written = await around.objects.update(SERVICE, "faces", "face", spec(port=5))
    assert written.document["metadata"]["generation"] == 1

"""Reading and updating objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from isthmus.errors import (
    Cause,
    Conflict,
    Invalid,
    NotFound,
)
from isthmus.model.kind import Document
from isthmus.store.objects import Preconditions
from tests.unit.store.around import (
    CONFIG_MAP,
    DEPLOYMENT,
    SERVICE,
    Around,
    kind,
    meta,
    service,
    spec,
    status,
    thing,
)

# -------------------------------------------------------------------- get and update


async def test_reading_an_object(around: Around) -> None:
    written = await around.objects.create(SERVICE, service())
    found = await around.objects.get(SERVICE, "faces", "face")
    assert (found.document, found.revision) == (written.document, written.revision)
    with pytest.raises(NotFound) as refusal:
        await around.objects.get(SERVICE, "faces", "smiley")
    assert refusal.value.message == 'services "smiley" not found'
    assert refusal.value.about.name == "smiley"


async def test_an_update_of_what_is_not_there(around: Around) -> None:
    with pytest.raises(NotFound):
        await around.objects.update(SERVICE, "faces", "face", spec(port=1))


async def test_a_change_of_wishes_counts_a_generation(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    written = await around.objects.update(SERVICE, "faces", "face", spec(port=81))
    assert written.document["metadata"]["generation"] == 2
    assert written.document["spec"]["port"] == 81
    assert written.document["metadata"]["resourceVersion"] == str(written.revision) == "2"


async def test_a_change_of_metadata_counts_none(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    written = await around.objects.update(SERVICE, "faces", "face", meta(labels={"a": "b"}))
    assert written.document["metadata"]["generation"] == 1
    assert written.document["metadata"]["labels"] == {"a": "b"}
    assert written.revision == 2


async def test_true_and_one_are_not_the_same_wish(around: Around) -> None:
    await around.objects.create(SERVICE, service(flag=1))
    written = await around.objects.update(SERVICE, "faces", "face", spec(flag=True))
    assert written.changed
    assert written.document["metadata"]["generation"] == 2
    assert (await around.raw(SERVICE, "face") or b"").count(b'"flag":true') == 1


async def test_an_update_that_changes_nothing_writes_nothing(around: Around) -> None:
    created = await around.objects.create(SERVICE, service())

    def reordered(document: Document) -> Document:
        return {name: document[name] for name in reversed(document)}

    for change in (lambda document: document, reordered, spec(protocol="TCP"), meta(generation=9)):
        written = await around.objects.update(SERVICE, "faces", "face", change)
        assert (written.document, written.revision) == (created.document, created.revision)
        assert not written.changed
    assert around.store.revision == created.revision


async def test_the_time_of_a_write_alone_is_no_change(around: Around) -> None:
    def apply(time: str, manager: str) -> Callable[[Document], Document]:
        return meta(managedFields=[{"manager": manager, "time": time}])

    await around.objects.create(SERVICE, service())
    first = await around.objects.update(SERVICE, "faces", "face", apply("1", "kubectl"))
    again = await around.objects.update(SERVICE, "faces", "face", apply("2", "kubectl"))
    assert (again.revision, again.changed) == (first.revision, False)
    other = await around.objects.update(SERVICE, "faces", "face", apply("3", "isthmus"))
    assert other.changed


async def test_a_whole_document_replaces_the_stored_one(around: Around) -> None:
    created = await around.objects.create(SERVICE, service(extra=1))
    written = await around.objects.update(SERVICE, "faces", "face", lambda _: service(port=8))
    metadata = written.document["metadata"]
    assert written.document["spec"] == {"port": 8, "protocol": "TCP"}
    assert metadata["uid"] == created.document["metadata"]["uid"]
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 2


async def test_metadata_the_server_owns_does_not_change(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    for field, value in [
        ("name", "other"),
        ("namespace", "other"),
        ("creationTimestamp", "1999-01-01T00:00:00Z"),
        ("deletionTimestamp", "1999-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 3),
    ]:
        with pytest.raises(Invalid, match="field is immutable") as refusal:
            await around.objects.update(SERVICE, "faces", "face", meta(**{field: value}))
        assert [cause.path for cause in refusal.value.causes] == [f"metadata.{field}"]


async def test_checks_see_the_old_object(around: Around) -> None:
    await around.objects.create(SERVICE, service(fixed=1))
    with pytest.raises(Invalid, match=r"^Service .* spec.fixed: Invalid value: field is immutable"):
        await around.objects.update(SERVICE, "faces", "face", spec(fixed=2))


async def test_a_version_in_the_document_is_a_precondition(around: Around) -> None:
    created = await around.objects.create(SERVICE, service())
    await around.objects.update(SERVICE, "faces", "face", spec(port=81))
    stale = {**created.document, "spec": {"port": 82}}
    with pytest.raises(Conflict) as refusal:
        await around.objects.update(SERVICE, "faces", "face", lambda _: stale)
    assert refusal.value.message == (
        'Operation cannot be fulfilled on services "face": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    for version in ("", "0"):
        free = {**stale, "metadata": {**stale["metadata"], "resourceVersion": version}}
        written = await around.objects.update(SERVICE, "faces", "face", lambda _: free)  # noqa: B023
        assert written.document["spec"]["port"] == 82


async def test_a_version_that_is_none_is_refused(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    for version in ("abc", "-1", "\uff11"):
        with pytest.raises(Invalid, match="must be a decimal number"):
            await around.objects.update(SERVICE, "faces", "face", meta(resourceVersion=version))


async def test_a_document_of_another_object_is_refused(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    with pytest.raises(Conflict, match="UID in precondition: other, UID in object meta: "):
        await around.objects.update(SERVICE, "faces", "face", meta(uid="other"))


async def test_preconditions(around: Around) -> None:
    created = await around.objects.create(SERVICE, service())
    uid = created.document["metadata"]["uid"]
    await around.objects.update(
        SERVICE, "faces", "face", spec(port=2), preconditions=Preconditions(uid, created.revision)
    )
    with pytest.raises(Conflict, match="ResourceVersion in precondition: 1, .* object meta: 2"):
        await around.objects.update(
            SERVICE, "faces", "face", spec(port=3), preconditions=Preconditions(revision=1)
        )
    with pytest.raises(Conflict, match="UID in precondition: other"):
        await around.objects.delete(SERVICE, "faces", "face", preconditions=Preconditions("other"))
    await around.objects.delete(SERVICE, "faces", "face", preconditions=Preconditions(uid, 2))


async def test_many_writers_all_get_through(around: Around) -> None:
    await around.objects.create(SERVICE, service(port=1))

    def more(document: Document) -> Document:
        return spec(port=document["spec"]["port"] + 1)(document)

    async with asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(around.objects.update(SERVICE, "faces", "face", more))
    found = await around.objects.get(SERVICE, "faces", "face")
    assert found.document["spec"]["port"] == 31
    assert found.document["metadata"]["generation"] == 31


async def test_a_change_may_work_in_place(around: Around) -> None:
    await around.objects.create(SERVICE, service())

    def in_place(document: Document) -> Document:
        document["spec"]["port"] = 90
        return document

    written = await around.objects.update(SERVICE, "faces", "face", in_place)
    assert written.changed
    assert written.document["metadata"]["generation"] == 2


# -------------------------------------------------------------------- status and other subresources


async def test_main_writes_leave_the_status_alone(around: Around) -> None:
    await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT, spec={"replicas": 1}))
    await around.objects.update(
        DEPLOYMENT, "faces", "x", status({"replicas": 1}), subresource="status"
    )
    written = await around.objects.update(DEPLOYMENT, "faces", "x", status({"replicas": 9}))
    assert (written.document["status"], written.changed) == ({"replicas": 1}, False)
    written = await around.objects.update(
        DEPLOYMENT, "faces", "x", lambda _: thing(DEPLOYMENT, spec={"replicas": 2})
    )
    assert written.document["status"] == {"replicas": 1}


async def test_status_writes_change_nothing_else(around: Around) -> None:
    await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT, spec={"replicas": 1}))

    def all_of_it(document: Document) -> Document:
        changed = meta(labels={"a": "b"}, managedFields=[{"manager": "x"}])(document)
        return {**spec(replicas=7)(changed), "status": {"replicas": 1}}

    written = await around.objects.update(DEPLOYMENT, "faces", "x", all_of_it, subresource="status")
    assert written.document["spec"] == {"replicas": 1}
    assert written.document["status"] == {"replicas": 1}
    assert "labels" not in written.document["metadata"]
    assert written.document["metadata"]["managedFields"] == [{"manager": "x"}]
    assert written.document["metadata"]["generation"] == 1
    gone = await around.objects.update(DEPLOYMENT, "faces", "x", status(None), subresource="status")
    assert "status" not in gone.document


async def test_a_status_write_obeys_versions(around: Around) -> None:
    created = await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT))
    await around.objects.update(DEPLOYMENT, "faces", "x", spec(replicas=2))
    with pytest.raises(Conflict):
        await around.objects.update(
            DEPLOYMENT, "faces", "x", lambda _: created.document, subresource="status"
        )


async def test_scale_is_a_write_of_wishes(around: Around) -> None:
    await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT, spec={"replicas": 1}))
    written = await around.objects.update(
        DEPLOYMENT, "faces", "x", spec(replicas=3), subresource="scale"
    )
    assert written.document["spec"] == {"replicas": 3}
    assert written.document["metadata"]["generation"] == 2


async def test_without_a_status_subresource_the_status_is_a_field(around: Around) -> None:
    await around.objects.create(CONFIG_MAP, thing(CONFIG_MAP, status={"a": 1}))
    written = await around.objects.update(CONFIG_MAP, "faces", "x", status({"a": 2}))
    assert written.document["status"] == {"a": 2}


async def test_a_kind_may_carry_over_what_an_update_left_out(around: Around) -> None:
    def keep(new: Document, old: Document | None) -> None:
        new["spec"].setdefault("nodePort", 30000 if old is None else old["spec"]["nodePort"])

    carrying = kind("Service", "services", carry=(keep,))
    created = await around.objects.create(carrying, service())
    assert created.document["spec"] == {"port": 80, "nodePort": 30000}
    written = await around.objects.update(carrying, "faces", "face", lambda _: service())
    assert not written.changed


async def test_what_is_marked_can_let_go_whatever_rules_it_breaks(around: Around) -> None:
    held = service()
    held["metadata"]["finalizers"] = ["a.b/c", "d.e/f"]
    await around.objects.create(SERVICE, held)
    await around.objects.delete(SERVICE, "faces", "face")
    never = Cause("spec", "can never be", "FieldValueInvalid")
    later = kind("Service", "services", check=(lambda _new, _old: [never],))
    with pytest.raises(Invalid):
        await around.objects.update(later, "faces", "face", spec(port=5))
    with pytest.raises(Invalid):
        await around.objects.update(
            later, "faces", "face", meta(finalizers=["a.b/c"], labels={"a": "b"})
        )
    left = await around.objects.update(later, "faces", "face", meta(finalizers=["a.b/c"]))
    assert left.document["metadata"]["finalizers"] == ["a.b/c"]
    gone = await around.objects.update(later, "faces", "face", meta(finalizers=[]))
    assert gone.removed


async def test_a_status_is_not_refused_for_what_stood_before(around: Around) -> None:
    def faults(new: Document, _old: Document | None) -> list[Cause]:
        found = [Cause("spec", "can never be", "FieldValueInvalid")]
        if new.get("status", {}).get("phase") == "none":
            found.append(Cause("status.phase", "is none", "FieldValueInvalid"))
        return found

    await around.objects.create(SERVICE, service())
    later = kind("Service", "services", check=(faults,))
    done = await around.objects.update(
        later, "faces", "face", status({"phase": "up"}), subresource="status"
    )
    assert done.document["status"] == {"phase": "up"}
    with pytest.raises(Invalid) as refused:
        await around.objects.update(
            later, "faces", "face", status({"phase": "none"}), subresource="status"
        )
    assert [cause.path for cause in refused.value.causes] == ["status.phase"]

"""Deleting objects."""

from __future__ import annotations

import pytest

from isthmus.errors import (
    BadRequest,
    Invalid,
    NotFound,
)
from isthmus.model.kind import Document
from tests.unit.store.around import (
    DEPLOYMENT,
    JSON,
    NAMESPACE,
    POD,
    SERVICE,
    Around,
    meta,
    service,
    spec,
    status,
    thing,
)

# -------------------------------------------------------------------- delete


async def test_a_delete_removes(around: Around) -> None:
    created = await around.objects.create(SERVICE, service())
    written = await around.objects.delete(SERVICE, "faces", "face")
    assert written.removed
    assert written.revision == 2
    assert written.document["metadata"]["uid"] == created.document["metadata"]["uid"]
    assert await around.raw(SERVICE, "face") is None
    with pytest.raises(NotFound, match='services "face" not found'):
        await around.objects.delete(SERVICE, "faces", "face")


async def test_finalizers_hold_an_object_until_the_last_goes(around: Around) -> None:
    held = service()
    held["metadata"]["finalizers"] = ["a.io/x", "b.io/y"]
    await around.objects.create(SERVICE, held)
    around.clock.advance(60)
    marked = await around.objects.delete(SERVICE, "faces", "face")
    metadata = marked.document["metadata"]
    assert not marked.removed
    assert metadata["deletionTimestamp"] == "2026-01-01T00:01:00Z"
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["generation"] == 2
    again = await around.objects.delete(SERVICE, "faces", "face")
    assert (again.revision, again.changed) == (marked.revision, False)

    left = await around.objects.update(SERVICE, "faces", "face", meta(finalizers=["b.io/y"]))
    assert not left.removed
    gone = await around.objects.update(SERVICE, "faces", "face", meta(finalizers=None))
    assert gone.removed
    assert await around.raw(SERVICE, "face") is None


async def test_a_marked_object_takes_no_new_finalizers(around: Around) -> None:
    held = service()
    held["metadata"]["finalizers"] = ["a.io/x"]
    await around.objects.create(SERVICE, held)
    await around.objects.delete(SERVICE, "faces", "face")
    with pytest.raises(Invalid, match="no new finalizers can be added") as refusal:
        await around.objects.update(SERVICE, "faces", "face", meta(finalizers=["a.io/x", "c.io/z"]))
    assert refusal.value.causes[0].reason == "FieldValueForbidden"


async def test_a_marked_object_stays_marked(around: Around) -> None:
    held = service()
    held["metadata"]["finalizers"] = ["a.io/x"]
    await around.objects.create(SERVICE, held)
    await around.objects.delete(SERVICE, "faces", "face")
    fresh = service(port=5)
    fresh["metadata"]["finalizers"] = ["a.io/x"]
    written = await around.objects.update(SERVICE, "faces", "face", lambda _: fresh)
    assert written.document["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
async def test_propagation_leaves_work_to_the_garbage_collector(
    around: Around, propagation: str, finalizer: str
) -> None:
    await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT))
    marked = await around.objects.delete(DEPLOYMENT, "faces", "x", propagation=propagation)
    assert marked.document["metadata"]["finalizers"] == [finalizer]
    assert marked.document["metadata"]["deletionTimestamp"]
    kept = await around.objects.delete(DEPLOYMENT, "faces", "x", propagation="")
    assert not kept.changed
    gone = await around.objects.update(DEPLOYMENT, "faces", "x", meta(finalizers=None))
    assert gone.removed


async def test_a_later_delete_may_choose_another_propagation(around: Around) -> None:
    held = thing(DEPLOYMENT, metadata={"finalizers": ["a.io/x"]})
    await around.objects.create(DEPLOYMENT, held)
    await around.objects.delete(DEPLOYMENT, "faces", "x", propagation="Foreground")
    marked = await around.objects.delete(DEPLOYMENT, "faces", "x", propagation="Orphan")
    assert marked.document["metadata"]["finalizers"] == ["a.io/x", "orphan"]
    marked = await around.objects.delete(DEPLOYMENT, "faces", "x", propagation="Background")
    assert marked.document["metadata"]["finalizers"] == ["a.io/x"]


async def test_options_that_do_not_exist_are_refused(around: Around) -> None:
    await around.objects.create(SERVICE, service())
    with pytest.raises(BadRequest, match="propagationPolicy 'Sideways'"):
        await around.objects.delete(SERVICE, "faces", "face", propagation="Sideways")
    for grace in (-1, 10**12):
        with pytest.raises(BadRequest, match="gracePeriodSeconds"):
            await around.objects.delete(SERVICE, "faces", "face", grace_seconds=grace)


# -------------------------------------------------------------------- pods


async def running(around: Around, **more: JSON) -> None:
    await around.objects.create(POD, thing(POD, spec={"nodeName": "n1"} | more))
    await around.objects.update(
        POD, "faces", "x", status({"phase": "Running"}), subresource="status"
    )


async def test_a_running_pod_gets_its_grace(around: Around) -> None:
    await running(around)
    marked = await around.objects.delete(POD, "faces", "x")
    assert marked.document["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert marked.document["metadata"]["deletionGracePeriodSeconds"] == 30
    assert not marked.removed
    touched = await around.objects.update(POD, "faces", "x", meta(labels={"a": "b"}))
    assert not touched.removed, "an update does not end the grace"
    gone = await around.objects.delete(POD, "faces", "x", grace_seconds=0)
    assert gone.removed


async def test_a_pod_says_its_own_grace_and_a_delete_another(around: Around) -> None:
    await running(around, terminationGracePeriodSeconds=5)
    marked = await around.objects.delete(POD, "faces", "x", dry_run=True)
    assert marked.document["metadata"]["deletionGracePeriodSeconds"] == 5
    marked = await around.objects.delete(POD, "faces", "x", grace_seconds=60)
    assert marked.document["metadata"]["deletionTimestamp"] == "2026-01-01T00:01:00Z"


async def test_a_later_delete_can_only_shorten_the_grace(around: Around) -> None:
    await running(around)
    await around.objects.delete(POD, "faces", "x")
    around.clock.advance(10)
    for grace in (None, 30, 100):
        same = await around.objects.delete(POD, "faces", "x", grace_seconds=grace)
        assert not same.changed
    shorter = await around.objects.delete(POD, "faces", "x", grace_seconds=12)
    assert shorter.document["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:12Z"
    assert shorter.document["metadata"]["deletionGracePeriodSeconds"] == 12


async def test_a_pod_on_no_node_goes_at_once(around: Around) -> None:
    await around.objects.create(POD, thing(POD))
    assert (await around.objects.delete(POD, "faces", "x", grace_seconds=30)).removed


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_ended_goes_at_once(around: Around, phase: str) -> None:
    await running(around)
    await around.objects.update(POD, "faces", "x", status({"phase": phase}), subresource="status")
    assert (await around.objects.delete(POD, "faces", "x")).removed


async def test_a_pods_finalizer_outlasts_its_grace(around: Around) -> None:
    held = thing(POD, spec={"nodeName": "n1"}, metadata={"finalizers": ["a.io/x"]})
    await around.objects.create(POD, held)
    await around.objects.delete(POD, "faces", "x")
    late = await around.objects.update(POD, "faces", "x", meta(finalizers=None))
    assert not late.removed
    assert (await around.objects.delete(POD, "faces", "x", grace_seconds=0)).removed


# -------------------------------------------------------------------- namespaces


async def test_a_namespace_is_emptied_before_it_goes(around: Around) -> None:
    await around.objects.create(NAMESPACE, thing(NAMESPACE))
    marked = await around.objects.delete(NAMESPACE, "", "x")
    assert marked.document["status"] == {"phase": "Terminating"}
    assert marked.document["metadata"]["deletionTimestamp"]
    assert not marked.removed
    ignored = await around.objects.update(NAMESPACE, "", "x", spec(finalizers=[]))
    assert not ignored.changed, "only `finalize` may do that"
    gone = await around.objects.update(
        NAMESPACE, "", "x", spec(finalizers=[]), subresource="finalize"
    )
    assert gone.removed
    assert await around.raw(NAMESPACE, "x", "") is None


async def test_finalize_changes_nothing_else(around: Around) -> None:
    await around.objects.create(NAMESPACE, thing(NAMESPACE))

    def everything(document: Document) -> Document:
        return {**meta(labels={"a": "b"})(spec(finalizers=["a.io/x"])(document)), "status": {}}

    written = await around.objects.update(NAMESPACE, "", "x", everything, subresource="finalize")
    assert written.document["spec"] == {"finalizers": ["a.io/x"]}
    assert written.document["status"] == {"phase": "Active"}
    assert "labels" not in written.document["metadata"]
    emptied = await around.objects.update(
        NAMESPACE, "", "x", lambda old: {**old, "spec": None}, subresource="finalize"
    )
    assert not emptied.removed, "nobody asked to delete it"

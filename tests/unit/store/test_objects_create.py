"""Creating objects."""

from __future__ import annotations

import re
from random import Random

import pytest

from isthmus.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Invalid,
    TooLarge,
)
from isthmus.model.key import Key
from isthmus.store import codec
from isthmus.store.objects import Objects
from tests.unit.store.around import (
    CONFIG_MAP,
    DEPLOYMENT,
    JSON,
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    UUID,
    Around,
    service,
    thing,
)

# -------------------------------------------------------------------- create


async def test_a_new_object_gets_what_the_server_owns(around: Around) -> None:
    written = await around.objects.create(SERVICE, service())
    metadata = written.document["metadata"]
    assert UUID.fullmatch(metadata["uid"])
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"] == str(written.revision) == "1"
    assert written.document["spec"] == {"port": 80, "protocol": "TCP"}
    assert written.changed
    assert not written.removed
    raw = await around.raw(SERVICE, "face")
    assert raw is not None
    assert codec.document(raw, 1) == written.document


async def test_the_writers_document_is_not_touched(around: Around) -> None:
    document = service()
    await around.objects.create(SERVICE, document)
    assert document == service()


async def test_what_the_writer_may_not_say_is_left_out(around: Around) -> None:
    own = {
        "uid": "mine",
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "generation": 70,
        "selfLink": "/x",
        "labels": {"a": "b"},
    }
    document = service() | {"status": {"loadBalancer": {}}}
    document["metadata"] |= own
    written = await around.objects.create(SERVICE, document)
    metadata = written.document["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"].startswith("2026")
    assert metadata["generation"] == 1
    assert metadata["labels"] == {"a": "b"}
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & metadata.keys()
    assert "status" not in written.document


async def test_a_kind_without_generations_has_none(around: Around) -> None:
    written = await around.objects.create(CONFIG_MAP, thing(CONFIG_MAP, data={"a": "b"}))
    assert "generation" not in written.document["metadata"]


async def test_cluster_scoped_objects_have_no_namespace(around: Around) -> None:
    node = thing(NODE, metadata={"namespace": "faces"}, status={"addresses": []})
    written = await around.objects.create(NODE, node)
    assert "namespace" not in written.document["metadata"]
    assert written.document["status"] == {"addresses": []}, "a node describes itself at once"
    assert await around.store.get(Key("nodes", "", "x")) is not None


async def test_a_kind_may_say_what_its_objects_are_born_with(around: Around) -> None:
    pod = await around.objects.create(POD, thing(POD, status={"phase": "Running"}))
    assert pod.document["status"] == {"phase": "Pending"}
    namespace = await around.objects.create(NAMESPACE, thing(NAMESPACE))
    assert namespace.document["status"] == {"phase": "Active"}
    assert namespace.document["spec"] == {"finalizers": ["kubernetes"]}


async def test_a_taken_name_is_refused(around: Around) -> None:
    await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT))
    for dry_run in (False, True):
        with pytest.raises(AlreadyExists) as refusal:
            await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT), dry_run=dry_run)
        assert refusal.value.message == 'deployments.apps "x" already exists'
        assert refusal.value.about[:4] == ("apps", "deployments", "Deployment", "x")


async def test_all_faults_are_told_at_once(around: Around) -> None:
    document = service(port=-1)
    document["metadata"]["name"] = "No!"
    with pytest.raises(Invalid) as refusal:
        await around.objects.create(SERVICE, document)
    paths = [cause.path for cause in refusal.value.causes]
    assert paths == ["metadata.name", "spec.port"]
    assert refusal.value.message.startswith('Service "No!" is invalid: [metadata.name: Invalid')
    assert refusal.value.message.endswith(", spec.port: Invalid value: -1: must be positive]")


async def test_one_fault_is_told_without_brackets(around: Around) -> None:
    document = service()
    del document["spec"]["port"]
    with pytest.raises(Invalid) as refusal:
        await around.objects.create(SERVICE, document)
    assert refusal.value.message == 'Service "face" is invalid: spec.port: Required value'
    assert refusal.value.causes == (Cause("spec.port", "Required value", "FieldValueRequired"),)


async def test_a_kind_of_a_group_is_named_with_it(around: Around) -> None:
    with pytest.raises(Invalid, match=r'^Deployment.apps "No" is invalid: metadata.name: '):
        await around.objects.create(DEPLOYMENT, thing(DEPLOYMENT, "No"))


async def test_an_object_without_a_name_is_refused(around: Around) -> None:
    document = service()
    del document["metadata"]["name"]
    with pytest.raises(Invalid, match="name or generateName is required"):
        await around.objects.create(SERVICE, document)
    with pytest.raises(Invalid):
        await around.objects.create(NODE, {"metadata": None})


async def test_requests_that_cannot_be_read_are_refused(around: Around) -> None:
    nowhere = service()
    del nowhere["metadata"]["namespace"]
    with pytest.raises(BadRequest, match=r'services "face": metadata.namespace is missing'):
        await around.objects.create(SERVICE, nowhere)
    versioned = thing(SERVICE, metadata={"resourceVersion": "4"})
    with pytest.raises(BadRequest, match="resourceVersion should not be set"):
        await around.objects.create(SERVICE, versioned)
    for wrong in ({"metadata": ["name"]}, {"metadata": {"name": 4, "namespace": "x"}}):
        with pytest.raises(BadRequest):
            await around.objects.create(SERVICE, wrong)
    assert around.store.revision == 0


async def test_too_large_an_object_is_refused(around: Around) -> None:
    document = thing(CONFIG_MAP, data={"a": "x" * 1_572_864})
    with pytest.raises(TooLarge, match=r'configmaps "x" takes \d+ bytes'):
        await around.objects.create(CONFIG_MAP, document)
    document["data"]["a"] = "x" * 1_500_000
    await around.objects.create(CONFIG_MAP, document)
    with pytest.raises(TooLarge):
        await around.objects.update(
            CONFIG_MAP, "faces", "x", lambda old: {**old, "data": {"a": "x" * 1_572_864}}
        )


# -------------------------------------------------------------------- generated names


async def test_a_name_is_generated(around: Around) -> None:
    document = thing(POD, metadata={"generateName": "face-", "name": ""})
    first = await around.objects.create(POD, document)
    second = await around.objects.create(POD, document)
    names = [each.document["metadata"]["name"] for each in (first, second)]
    assert names[0] != names[1]
    for name in names:
        assert re.fullmatch("face-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
        assert await around.raw(POD, name) is not None
    assert first.document["metadata"]["generateName"] == "face-"


async def test_a_long_base_leaves_room_for_the_suffix(around: Around) -> None:
    document = thing(POD, metadata={"generateName": "f" * 80, "name": ""})
    written = await around.objects.create(POD, document)
    assert len(written.document["metadata"]["name"]) == 63


class Repeating(Random):
    """Chance that comes up with the same letters `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__(7)
        self.left = times * 5

    def choice(self, seq: JSON) -> JSON:
        self.left -= 1
        return seq[0] if self.left >= 0 else super().choice(seq)


async def test_a_generated_name_that_is_taken_is_tried_again(around: Around) -> None:
    objects = Objects(around.store, clock=around.clock, random=Repeating(3))
    document = thing(POD, metadata={"generateName": "p-", "name": ""})
    first = await objects.create(POD, document)
    second = await objects.create(POD, document)
    assert first.document["metadata"]["name"] == "p-bbbbb"
    assert second.document["metadata"]["name"] != "p-bbbbb"


async def test_generating_a_name_ends(around: Around) -> None:
    objects = Objects(around.store, clock=around.clock, random=Repeating(1_000))
    document = thing(POD, metadata={"generateName": "p-", "name": ""})
    await objects.create(POD, document)
    with pytest.raises(AlreadyExists, match='pods "p-bbbbb" already exists'):
        await objects.create(POD, document)

"""Kinds that objects know by name, as the model really has them."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import Invalid
from isthmus.model.apps import DEPLOYMENT
from isthmus.model.core import NAMESPACE, POD, SERVICE
from isthmus.model.kind import Document, Kind
from tests.unit.store.around import Around, meta, spec, status

CONTAINERS = [{"name": "app", "image": "example.org/app"}]


def document(kind: Kind, **fields: Any) -> Document:  # noqa: ANN401 - any JSON value
    metadata = {"name": "face"} | ({"namespace": "faces"} if kind.namespaced else {})
    return {"apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata} | fields


async def test_a_service_keeps_what_was_filled_in(around: Around) -> None:
    wanted = document(SERVICE, spec={"ports": [{"port": 80}], "selector": {"app": "face"}})
    created = await around.objects.create(SERVICE, wanted)
    assert created.document["spec"]["ports"][0]["protocol"] == "TCP"
    again = await around.objects.update(SERVICE, "faces", "face", lambda _: wanted)
    assert not again.changed
    with pytest.raises(Invalid, match=r'Service "face" is invalid: \[spec.ports\[0\].port: '):
        await around.objects.update(SERVICE, "faces", "face", spec(ports=[{"port": 70_000}]))


async def test_a_namespace_from_birth_to_end(around: Around) -> None:
    created = await around.objects.create(NAMESPACE, document(NAMESPACE))
    assert created.document["spec"] == {"finalizers": ["kubernetes"]}
    assert created.document["status"] == {"phase": "Active"}
    marked = await around.objects.delete(NAMESPACE, "", "face")
    assert marked.document["status"]["phase"] == "Terminating"
    gone = await around.objects.update(
        NAMESPACE, "", "face", spec(finalizers=[]), subresource="finalize"
    )
    assert gone.removed


async def test_a_pod_from_birth_to_end(around: Around) -> None:
    pod = document(POD, spec={"containers": CONTAINERS}, status={"phase": "Running"})
    created = await around.objects.create(POD, pod)
    assert created.document["status"]["phase"] == "Pending"
    await around.objects.update(POD, "faces", "face", spec(nodeName="n1"))
    running = {"phase": "Running", "podIP": "10.1.0.7"}
    await around.objects.update(POD, "faces", "face", status(running), subresource="status")
    marked = await around.objects.delete(POD, "faces", "face")
    assert marked.document["metadata"]["deletionGracePeriodSeconds"] == 30
    gone = await around.objects.delete(POD, "faces", "face", grace_seconds=0)
    assert gone.removed


async def test_a_deployment_counts_generations_of_its_spec(around: Around) -> None:
    template = {"metadata": {"labels": {"app": "face"}}, "spec": {"containers": CONTAINERS}}
    wanted = {"selector": {"matchLabels": {"app": "face"}}, "template": template}
    created = await around.objects.create(DEPLOYMENT, document(DEPLOYMENT, spec=wanted))
    assert created.document["metadata"]["generation"] == 1
    labelled = await around.objects.update(
        DEPLOYMENT, "faces", "face", meta(labels={"tier": "front"})
    )
    assert labelled.document["metadata"]["generation"] == 1
    scaled = await around.objects.update(
        DEPLOYMENT, "faces", "face", spec(replicas=3), subresource="scale"
    )
    assert scaled.document["metadata"]["generation"] == 2
    seen = {"observedGeneration": 2, "replicas": 3}
    reported = await around.objects.update(
        DEPLOYMENT, "faces", "face", status(seen), subresource="status"
    )
    assert reported.document["metadata"]["generation"] == 2
    assert reported.document["status"] == seen

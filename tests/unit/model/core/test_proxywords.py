"""Who writes what proxies do not understand is warned."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.model.annotations.keys import DEFAULT_INBOUND_POLICY, INBOUND_TLS, UPSTREAMS
from isthmus.model.apps.deployment import DEPLOYMENT
from isthmus.model.apps.statefulset import STATEFUL_SET
from isthmus.model.core.namespace import NAMESPACE
from isthmus.model.core.pod import POD
from isthmus.model.kind import Kind

BAD = {DEFAULT_INBOUND_POLICY: "deni", INBOUND_TLS: "strikt", UPSTREAMS: "smiley"}
GOOD = {DEFAULT_INBOUND_POLICY: "deny", INBOUND_TLS: "strict", UPSTREAMS: "faces/*, */cart"}


def warnings(kind: Kind, document: dict[str, Any]) -> list[str]:
    return [text for warn in kind.warn for text in warn(document, None)]


@pytest.mark.parametrize("kind", [POD, NAMESPACE])
def test_annotations_of_pods_and_namespaces(kind: Kind) -> None:
    told = warnings(kind, {"metadata": {"annotations": BAD}})
    assert [text.partition(":")[0] for text in told] == [
        f"metadata.annotations[{key}]" for key in BAD
    ]
    assert told[1].endswith("must be one of permissive, strict; it has no effect")
    assert warnings(kind, {"metadata": {"annotations": GOOD}}) == []
    assert warnings(kind, {"metadata": {}}) == []


@pytest.mark.parametrize("kind", [DEPLOYMENT, STATEFUL_SET])
def test_annotations_of_templates(kind: Kind) -> None:
    def written(said: dict[str, str]) -> dict[str, Any]:
        return {"spec": {"template": {"metadata": {"annotations": said}}}}

    assert [text.partition(":")[0] for text in warnings(kind, written(BAD))] == [
        f"spec.template.metadata.annotations[{key}]" for key in BAD
    ]
    assert warnings(kind, written(GOOD)) == []

"""The objects that the workshop's walk applies are taken as they are, without a warning."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from isthmus.model.gateway import GrpcRoute
from isthmus.model.kind import Document
from isthmus.model.policy import AuthorizationPolicy, EgressNetwork, Server
from tests.unit.model.mesh import kind_of, seen, stored, told, warned

FOLDER = Path(__file__).parents[2] / "interop" / "manifests"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def documents(name: str) -> list[Document]:
    parts = (FOLDER / name).read_text().split("\n---")
    read = [msgspec.yaml.decode(part) for part in parts]
    return [each for each in read if each]


def test_the_manifests_are_there() -> None:
    assert {"all-egress-allow.yaml", "all-egress-deny.yaml", "smiley-auth.yaml"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_manifest_is_taken(name: str) -> None:
    for written in documents(name):
        written["metadata"].setdefault("namespace", "faces")
        if kind_of(written).namespaced and kind_of(written).custom:
            assert told(written) == []
            assert warned(written) == ()


def test_what_the_mesh_sees_of_them() -> None:
    found = [
        seen(stored(each)) for name in FILES for each in documents(name) if kind_of(each).custom
    ]
    egress = {e.spec.traffic_policy for e in found if isinstance(e, EgressNetwork)}
    assert egress == {"Allow", "Deny"}
    (server,) = [each for each in found if isinstance(each, Server)]
    assert (server.spec.port, server.spec.access_policy) == ("http", "deny")
    (policy,) = [each for each in found if isinstance(each, AuthorizationPolicy)]
    assert policy.spec.target_ref.name == server.metadata.name
    routes = [each for each in found if isinstance(each, GrpcRoute)]
    assert len(routes) == 3
    for route in routes:
        (parent,) = route.spec.parent_refs
        assert (parent.group, parent.kind) == ("policy.linkerd.io", "EgressNetwork")
        assert parent.port == 8000
        assert route.spec.rules[0].matches[0].method is not None

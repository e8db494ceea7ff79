from __future__ import annotations

import pytest

from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Mesh, Reach, Speaks
from isthmus.ir.names import Dns, Spiffe
from isthmus.mesh.external import parse_identity, workload_endpoint, workload_known
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

VM = ObjectKey(LOCAL, "lab", "vm")
BASE: Compact = {
    "ew": "lab/vm",
    "ips": ["198.51.100.1"],
    "ports": [{"port": 8080, "name": "web"}],
    "id": "spiffe://root.lab/vm",
    "sni": "vm.example",
}


def endpoint(*objects: Compact, **settings: object) -> Endpoint:
    found = World(*objects, **settings).db.read(workload_endpoint, VM, "198.51.100.1", 8080)
    assert found is not None
    return found


def test_a_workload_is_who_its_certificate_says() -> None:
    found = endpoint(BASE)
    assert found.identity == Spiffe("root.lab", ("vm",))
    assert found.server_name == "vm.example"
    assert found.meshed
    assert dict(found.labels) == {"external_workload": "vm"}


PROXY = {"port": 5143, "name": "linkerd-proxy"}


@pytest.mark.parametrize(
    ("said", "settings", "speaks", "reach"),
    [
        ({}, {}, Speaks.HTTP2, Mesh("vm.example")),
        ({}, {"h2_upgrade": False}, Speaks.HTTP2, Mesh("vm.example")),
        ({}, {"transport_header": True}, Speaks.HTTP2, LinkerdOpaque(4143)),
        ({"ports": [{"port": 8080}, PROXY]}, {"transport_header": True}, Speaks.HTTP2,
         LinkerdOpaque(5143)),
        ({"opaque": "web"}, {}, Speaks.OPAQUE, LinkerdOpaque(4143)),
        ({"opaque": "8080"}, {}, Speaks.OPAQUE, LinkerdOpaque(4143)),
        ({"opaque": "80"}, {}, Speaks.HTTP2, Mesh("vm.example")),
    ],
)  # fmt: skip
def test_how_a_workload_is_reached(
    said: Compact, settings: dict[str, object], speaks: Speaks, reach: Reach
) -> None:
    found = endpoint({**BASE, **said}, **settings)
    assert (found.speaks, found.reach) == (speaks, reach)


def test_its_one_owner_is_a_label() -> None:
    found = endpoint({**BASE, "owner": ["WorkloadGroup", "quay"]})
    assert dict(found.labels)["workloadgroup"] == "quay"
    both = endpoint({**BASE, "owners": [["WorkloadGroup", "quay"], ["X", "y"]]})
    assert dict(both.labels) == {"external_workload": "vm"}


def test_there_is_no_endpoint_without_a_workload() -> None:
    world = World()
    assert world.db.read(workload_endpoint, VM, "198.51.100.1", 8080) is None
    assert not world.db.read(workload_known, VM)
    world.apply(BASE)
    assert world.db.read(workload_known, VM)


def test_identities_are_uris_or_names() -> None:
    assert parse_identity("spiffe://root.lab/a/b") == Spiffe("root.lab", ("a", "b"))
    assert parse_identity("vm.example") == Dns("vm.example")
    assert parse_identity("") is None

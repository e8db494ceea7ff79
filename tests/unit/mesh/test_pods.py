from __future__ import annotations

import pytest

from isthmus.ir.endpoint import Endpoint, LinkerdOpaque, Mesh, Plain, Reach, Speaks
from isthmus.ir.names import Dns
from isthmus.mesh.pods import Life, owner, pod_endpoint, pod_state, zone_of
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

A = ObjectKey(LOCAL, "shop", "a")
IDENTITY = "cart.shop.serviceaccount.identity.isthmus.trust.mesh.test"


def pod(**said: object) -> Compact:
    return {"pod": "shop/a", "ip": "10.1.0.1", "sa": "cart", **said}


def seen(*objects: Compact, port: int = 8080, **settings: object) -> Endpoint | None:
    return World(*objects, **settings).db.read(pod_endpoint, A, "10.1.0.1", port)


def endpoint(*objects: Compact, port: int = 8080, **settings: object) -> Endpoint:
    found = seen(*objects, port=port, **settings)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("said", "port", "transport_header", "speaks", "reach"),
    [
        ({}, 8080, False, Speaks.UNKNOWN, Plain()),
        ({}, 8080, True, Speaks.UNKNOWN, Plain()),
        ({"opaque": "8080"}, 8080, True, Speaks.UNKNOWN, Plain()),
        ({"meshed": True, "skip": "8000-8100"}, 8080, True, Speaks.UNKNOWN, Plain()),
        ({"meshed": True}, 8080, False, Speaks.HTTP2, Mesh(IDENTITY)),
        ({"meshed": True}, 8080, True, Speaks.HTTP2, LinkerdOpaque(4143)),
        ({"meshed": True, "opaque": "8080"}, 8080, False, Speaks.OPAQUE, LinkerdOpaque(4143)),
        ({"meshed": True, "opaque": "8080"}, 8080, True, Speaks.OPAQUE, LinkerdOpaque(4143)),
        ({"meshed": True}, 4191, True, Speaks.HTTP2, Mesh(IDENTITY)),
        ({"meshed": True}, 4190, True, Speaks.HTTP2, Mesh(IDENTITY)),
        ({"meshed": True, "opaque": "4191"}, 4191, True, Speaks.OPAQUE, Mesh(IDENTITY)),
    ],
)
def test_what_stands_before_a_port(
    said: Compact, port: int, transport_header: bool, speaks: Speaks, reach: Reach
) -> None:
    found = endpoint(pod(**said), port=port, transport_header=transport_header)
    assert (found.speaks, found.reach) == (speaks, reach)


def test_without_the_upgrade_there_is_no_hint_of_it() -> None:
    found = endpoint(pod(meshed=True), h2_upgrade=False)
    assert (found.speaks, found.meshed, found.identity) == (Speaks.UNKNOWN, True, Dns(IDENTITY))
    opaque = endpoint(pod(meshed=True, opaque="8080"), h2_upgrade=False)
    assert (opaque.speaks, opaque.reach) == (Speaks.OPAQUE, LinkerdOpaque(4143))


def test_an_envoy_has_an_identity_and_no_hint_that_only_linkerd_understands() -> None:
    envoy = pod(meshed=True, proxy="envoy")
    found = endpoint(envoy, transport_header=True)
    assert found.identity == Dns(IDENTITY)
    assert (found.speaks, found.reach, found.meshed) == (
        Speaks.UNKNOWN,
        Mesh(IDENTITY, native=True),
        True,
    )
    opaque = endpoint(pod(meshed=True, proxy="envoy", opaque="8080"))
    assert (opaque.speaks, opaque.reach) == (Speaks.OPAQUE, Mesh(IDENTITY, native=True))
    linkerd = endpoint(pod(meshed=True, proxy="linkerd"))
    assert linkerd.speaks is Speaks.HTTP2


def test_identity_is_given_to_pods_of_our_own_mesh_alone() -> None:
    assert endpoint(pod(meshed=True)).identity == Dns(IDENTITY)
    assert endpoint(pod(meshed=True)).server_name == IDENTITY
    other = endpoint(pod(meshed="elsewhere"))
    assert (other.identity, other.server_name, other.speaks) == (None, "", Speaks.HTTP2)
    assert endpoint(pod()).identity is None
    assert endpoint(pod(meshed=True, skip="8080")).identity is None
    assert endpoint(pod(meshed=True), trust_domain="").identity is None


def test_a_pod_without_account_runs_as_the_default_one() -> None:
    found = endpoint({"pod": "shop/a", "meshed": True})
    assert found.server_name.startswith("default.shop.")
    assert dict(found.labels)["serviceaccount"] == "default"


def test_a_remote_pod_has_the_trust_domain_of_its_cluster() -> None:
    world = World({"in": "east", **pod(meshed=True)})
    key = A._replace(cluster="east")
    found = world.db.read(pod_endpoint, key, "10.1.0.1", 8080)
    assert found is not None
    assert found.identity is None
    world.link("east", trust_domain="east.test", cluster_domain="mesh.test")
    found = world.db.read(pod_endpoint, key, "10.1.0.1", 8080)
    assert found is not None
    assert found.server_name == "cart.shop.serviceaccount.identity.isthmus.east.test"


@pytest.mark.parametrize(
    ("said", "inbound"),
    [
        ({"inbound": "1.2.3.4:5143"}, 5143),
        ({"inbound": "[::]:6143"}, 6143),
        ({"native": True}, 4143),
        ({"inbound": "4143"}, None),
        ({"inbound": "0.0.0.0:0"}, None),
        ({"inbound": "0.0.0.0:70000"}, None),
        ({"inbound": "0.0.0.0:http"}, None),
        ({"noenv": True}, None),
    ],
)
def test_the_inbound_port_is_what_the_proxy_listens_on(said: Compact, inbound: int | None) -> None:
    found = seen(pod(meshed=True, opaque="8080", **said))
    if inbound is None:
        assert found is None
    else:
        assert found is not None
        assert found.reach == LinkerdOpaque(inbound)


def test_there_is_no_endpoint_without_a_pod() -> None:
    assert seen() is None


OWNERS: list[tuple[list[str], list[Compact], tuple[str, str]]] = [
    (["StatefulSet", "db"], [], ("statefulset", "db")),
    (["DaemonSet", "agent"], [], ("daemonset", "agent")),
    (["ReplicaSet", "r"], [], ("replicaset", "r")),
    (["ReplicaSet", "r"], [{"rs": "shop/r"}], ("replicaset", "r")),
    (["ReplicaSet", "r"], [{"rs": "shop/r", "owner": ["Deployment", "d"]}], ("deployment", "d")),
    (["ReplicaSet", "r"], [{"rs": "shop/r", "owner": ["Rollout", "x"]}], ("replicaset", "r")),
    (["ReplicaSet", "r"], [{"rs": "shop/r", "owner": ["Job", "j"]}], ("k8s_job", "j")),
    (["ReplicaSet", "r"], [{"rs": "pay/r", "owner": ["Deployment", "d"]}], ("replicaset", "r")),
    (["Job", "j"], [], ("k8s_job", "j")),
    (["Job", "j"], [{"job": "shop/j", "owner": ["CronJob", "c"]}], ("cronjob", "c")),
    (["Job", "j"], [{"job": "shop/j", "owner": ["Workflow", "w"]}], ("workflow", "w")),
]


@pytest.mark.parametrize(("direct", "objects", "label"), OWNERS)
def test_whose_a_pod_is(direct: list[str], objects: list[Compact], label: tuple[str, str]) -> None:
    world = World(pod(owner=direct), *objects)
    assert world.db.read(owner, A) == label
    found = world.db.read(pod_endpoint, A, "10.1.0.1", 80)
    assert found is not None
    assert label in found.labels


def test_a_pod_of_nobody_or_of_several_has_no_owner() -> None:
    assert World(pod()).db.read(owner, A) is None
    two = pod(owners=[["ReplicaSet", "r"], ["StatefulSet", "s"]])
    assert World(two).db.read(owner, A) is None
    assert World().db.read(owner, A) is None


def test_labels() -> None:
    found = endpoint(pod(meshed=True, labels={"pod-template-hash": "7d", "app": "cart"}))
    assert dict(found.labels) == {
        "pod": "a",
        "serviceaccount": "cart",
        "control_plane_ns": "isthmus",
        "pod_template_hash": "7d",
    }
    assert found.labels == tuple(sorted(found.labels))


def test_how_a_pod_is() -> None:
    world = World()
    assert world.db.read(pod_state, A) is None
    for said, life, running in (
        ({}, Life.LIVE, True),
        ({"phase": "Pending"}, Life.LIVE, False),
        ({"deleting": True}, Life.LEAVING, True),
        ({"phase": "Succeeded"}, Life.ENDED, False),
        ({"phase": "Failed", "deleting": True}, Life.ENDED, False),
    ):
        world.apply(pod(**said))
        state = world.db.read(pod_state, A)
        assert state is not None
        assert (state.life, state.running) == (life, running)


def test_the_zone_of_a_node() -> None:
    world = World({"node": "n1", "zone": "z1"}, {"node": "n2"})
    zones = [world.db.read(zone_of, ObjectKey(LOCAL, "", node)) for node in ("n1", "n2", "n3")]
    assert zones == ["z1", "", ""]

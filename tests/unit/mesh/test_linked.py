from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from isthmus.engine import Delete, Put
from isthmus.mesh import ALSO, SOURCES
from isthmus.mesh.credentials import TYPE, credentials
from isthmus.mesh.linked import MOST, Linked, Probe, linked, linked_names, refusal, refused
from isthmus.mesh.reaching import At, elsewhere, targets
from isthmus.model.annotations import KEEP, Staleness
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, MESH, World

MC = "linkerd-multicluster"
LINKS = "links.multicluster.linkerd.io"
STALENESS = "multicluster.isthmus.dev/staleness"
JSON = Any


class Linking(World):
    """A world with Links and Secrets."""

    def link_(self, name: str, **spec: JSON) -> ObjectKey:
        meta = {"name": name, "namespace": MC, "creationTimestamp": spec.pop("created", "2026")}
        meta["annotations"] = spec.pop("annotations", {})
        usual = {"targetClusterName": name, "clusterCredentialsSecret": f"{name}-secret"}
        key = ObjectKey(LOCAL, MC, name)
        self.row(SOURCES[LINKS], key, {"metadata": meta, "spec": {**usual, **spec}})
        return key

    def secret(self, name: str, text: str = "x", namespace: str = MC, **meta: JSON) -> ObjectKey:
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()} if text else {}
        key = ObjectKey(LOCAL, namespace, name)
        document = {"metadata": {"name": name, **meta}, "type": TYPE, "data": data}
        self.row(ALSO["secrets"], key, document)
        return key

    def labelled(self, name: str, cluster: str, **meta: JSON) -> ObjectKey:
        labels = {"multicluster.linkerd.io/cluster-name": cluster}
        return self.secret(name, namespace=MESH, labels=labels, **meta)

    def row(self, source: JSON, key: ObjectKey, document: JSON) -> None:
        self.db.commit([Put(source.table, key, source.row(msgspec.json.encode(document)))])

    def names(self) -> tuple[str, ...]:
        return self.db.read(linked_names, LOCAL)

    def one(self, name: str) -> Linked:
        found = self.db.read(linked, LOCAL, name)
        assert found is not None
        return found

    def why(self, key: ObjectKey) -> str:
        found = self.db.read(refusal, key)
        return found.reason if found is not None else ""


def test_a_link_with_its_secret() -> None:
    world = Linking()
    link, secret = (
        world.link_("east", targetClusterDomain="east.local"),
        world.secret("east-secret"),
    )
    assert world.names() == ("east",)
    found = world.one("east")
    assert (found.link, found.secret, found.also) == (link, secret, ())
    assert found.digest
    assert found.cluster_domain == "east.local"
    world.secret("east-secret", "other")
    assert world.one("east").digest != found.digest
    world.db.commit([Delete(ALSO["secrets"].table, secret)])
    assert world.one("east").digest == ""
    assert world.db.read(linked, LOCAL, "west") is None


def test_a_labelled_secret_links_alone_and_tells_of_a_links_cluster() -> None:
    world = Linking()
    notes = {
        "multicluster.linkerd.io/trust-domain": "t.test",
        "multicluster.linkerd.io/cluster-domain": "d.test",
    }
    alone = world.labelled("creds", "east", annotations=notes)
    found = world.one("east")
    assert (found.link, found.secret) == (None, alone)
    assert (found.trust_domain, found.cluster_domain) == ("t.test", "d.test")
    world.link_("east")
    secret = world.secret("east-secret")
    found = world.one("east")
    assert (found.secret, found.also) == (secret, (alone,))
    assert (found.trust_domain, found.cluster_domain) == ("t.test", "d.test")
    assert world.names() == ("east",)
    world.labelled("ours", LOCAL)
    world.labelled("bad", "No@Name")
    assert world.names() == ("east",)


def test_a_label_counts_in_the_control_planes_namespace_alone() -> None:
    world = Linking()
    world.secret("x", labels={"multicluster.linkerd.io/cluster-name": "east"})
    assert world.names() == ()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"targetClusterName": ""}, "NoCluster"),
        ({"targetClusterName": LOCAL}, "OwnCluster"),
        ({"targetClusterName": "a@b"}, "BadClusterName"),
        ({"targetClusterName": "a,b"}, "BadClusterName"),
        ({"clusterCredentialsSecret": ""}, "NoCredentials"),
        ({}, ""),
    ],
)
def test_what_cannot_be_is_refused(spec: dict[str, str], reason: str) -> None:
    world = Linking()
    key = world.link_("east", **spec)
    assert world.why(key) == reason
    assert [each for each, _ in world.db.read(refused, LOCAL)] == ([key] if reason else [])
    assert world.names() == (() if reason else ("east",))


def test_of_two_links_the_older_leads() -> None:
    world = Linking()
    young = world.link_("a", targetClusterName="east", created="2026-02-01T00:00:00Z")
    old = world.link_("b", targetClusterName="east", created="2026-01-01T00:00:00Z")
    assert world.one("east").link == old
    assert world.why(young) == "DuplicateCluster"
    world.db.commit([Delete(SOURCES[LINKS].table, old)])
    assert world.one("east").link == young
    assert world.db.read(refused, LOCAL) == ()


def test_there_is_an_end_to_links() -> None:
    world = Linking()
    for number in range(MOST + 3):
        world.link_(f"c-{number:03}")
    assert len(world.names()) == MOST
    over = world.db.read(refused, LOCAL)
    assert [why.reason for _, why in over] == ["TooManyClusters"] * 3


@pytest.mark.parametrize(
    ("text", "staleness", "notice"),
    [
        ("keep", KEEP, False),
        (" drop ", Staleness(0), False),
        ("drain-after: 30s", Staleness(30_000), False),
        ("drain-after:500ms", Staleness(500), False),
        ("drain-after: 0", KEEP, True),
        ("drain-after", KEEP, True),
        ("drain-after: 1h30m", KEEP, True),
        ("drop: 5s", KEEP, True),
        ("DROP", KEEP, True),
        ("", KEEP, True),
    ],
)
def test_staleness_is_what_the_annotation_says(
    text: str, staleness: Staleness, notice: bool
) -> None:
    world = Linking()
    world.link_("east", annotations={STALENESS: text})
    assert world.one("east").staleness == staleness
    assert bool(world.one("east").notice) is notice


def test_a_gateways_probe_has_linkerds_defaults_and_no_nonsense() -> None:
    world = Linking()
    world.link_("flat")
    assert world.one("flat").probe is None
    world.link_("east", gatewayAddress="10.0.0.1, gw.test,", gatewayPort="4143")
    usual = Probe(("10.0.0.1", "gw.test"), 4191, "/ready", 3.0, 30.0, 3)
    assert world.one("east").probe == usual
    spec = {"path": "no path", "port": "x", "period": "-3s", "timeout": "", "failureThreshold": "0"}
    world.link_("east", gatewayAddress="10.0.0.1,gw.test", probeSpec=spec)
    assert world.one("east").probe == usual
    spec = {
        "path": "/live",
        "port": "8080",
        "period": "5",
        "timeout": "1h",
        "failureThreshold": "7",
    }
    world.link_("east", gatewayAddress="10.0.0.1,gw.test", probeSpec=spec)
    assert world.one("east").probe == Probe(usual.hosts, 8080, "/live", 5.0, 300.0, 7)


def test_a_data_plane_is_asked_at_its_gateway_and_at_endpoints_that_are_taken_over() -> None:
    world = Linking()
    member = {"matchLabels": {"mirror.linkerd.io/federated": "member"}}
    world.link_(
        "east",
        gatewayAddress="10.9.0.1",
        gatewayPort="4143",
        selector={"matchLabels": {"mirror.linkerd.io/exported": "true"}},
        federatedServiceSelector=member,
    )
    labels = {"mirror.linkerd.io/federated": "member"}
    eps = [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}, {"ip": "127.0.0.1"}]
    behind = {"mirror.linkerd.io/exported": "true"}
    world.apply(
        {"svc": "shop/web", "in": "east", "ports": [80], "labels": labels},
        {"slice": "shop/web-1", "in": "east", "svc": "web", "ports": [8080], "eps": eps},
        {"svc": "shop/own", "in": "east", "ports": [80]},
        {"slice": "shop/own-1", "in": "east", "svc": "own", "ports": [80], "eps": eps},
        {"svc": "shop/far", "in": "east", "ports": [80], "labels": behind},
        {
            "slice": "shop/far-1",
            "in": "east",
            "svc": "far",
            "ports": [80],
            "eps": [{"ip": "10.1.0.7"}],
        },
    )
    assert world.db.read(targets, LOCAL, "east") == (
        At("10.9.0.1", 4143),
        At("10.1.0.1", 8080),
        At("10.1.0.2", 8080),
    )
    assert world.db.read(targets, LOCAL, "west") == ()


def test_beside_a_link_that_names_no_secret_a_labelled_one_links_the_cluster() -> None:
    world = Linking()
    world.link_("east", clusterCredentialsSecret="")
    assert world.db.read(linked, LOCAL, "east") is None
    secret = world.labelled("named", "east")
    found = world.one("east")
    assert (found.link, found.secret) == (None, secret)


def test_where_a_secret_alone_links_a_cluster_endpoints_are_asked_that_services_of_ours_name() -> (
    None
):
    world = Linking()
    world.labelled("east-credentials", "east")
    key = "multicluster.linkerd.io/remote-discovery"
    mirror = {key: "east", "multicluster.linkerd.io/remote-service": "web"}
    world.apply(
        {"svc": "shop/web-east", "ports": [80], "labels": mirror},
        {"svc": "shop/all", "ports": [80], "annotations": {key: "cart@east, cart@west"}},
        {"svc": "shop/lost", "ports": [80], "labels": {key: "east"}},
    )
    for number, name in enumerate(("web", "cart", "own"), start=1):
        eps = [{"ip": f"10.1.0.{number}"}]
        world.apply(
            {"svc": f"shop/{name}", "in": "east", "ports": [80]},
            {"slice": f"shop/{name}-1", "in": "east", "svc": name, "ports": [8080], "eps": eps},
        )
    found = world.db.read(targets, LOCAL, "east")
    assert set(found) == {At("10.1.0.1", 8080), At("10.1.0.2", 8080)}


@pytest.mark.parametrize("ip", ["127.0.0.1", "::1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "x"])
def test_what_leads_to_ourselves_is_not_asked(ip: str) -> None:
    assert not elsewhere(ip)


def test_other_secrets_have_no_row() -> None:
    assert credentials(b'{"type": "Opaque", "data": {"password": "eA=="}}') is None
    assert credentials(b'{"type": "Opaque", "data": {"kubeconfig": "eA=="}}') is not None

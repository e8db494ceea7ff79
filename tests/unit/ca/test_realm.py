from __future__ import annotations

import pytest

from isthmus.ca.realm import Account, Realm

REALM = Realm("cluster.local", "linkerd")
FACE = Account("faces", "face")


def test_a_service_account_has_a_dns_name_and_a_spiffe_id() -> None:
    assert REALM.name(FACE) == "face.faces.serviceaccount.identity.linkerd.cluster.local"
    assert REALM.uri(FACE) == "spiffe://cluster.local/ns/faces/sa/face"
    assert REALM.account(REALM.name(FACE)) == FACE


@pytest.mark.parametrize(
    "name",
    [
        "",
        "face",
        "face.faces.serviceaccount.identity.linkerd.cluster.locali",
        "xface.faces.serviceaccount.identity.linkerd2.cluster.local",
        "face.faces.serviceaccount.identity.linkerd.cluster.local.",
        "FACE.faces.serviceaccount.identity.linkerd.cluster.local",
        "a.face.faces.serviceaccount.identity.linkerd.cluster.local",
        "*.faces.serviceaccount.identity.linkerd.cluster.local",
        "face.faces.user.identity.linkerd.cluster.local",
        "control-plane.identity.linkerd.cluster.local",
    ],
)
def test_what_only_looks_like_an_identity_is_none(name: str) -> None:
    assert REALM.account(name) is None


def test_names_of_control_planes_and_hosts_are_no_accounts() -> None:
    assert REALM.account(REALM.server_name) is None
    assert REALM.server_uri("k3d_face") == "spiffe://cluster.local/isthmus/control-plane/k3d_face"
    assert REALM.host(REALM.server_uri("east")) is None
    assert REALM.host(REALM.uri(Account("isthmus", "host"))) is None


def test_a_host_is_read_back() -> None:
    uri = REALM.host_uri("vm-1.example.org")
    assert uri == "spiffe://cluster.local/isthmus/host/vm-1.example.org"
    assert REALM.host(uri) == "vm-1.example.org"


@pytest.mark.parametrize(
    "uri",
    [
        "spiffe://cluster.locali/isthmus/host/a",
        "spiffe://cluster.local/isthmus/host/a/b",
        "spiffe://cluster.local/isthmus/host/",
        "spiffe://cluster.local/isthmus/host/..",
        "spiffe://cluster.local/isthmus/host/A",
        "spiffe://cluster.local/x/isthmus/host/a",
        "https://cluster.local/isthmus/host/a",
        "cluster.local",
    ],
)
def test_what_only_looks_like_a_host_is_none(uri: str) -> None:
    assert REALM.host(uri) is None


def test_an_account_with_dots_does_not_fit_an_identity() -> None:
    assert not Account("shop", "a.b").fits
    assert not Account("sh.op", "a").fits
    assert Account("shop", "a").fits

from __future__ import annotations

import pytest

from isthmus.ir.inbound import ANYWHERE, Anybody, Authorization, Inbound, Network, Peers, TlsOnly
from isthmus.ir.names import AnyIdentity, Default, Dns, IdentitySuffix, Origin, Ref, Spiffe
from isthmus.ir.proxy import InboundName
from isthmus.mesh.authorization import (
    authorization_policy,
    grant_faults,
    server_authorization,
)
from isthmus.mesh.inbound import inbound
from isthmus.mesh.workloads import external_ref, pod_ref
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

ME = pod_ref(ObjectKey(LOCAL, "shop", "me"))
POD: Compact = {
    "pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "labels": {"app": "me"},
}  # fmt: skip
SERVER: Compact = {
    "server": "shop/web", "pods": {"app": "me"}, "port": 8080, "labels": {"tier": "front"},
}  # fmt: skip
ENDING = "serviceaccount.identity.isthmus.trust.mesh.test"
OURS = Network("10.0.0.0/8")


def world(*objects: Compact) -> World:
    return World(POD, SERVER, *objects, cluster_networks=("10.0.0.0/8",))


def asked(held: World, port: int = 8080) -> Inbound:
    return held.db.read(inbound, InboundName(ME, port))


def granted(*objects: Compact) -> dict[str, Authorization]:
    found: dict[str, Authorization] = {}
    for each in asked(world(*objects)).authorizations:
        source = each.source
        found[source.name if isinstance(source, Default) else source.ref.name] = each
    return found


def ref(kind: str, name: str, namespace: str = "shop") -> Ref:
    return Ref(LOCAL, "policy.linkerd.io", kind, namespace, name)


# ------------------------------------------------------------------- ServerAuthorizations


def test_server_authorizations_are_for_servers_by_name_or_label_of_their_own_namespace() -> None:
    found = granted(
        {"saz": "shop/by-name", "server": "web", "client": {"unauthenticated": True}},
        {"saz": "shop/by-label", "servers": {"tier": "front"}, "client": {"unauthenticated": True}},
        {"saz": "shop/all", "servers": {}, "client": {"unauthenticated": True}},
        {"saz": "shop/other", "server": "cellar", "client": {"unauthenticated": True}},
        {"saz": "shop/else", "servers": {"tier": "back"}, "client": {"unauthenticated": True}},
        {"saz": "pay/foreign", "server": "web", "client": {"unauthenticated": True}},
    )
    assert list(found) == ["all", "by-label", "by-name"]


@pytest.mark.parametrize(
    ("client", "networks", "proof"),
    [
        ({"unauthenticated": True}, (OURS,), Anybody()),
        ({"meshTLS": {"unauthenticatedTLS": True}}, (OURS,), TlsOnly()),
        ({"meshTLS": {"identities": ["*"]}}, (OURS,), Peers((AnyIdentity(),))),
        (
            {
                "networks": [{"cidr": "10.9.0.0/16", "except": ["10.9.1.1"]}],
                "unauthenticated": True,
            },
            (Network("10.9.0.0/16", ("10.9.1.1",)),),
            Anybody(),
        ),
        (
            {
                "meshTLS": {
                    "identities": ["a.example", "*.b.example"],
                    "serviceAccounts": [{"name": "till"}, {"name": "till", "namespace": "pay"}],
                }
            },
            (OURS,),
            Peers(
                (
                    Dns("a.example"),
                    IdentitySuffix(("b", "example")),
                    Dns(f"till.shop.{ENDING}"),
                    Dns(f"till.pay.{ENDING}"),
                )
            ),
        ),
    ],
)
def test_what_a_server_authorization_asks_for(
    client: dict[str, object], networks: tuple[Network, ...], proof: Anybody | Peers
) -> None:
    (found,) = granted({"saz": "shop/z", "server": "web", "client": client}).values()
    assert found == Authorization(Origin(ref("ServerAuthorization", "z")), networks, proof)


@pytest.mark.parametrize(
    ("client", "fault"),
    [
        ({}, "either"),
        ({"unauthenticated": True, "meshTLS": {"identities": ["*"]}}, "either"),
        ({"meshTLS": {}}, "nobody"),
        ({"meshTLS": {"unauthenticatedTLS": True, "identities": ["a.b"]}}, "unauthenticatedTLS"),
        ({"meshTLS": {"identities": ["A.b", "a..b", "a.b.", "*.", "**"]}}, "nobody"),
        ({"unauthenticated": True, "networks": [{"cidr": "10.0.0.0/33"}]}, "nobody"),
        (
            {"unauthenticated": True, "networks": [{"cidr": "10.0.0.0/8", "except": ["x"]}]},
            "nobody",
        ),
    ],
)
def test_what_says_nothing_admits_nobody(client: dict[str, object], fault: str) -> None:
    held = world({"saz": "shop/z", "server": "web", "client": client})
    assert asked(held).authorizations == ()
    grant = held.db.read(server_authorization, ObjectKey(LOCAL, "shop", "z"))
    assert grant.authorization is None
    assert fault in grant.faults[0].message


def test_what_cannot_be_read_is_left_out_and_told() -> None:
    client = {
        "networks": [{"cidr": "10.0.0.0/8"}, {"cidr": "fe80::1%eth0"}],
        "meshTLS": {"identities": ["a.example", "A.example"]},
    }
    held = world({"saz": "shop/z", "server": "web", "client": client})
    (found,) = asked(held).authorizations
    assert (found.networks, found.authentication) == ((OURS,), Peers((Dns("a.example"),)))
    paths = [one.path for one in held.db.read(grant_faults, ref("ServerAuthorization", "z"))]
    assert paths == ["client.networks[1]", "client.meshTLS.identities[1]"]


# ------------------------------------------------------------------- AuthorizationPolicies


def test_policies_are_for_a_server_or_all_servers_of_their_namespace() -> None:
    found = granted(
        {"az": "shop/server", "for": "web"},
        {"az": "shop/any-case", "for": ["server.POLICY.linkerd.io", "web"]},
        {"az": "shop/namespace", "for": ["Namespace", "shop"]},
        {"az": "shop/core", "for": ["Namespace.core", "shop"]},
        {"az": "shop/other", "for": "cellar"},
        {"az": "shop/elsewhere", "for": ["Namespace", "pay"]},
        {"az": "pay/foreign", "for": "web"},
        {"az": "shop/no-group", "for": ["Server.example.org", "web"]},
    )
    assert list(found) == ["any-case", "core", "namespace", "server"]
    assert set(found.values()) == {
        Authorization(Origin(ref("AuthorizationPolicy", name)), ANYWHERE, Anybody())
        for name in found
    }


def test_a_policy_for_a_namespace_says_nothing_of_ports_without_a_server() -> None:
    held = world({"az": "shop/wide", "for": ["Namespace", "shop"]})
    assert [one.source for one in asked(held, 9090).authorizations] == [
        Default("all-unauthenticated")
    ]


def test_identity_and_network_must_both_be_proven() -> None:
    (found,) = granted(
        {"mtls": "shop/m", "refs": [["ServiceAccount", "picker"], ["Namespace", "pay"]]},
        {"nets": "pay/n", "networks": [{"cidr": "10.20.0.0/16", "except": ["10.20.4.0/24"]}]},
        {
            "az": "shop/both",
            "for": "web",
            "needs": ["MeshTLSAuthentication m", "NetworkAuthentication pay/n"],
        },
    ).values()
    assert found.networks == (Network("10.20.0.0/16", ("10.20.4.0/24",)),)
    assert found.authentication == Peers(
        (
            Dns(f"picker.shop.{ENDING}"),
            IdentitySuffix(("pay", *ENDING.split("."))),
        )
    )


def test_an_account_needs_only_a_name() -> None:
    (found,) = granted(
        {"az": "shop/a", "for": "web", "needs": ["ServiceAccount pay/till"]}
    ).values()
    assert found.authentication == Peers((Dns(f"till.pay.{ENDING}"),))


@pytest.mark.parametrize(
    ("ids", "matches"),
    [
        (["*"], (AnyIdentity(),)),
        (["*.a.b"], (IdentitySuffix(("a", "b")),)),
        (["spiffe://td.example/ns/a"], (Spiffe("td.example", ("ns", "a")),)),
        (["x.y", "x.y"], (Dns("x.y"),)),
    ],
)
def test_identities_are_parsed(ids: list[str], matches: tuple[object, ...]) -> None:
    (found,) = granted(
        {"mtls": "shop/m", "ids": ids},
        {"az": "shop/a", "for": "web", "needs": ["MeshTLSAuthentication m"]},
    ).values()
    assert found.authentication == Peers(matches)  # type: ignore[arg-type]  # as they are


def test_a_policy_whose_authentication_is_missing_admits_nobody_until_it_comes() -> None:
    late: Compact = {"az": "shop/late", "for": "web", "needs": ["MeshTLSAuthentication m"]}
    held = world(late)
    assert asked(held).authorizations == ()
    grant = held.db.read(authorization_policy, ObjectKey(LOCAL, "shop", "late"))
    (missing,) = grant.unresolved
    assert missing.path == "requiredAuthenticationRefs[0]"
    assert "MeshTLSAuthentication shop/m" in missing.message
    held.apply({"mtls": "shop/m", "ids": ["*"]})
    assert len(asked(held).authorizations) == 1
    held.delete("mtls shop/m")
    assert asked(held).authorizations == ()


@pytest.mark.parametrize(
    "needs",
    [
        ["NetworkAuthentication gone"],
        ["MeshTLSAuthentication m", "NetworkAuthentication gone"],
        ["MeshTLSAuthentication m", "MeshTLSAuthentication m"],
        ["MeshTLSAuthentication m", "ServiceAccount picker"],
        ["NetworkAuthentication n", "NetworkAuthentication n"],
        ["Secret.core s"],
        ["MeshTLSAuthentication unreadable"],
        ["NetworkAuthentication unreadable"],
        ["MeshTLSAuthentication.example.org m"],
    ],
)
def test_whatever_is_not_understood_admits_nobody(needs: list[str]) -> None:
    found = granted(
        {"mtls": "shop/m", "ids": ["*"]},
        {"nets": "shop/n", "networks": ["10.0.0.0/8"]},
        {"mtls": "shop/unreadable", "refs": [["Pod", "p"], ["ServiceAccount", ""]]},
        {"nets": "shop/unreadable", "networks": ["10.0.0.0/8/8"]},
        {"az": "shop/a", "for": "web", "needs": needs},
    )
    assert found == {}


def test_faults_of_authentications_are_values() -> None:
    held = world(
        {"mtls": "shop/m", "refs": [["Pod", "p"], ["ServiceAccount", "s"]]},
        {"nets": "shop/n", "networks": ["nowhere", "10.0.0.0/8"]},
    )
    (of_m,) = held.db.read(grant_faults, ref("MeshTLSAuthentication", "m"))
    assert of_m.path == "identityRefs[0]"
    (of_n,) = held.db.read(grant_faults, ref("NetworkAuthentication", "n"))
    assert of_n.path == "networks[0]"
    for kind in ("MeshTLSAuthentication", "NetworkAuthentication", "ServerAuthorization", "Server"):
        assert held.db.read(grant_faults, ref(kind, "gone")) == ()


def test_grants_stand_by_kind_and_name_before_the_servers_own_policy() -> None:
    held = world(
        {"saz": "shop/a", "server": "web", "client": {"unauthenticated": True}},
        {"az": "shop/b", "for": "web"},
        {"az": "shop/a", "for": "web"},
        {**SERVER, "access": "audit"},
    )
    found = [
        one.source
        if isinstance(one.source, Default)
        else (one.source.ref.kind, one.source.ref.name)
        for one in asked(held).authorizations
    ]
    assert found == [
        ("AuthorizationPolicy", "a"),
        ("AuthorizationPolicy", "b"),
        ("ServerAuthorization", "a"),
        Default("audit"),
    ]


def test_a_linked_clusters_policies_are_not_ours() -> None:
    held = world({"az": "shop/open", "for": "web", "in": "east"})
    held.link("east", trust_domain="east.test", cluster_domain="east.test")
    assert asked(held).authorizations == ()


def test_external_workloads_are_protected_like_pods() -> None:
    held = World(
        {"ew": "shop/vm", "ips": ["192.0.2.1"], "id": "spiffe://td/vm", "labels": {"app": "vm"}},
        {"server": "shop/web", "ews": {"app": "vm"}, "port": 8080},
        {"az": "shop/open", "for": "web", "needs": ["ServiceAccount till"]},
    )
    vm = external_ref(ObjectKey(LOCAL, "shop", "vm"))
    (found,) = held.db.read(inbound, InboundName(vm, 8080)).authorizations
    assert found.authentication == Peers((Dns(f"till.shop.{ENDING}"),))

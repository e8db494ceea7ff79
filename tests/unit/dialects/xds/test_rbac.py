from __future__ import annotations

import re

import pytest
from envoy.config.rbac.v3 import rbac_pb2 as pb

from isthmus.dialects.xds import rbac
from isthmus.ir.inbound import (
    ANYWHERE,
    Anybody,
    Authentication,
    Authorization,
    Network,
    Peers,
    TlsOnly,
)
from isthmus.ir.names import AnyIdentity, Default, Dns, IdentitySuffix, Origin, Ref, Spiffe

WHO = Default("who")
OTHER = Origin(Ref("here", "policy.linkerd.io", "AuthorizationPolicy", "shop", "cart"))


def authorization(
    asked: Authentication = Anybody(),  # noqa: B008 - frozen
    networks: tuple[Network, ...] = ANYWHERE,
    *,
    audit: bool = False,
) -> Authorization:
    return Authorization(WHO, networks, asked, audit)


def principal(one: Authorization) -> pb.Principal:
    (found,) = rbac.rules([one]).policies["default/who"].principals
    return found


def test_policies_are_named_by_who_said_so() -> None:
    found = rbac.rules([authorization(), Authorization(OTHER, ANYWHERE, Anybody())])
    assert set(found.policies) == {
        "default/who",
        "authorizationpolicy/shop/cart",
        "default/localhost",
    }
    assert found.action == pb.RBAC.ALLOW


def test_who_is_on_the_same_machine_is_let_in() -> None:
    (loopback,) = rbac.rules([]).policies["default/localhost"].principals
    ranges = [each.direct_remote_ip.address_prefix for each in loopback.or_ids.ids]
    assert ranges == ["127.0.0.1", "::1"]


def test_who_only_audits_is_tried_last() -> None:
    found = rbac.rules([authorization(audit=True), Authorization(OTHER, ANYWHERE, Anybody())])
    assert max(found.policies) == "~default/who"


def test_anybody_from_anywhere_is_anybody() -> None:
    assert principal(authorization()).any
    assert rbac.unrestricted([authorization()])
    assert not rbac.unrestricted([authorization(audit=True)])
    assert not rbac.unrestricted([authorization(Peers((AnyIdentity(),)))])
    assert not rbac.unrestricted([authorization(networks=(Network("10.0.0.0/8"),))])
    assert not rbac.unrestricted([])


def test_networks_have_exceptions() -> None:
    found = principal(authorization(networks=(Network("10.0.0.7/8", ("10.1.0.0/16",)),)))
    within, outside = found.and_ids.ids
    assert within.direct_remote_ip.address_prefix == "10.0.0.0"
    assert within.direct_remote_ip.prefix_len.value == 8
    assert outside.not_id.direct_remote_ip.address_prefix == "10.1.0.0"


def test_everywhere_but_somewhere_is_not_everywhere() -> None:
    some = (Network("0.0.0.0/0", ("10.0.0.0/8",)), Network("::/0"))
    assert not rbac.unrestricted([authorization(networks=some)])


def test_network_and_proof_must_both_hold() -> None:
    found = principal(authorization(Peers((Dns("a.b"),)), (Network("10.0.0.0/8"),)))
    assert [each.WhichOneof("identifier") for each in found.and_ids.ids] == [
        "direct_remote_ip",
        "authenticated",
    ]


def test_no_networks_admit_nobody() -> None:
    assert "default/who" not in rbac.rules([authorization(networks=())]).policies


@pytest.mark.parametrize(
    ("identity", "exact"),
    [(Dns("a.b"), "a.b"), (Spiffe("td", ("ns", "x")), "spiffe://td/ns/x")],
)
def test_identities_are_compared_whole(identity: Dns | Spiffe, exact: str) -> None:
    found = principal(authorization(Peers((identity,))))
    assert found.authenticated.principal_name.exact == exact


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a.shop.example", True),
        ("a.b.shop.example", True),
        ("shop.example", False),
        ("a.shopXexample", False),
        ("xshop.example", False),
        (".shop.example", False),
        ("A.shop.example", False),
        ("spiffe://shop.example", False),
        ("spiffe://td/a.shop.example", False),
        ("a.shop.example.", False),
        ("a.shop.example.evil", False),
    ],
)
def test_a_suffix_is_labels_not_text(name: str, fits: bool) -> None:
    found = principal(authorization(Peers((IdentitySuffix(("shop", "example")),))))
    pattern = found.authenticated.principal_name.safe_regex.regex
    assert bool(re.fullmatch(pattern, name)) is fits


def test_tls_alone_is_any_certificate_and_no_names_are_nobody() -> None:
    assert principal(authorization(TlsOnly())).HasField("authenticated")
    assert principal(authorization(Peers(()))).not_id.any


@pytest.mark.parametrize(
    ("asked", "mesh", "plain"),
    [
        (Anybody(), True, True),
        (TlsOnly(), True, None),
        (Peers((AnyIdentity(), Dns("a.b"))), True, None),
        (Peers((Dns("a.b"),)), False, None),
    ],
)
def test_what_is_left_to_ask_once_the_transport_is_known(
    asked: Authentication, mesh: bool, plain: bool | None
) -> None:
    one = [authorization(asked)]
    assert rbac.unrestricted(rbac.left_to_ask(one, meshed=True)) is mesh
    left = rbac.left_to_ask(one, meshed=False)
    assert (rbac.unrestricted(left) if left else None) is plain

"""What a signing request may ask for: several URIs, CA bits and extra names are refused."""

from __future__ import annotations

import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from isthmus.ca import request
from isthmus.errors import BadRequest, UserFault
from tests.support.csr import csr, usage

NAME = "face.faces.serviceaccount.identity.linkerd.cluster.local"
URI = "spiffe://cluster.local/isthmus/host/a"


def test_our_own_requests_are_modest() -> None:
    key = request.make_key()
    for identity in (NAME, URI):
        read = request.read(request.make(key, identity))
        request.require_only(read, identity)
        assert read.key == key.public_key()
    assert request.read(request.make(key, NAME)).common_name == NAME


def test_a_long_identity_has_no_common_name() -> None:
    long = f"{'a' * 40}.{NAME}"
    read = request.read(request.make(request.make_key(), long))
    assert read.common_name == ""
    request.require_only(read, long)


@pytest.mark.parametrize("data", [b"", b"\x30", b"nonsense" * 10, b"\x30\x82\xff\xff" + bytes(64)])
def test_bytes_that_are_no_request(data: bytes) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        request.read(data)


def test_a_request_that_is_too_long_is_not_read() -> None:
    with pytest.raises(BadRequest, match="longer than"):
        request.read(bytes(request.LARGEST + 1))


def test_a_request_that_somebody_changed_is_not_signed() -> None:
    data = bytearray(csr([NAME]))
    data[-1] ^= 1
    with pytest.raises((UserFault, BadRequest)):
        request.read(bytes(data))


def test_the_key_of_another_is_no_proof() -> None:
    """The public key replaced by somebody else's: the signature does not fit."""
    mine = ec.generate_private_key(ec.SECP256R1())
    theirs = ec.generate_private_key(ec.SECP256R1()).public_key()
    data = csr([NAME], key=mine).replace(_point(mine.public_key()), _point(theirs))
    with pytest.raises(UserFault, match="not signed with the key"):
        request.read(data)


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
    ],
    ids=["P-384", "RSA"],
)
def test_keys_that_proxies_do_not_verify(key: ec.EllipticCurvePrivateKey) -> None:
    with pytest.raises(UserFault, match="P-256"):
        request.read(csr([NAME], key=key))


@pytest.mark.parametrize(
    ("extension", "says"),
    [
        (x509.BasicConstraints(ca=True, path_length=None), "CA's certificate"),
        (usage(digital_signature=True, key_cert_sign=True), "key usage"),
        (usage(crl_sign=True), "key usage"),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), "key usage"),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]), "key usage"),
        (x509.NameConstraints([x509.DNSName("x")], None), "2.5.29.30"),
        (x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"x"), "1.2.3.4"),
    ],
)
def test_what_workloads_do_not_get(extension: x509.ExtensionType, says: str) -> None:
    with pytest.raises(UserFault, match=says):
        request.read(csr([NAME], extensions=[extension]))


def test_what_they_get_anyway_may_be_asked_for() -> None:
    fine = [
        x509.BasicConstraints(ca=False, path_length=None),
        usage(digital_signature=True, key_encipherment=True),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),
    ]
    request.require_only(request.read(csr([NAME], cn=NAME, extensions=fine)), NAME)


@pytest.mark.parametrize(
    ("dns", "uris"),
    [
        ([], []),
        ([NAME, NAME], []),
        ([NAME, "other"], []),
        (["other"], []),
        ([NAME.upper()], []),
        ([f"{NAME}."], []),
        ([NAME], [URI]),
        ([], [URI, "spiffe://cluster.local/ns/a/sa/b"]),
        ([], [URI]),
    ],
)
def test_other_names_than_the_one(dns: list[str], uris: list[str]) -> None:
    with pytest.raises(UserFault, match="nothing else"):
        request.require_only(request.read(csr(dns, uris)), NAME)


def test_two_uris_are_not_a_host() -> None:
    with pytest.raises(UserFault, match="nothing else"):
        request.require_only(request.read(csr([], [URI, URI + "2"])), URI)


@pytest.mark.parametrize(
    "name",
    [x509.IPAddress(ipaddress.ip_address("10.0.0.1")), x509.RFC822Name("a@b")],
    ids=["address", "mail"],
)
def test_names_of_other_sorts(name: x509.GeneralName) -> None:
    with pytest.raises(UserFault, match="no DNS name and no URI"):
        request.read(csr([NAME], other=[name]))


def test_a_common_name_of_somebody_else() -> None:
    with pytest.raises(UserFault, match="common name"):
        request.require_only(request.read(csr([NAME], cn="admin")), NAME)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    numbers = key.public_numbers()
    return b"\x04" + numbers.x.to_bytes(32) + numbers.y.to_bytes(32)

"""Anchors and issuers: what is taken, what is refused, and what leaves come of it."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import SystemClock
from isthmus.ca import Material, chains, issue, request, server_leaf, tls, trust
from isthmus.errors import Unavailable, UserFault
from tests.support.trusts import NOW, YEAR, Ca, ordinary

ROOT = Ca("root")
NAME = "face.faces.serviceaccount.identity.linkerd.cluster.local"
URI = "spiffe://cluster.local/ns/faces/sa/face"


def read(material: Material) -> trust.Trust:
    return trust.read(material, now=NOW, where="Secret linkerd/x")


def test_a_ca_made_here_is_anchor_and_issuer_in_one() -> None:
    made = trust.make("isthmus", now=NOW)
    assert made.way == made.anchors
    assert made.intermediates == ()
    assert made.ends == NOW + trust.LIFETIME
    assert trust.from_objects(trust.secret_data(made), "") == made.material


def test_intermediates_are_told_and_anchors_are_not() -> None:
    middle = Ca("middle", ROOT)
    issuer = Ca("issuer", middle, length=0)
    found = read(issuer.signs(ROOT.pem, middle))
    assert found.intermediates == (issuer.certificate, middle.certificate)
    assert found.way[-1] == ROOT.certificate


def test_several_anchors_are_one_bundle_each_once() -> None:
    old = Ca("old root")
    issuer = Ca("issuer", ROOT)
    found = read(issuer.signs(old.pem + ROOT.pem + old.pem))
    assert found.anchors == (old.certificate, ROOT.certificate)
    assert found.bundle == old.pem + ROOT.pem


@pytest.mark.parametrize(
    ("material", "says"),
    [
        (Material(b"", b"", b""), "the trust anchors of Secret linkerd/x holds no certificates"),
        (Ca("i", ROOT).signs(b"rubbish"), "holds no certificates"),
        (Ca("i", ROOT).signs(Ca("other").pem), "not signed by a trust anchor"),
        (Ca("root").signs(ROOT.pem), "not signed by a trust anchor"),
        (Ca("i", ROOT, ca=False).signs(ROOT.pem), "is no CA's"),
        (Ca("i", ROOT, start=NOW - 2 * YEAR).signs(ROOT.pem), "expired on 2025-01-01"),
        (Ca("i", ROOT, start=NOW + YEAR).signs(ROOT.pem), "not valid before 2027"),
        (Ca("i", ROOT, curve=ec.SECP384R1()).signs(ROOT.pem), "P-256"),
        (Ca("i", ROOT).signs(ROOT.pem)._replace(key=Ca("x").key_pem), "do not belong together"),
        (Ca("i", ROOT).signs(ROOT.pem)._replace(key=b"rubbish"), "cannot be read"),
    ],
)
def test_material_that_cannot_be_used(material: Material, says: str) -> None:
    with pytest.raises(UserFault, match=says):
        read(material)


def test_an_anchor_that_forbids_cas_below_it() -> None:
    short = Ca("short", length=0)
    middle = Ca("middle", short)
    with pytest.raises(UserFault, match="path length"):
        read(Ca("i", middle).signs(short.pem, middle))


def test_a_ring_of_cas_ends() -> None:
    """Two CAs that signed each other lead nowhere."""
    one, other = Ca("a"), Ca("b")
    crossed = Ca("a", other)
    back = Ca("b", one)
    with pytest.raises(UserFault, match="not signed by a trust anchor"):
        read(crossed.signs(ROOT.pem, back, other, one))


def test_a_repr_holds_no_key() -> None:
    material = ordinary().material
    assert "PRIVATE" not in repr(material)
    assert "PRIVATE" not in f"{ordinary()!r}"


def test_the_secret_of_either_scheme() -> None:
    pair = {"tls.crt": b"c", "tls.key": b"k"}
    assert trust.from_objects(pair, "roots") == Material(b"roots", b"c", b"k")
    assert trust.from_objects({"crt.pem": b"c", "key.pem": b"k"}, "r") == Material(b"r", b"c", b"k")
    assert trust.from_objects({**pair, "ca.crt": b"beside"}, "") == Material(b"beside", b"c", b"k")
    assert trust.from_objects({"tls.crt": b"c"}, "roots") is None


# ------------------------------------------------------------------------------------------ leaves


def leaf(of: trust.Trust, **more: timedelta) -> x509.Certificate:
    key = request.make_key()
    return issue(of, key.public_key(), (NAME, URI), common_name=NAME, now=NOW, **more).leaf


def test_a_leaf_has_the_dns_name_first_and_lives_a_day() -> None:
    made = leaf(ordinary())
    sans = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(sans) == [x509.DNSName(NAME), x509.UniformResourceIdentifier(URI)]
    assert made.not_valid_after_utc == NOW + timedelta(hours=24, seconds=20)
    assert made.not_valid_before_utc == NOW - timedelta(seconds=20)
    basic = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical
    assert not basic.value.ca
    usage = made.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_cert_sign


@pytest.mark.parametrize("short", ["root", "middle", "issuer"])
def test_a_leaf_never_outlives_anything_above_it(short: str) -> None:
    def lifetime(name: str) -> timedelta:
        return timedelta(days=1, hours=2) if name == short else YEAR

    root = Ca("root", lifetime=lifetime("root"))
    middle = Ca("middle", root, lifetime=lifetime("middle"))
    issuer = Ca("issuer", middle, lifetime=lifetime("issuer"))
    made = leaf(read(issuer.signs(root.pem, middle)))
    assert made.not_valid_after_utc == NOW + timedelta(hours=2)


def test_an_issuer_that_has_expired_signs_nothing() -> None:
    held = ordinary()
    late = NOW + 2 * YEAR
    with pytest.raises(Unavailable, match="issuer expired"):
        issue(held, request.make_key().public_key(), (NAME,), now=late)


def test_a_leaf_without_a_subject_has_critical_names() -> None:
    made = issue(ordinary(), request.make_key().public_key(), (URI,), now=NOW).leaf
    assert made.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical


def test_two_cas_of_one_name_do_not_vouch_for_each_other() -> None:
    one, other = ordinary(), ordinary()
    made = leaf(one)
    assert chains.path((made, *one.intermediates), one.anchors, NOW)
    with pytest.raises(UserFault, match="not signed"):
        chains.path((made, *other.intermediates), other.anchors, NOW)


def test_openssl_takes_what_we_issue() -> None:
    """A real handshake, both sides showing certificates; no key ever has a file name."""
    held = ordinary(_machine_time())
    server = tls.server(
        server_leaf(held, ("server.test",), now=_machine_time()),
        held.bundle,
        required=True,
        alpn=("h2",),
    )
    client = tls.client(
        server_leaf(held, (NAME, URI), now=_machine_time()), held.bundle, alpn=("h2",)
    )
    ends = _handshake(server, client, "server.test")
    assert ends.version() == "TLSv1.3"
    assert ends.selected_alpn_protocol() == "h2"
    shown = ends.getpeercert(binary_form=True)
    assert shown is not None
    assert chains.uris(x509.load_der_x509_certificate(shown)) == (URI,)


def test_a_server_of_another_name_is_refused() -> None:
    held = ordinary(_machine_time())
    other = server_leaf(held, ("other.test",), now=_machine_time())
    server = tls.server(other, held.bundle, required=False, alpn=())
    with pytest.raises(ssl.SSLCertVerificationError, match="server.test"):
        _handshake(server, tls.client(None, held.bundle, alpn=()), "server.test")


def test_no_anchors_do_not_mean_everybody() -> None:
    with pytest.raises(UserFault, match="no trust anchors"):
        tls.client(None, b"", alpn=())


def _machine_time() -> datetime:
    """OpenSSL looks at the machine's clock."""
    return SystemClock().utc().replace(microsecond=0)


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """The server's end of a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = server.wrap_bio(to_server, to_client, server_side=True)
    there = client.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [there, here]
    for _ in range(10):
        for each in tuple(waiting):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(each)
    assert not waiting
    return here

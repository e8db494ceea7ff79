"""The CA: what it issues, what real TLS says of it, and what it does with spoilt files."""

from __future__ import annotations

import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from isthmus import ca
from isthmus.errors import UserFault

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def certificate(leaf: ca.Leaf) -> x509.Certificate:
    return x509.load_pem_x509_certificate(leaf.certificate)


def test_an_address_becomes_an_ip_san_and_a_name_a_dns_san() -> None:
    leaf = ca.make("test", now=NOW).issue_server(["127.0.0.1", "::1", "kubernetes"], now=NOW)
    sans = certificate(leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(sans.get_values_for_type(x509.IPAddress)) == {
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
    }
    assert sans.get_values_for_type(x509.DNSName) == ["kubernetes"]


def test_a_client_carries_the_user_as_cn_and_groups_as_o() -> None:
    leaf = ca.make("test", now=NOW).issue_client("ann", ["system:masters", "team"], now=NOW)
    subject = certificate(leaf).subject
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["ann"]
    groups = [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["system:masters", "team"]


def test_a_leaf_is_no_ca_and_says_what_it_is_for() -> None:
    leaf = certificate(ca.make("test", now=NOW).issue_client("ann", now=NOW))
    basic = leaf.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical
    assert not basic.value.ca
    usage = leaf.extensions.get_extension_for_oid(ExtensionOID.EXTENDED_KEY_USAGE).value
    assert isinstance(usage, x509.ExtendedKeyUsage)
    assert [u.dotted_string for u in usage] == ["1.3.6.1.5.5.7.3.2"]


def test_a_leaf_never_outlives_its_issuer_nor_predates_it() -> None:
    authority = ca.make("test", now=NOW, lifetime=timedelta(days=2))
    leaf = authority.issue_server(["a"], now=NOW, lifetime=timedelta(days=30))
    assert certificate(leaf).not_valid_after_utc == authority.certificate.not_valid_after_utc
    assert certificate(leaf).not_valid_before_utc >= authority.certificate.not_valid_before_utc
    assert leaf.not_after == NOW + timedelta(days=2)


def test_an_expired_ca_issues_nothing() -> None:
    authority = ca.make("test", now=NOW, lifetime=timedelta(days=2))
    with pytest.raises(UserFault, match="expired on 2026-03-03"):
        authority.issue_server(["a"], now=NOW + timedelta(days=2))


def test_a_server_without_names_is_refused() -> None:
    with pytest.raises(UserFault, match="at least one name"):
        ca.make("test", now=NOW).issue_server([], now=NOW)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """Both ends over memory; returns the server's."""
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(a, b, server_hostname=name),
        server.wrap_bio(b, a, server_side=True),
    )
    waiting = set(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.discard(end)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return ends[1]
    pytest.fail("the handshake does not end")


def contexts(
    authority: ca.Authority, client: ca.Leaf, tmp_path: Path
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    now = datetime.now(UTC)  # noqa: TID251  # OpenSSL looks at the real clock
    trust = authority.bundle.decode()
    ends = ssl.create_default_context(cadata=trust), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ends[1].load_verify_locations(cadata=trust)
    ends[1].verify_mode = ssl.CERT_OPTIONAL
    for context, leaf in zip(
        ends, (client, authority.issue_server(["10.0.0.1"], now=now)), strict=True
    ):
        path = tmp_path / f"{id(context)}.pem"
        path.write_bytes(leaf.certificate + leaf.key)
        context.load_cert_chain(path)
    return ends


def test_openssl_agrees_on_both_sides(tmp_path: Path) -> None:
    now = datetime.now(UTC)  # noqa: TID251
    authority = ca.make("test", now=now)
    client = authority.issue_client("ann", ["system:masters"], now=now)
    server = handshake(*contexts(authority, client, tmp_path), "10.0.0.1")
    peer = server.getpeercert()
    assert peer is not None
    subject = [pair for rdn in peer["subject"] for pair in rdn]
    assert ("commonName", "ann") in subject
    assert ("organizationName", "system:masters") in subject


def test_openssl_refuses_a_foreign_client(tmp_path: Path) -> None:
    now = datetime.now(UTC)  # noqa: TID251
    stranger = ca.make("test", now=now).issue_client("ann", ["system:masters"], now=now)
    pair = contexts(ca.make("test", now=now), stranger, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(*pair, "10.0.0.1")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_ca_is_made_once_and_kept_privately(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "ca"
    first = ca.load_or_make(home, "east", now=NOW)
    again = ca.load_or_make(home, "east", now=NOW + timedelta(days=1))
    assert again.bundle == first.bundle
    assert mode(home) == 0o700
    assert mode(home / "ca.key") == 0o600
    assert sorted(p.name for p in home.iterdir()) == ["ca.crt", "ca.key"]


def test_an_open_directory_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "ca"
    home.mkdir(mode=0o755)
    ca.load_or_make(home, "east", now=NOW)
    assert mode(home) == 0o700


def test_a_crash_between_key_and_certificate_is_made_good(tmp_path: Path) -> None:
    ca.load_or_make(tmp_path, "east", now=NOW)
    (tmp_path / "ca.crt").unlink()
    assert ca.load_or_make(tmp_path, "east", now=NOW).issue_client("a", now=NOW)


@pytest.mark.parametrize("spoilt", ["ca.crt", "ca.key"])
@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_spoilt_file_is_named(tmp_path: Path, spoilt: str, content: bytes) -> None:
    ca.load_or_make(tmp_path, "east", now=NOW)
    (tmp_path / spoilt).write_bytes(content)
    with pytest.raises(UserFault, match=spoilt):
        ca.load_or_make(tmp_path, "east", now=NOW)


def test_a_key_of_another_ca_is_refused(tmp_path: Path) -> None:
    ca.load_or_make(tmp_path, "east", now=NOW)
    (tmp_path / "ca.key").write_bytes(ca.make("other", now=NOW).key_pem)
    with pytest.raises(UserFault, match="do not belong together"):
        ca.load_or_make(tmp_path, "east", now=NOW)


def test_an_expired_ca_says_what_to_do(tmp_path: Path) -> None:
    ca.load_or_make(tmp_path, "east", now=NOW)
    with pytest.raises(UserFault, match=r"expired on 2036-02-27; move .* away"):
        ca.load_or_make(tmp_path, "east", now=NOW + timedelta(days=4000))


def test_a_file_in_the_way_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("")
    with pytest.raises(UserFault, match="is not a directory"):
        ca.load_or_make(tmp_path / "ca", "east", now=NOW)


def test_an_atomic_write_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    ca.write_atomic(path, b"old", mode=0o644)
    ca.write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["kubeconfig"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        ca.write_atomic(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["target"]


def test_the_kubeconfig_has_one_context_with_everything_inside() -> None:
    authority = ca.make("test", now=NOW)
    leaf = authority.issue_client("admin", ["system:masters"], now=NOW)
    read = yaml.safe_load(  # noqa: TID251  # an independent reader
        ca.kubeconfig("k3d-face", "https://127.0.0.1:6443", authority, leaf)
    )
    assert read["current-context"] == "k3d-face"
    assert [c["name"] for c in read["contexts"]] == ["k3d-face"]
    assert read["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert set(read["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}

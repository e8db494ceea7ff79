"""The mesh's trust, made before any server starts: one anchor for the lab, an issuer per cluster.

The certificates are those of a Linkerd installation: an issuer is a CA for leaves only, named
`identity.<control-plane namespace>.<trust domain>`, P-256. With separate trust, each cluster's
issuer hangs on an anchor of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from isthmus.ca import private_directory, write_atomic
from isthmus.lab.topology import Trust

LIFETIME = timedelta(days=365)
SKEW = timedelta(minutes=5)

ANCHOR_NAME = "root.linkerd.cluster.local"


class TrustFiles(msgspec.Struct, frozen=True):
    """Where one cluster's server finds its trust: PEM files."""

    anchors: Path
    certificate: Path
    key: Path


class _Pair(msgspec.Struct, frozen=True):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def write_trust(
    folder: Path, issuers: Mapping[str, str], mode: Trust, now: datetime
) -> dict[str, TrustFiles]:
    """Make the material of all clusters. `issuers`: the name of each cluster's issuer."""
    private_directory(folder)
    shared = _make(ANCHOR_NAME, None, now)
    found = {}
    for cluster, name in issuers.items():
        anchor = shared if mode is Trust.SHARED else _make(ANCHOR_NAME, None, now)
        found[cluster] = _write(folder / cluster, anchor, _make(name, anchor, now))
    return found


def _write(folder: Path, anchor: _Pair, issuer: _Pair) -> TrustFiles:
    private_directory(folder)
    files = TrustFiles(folder / "ca.crt", folder / "issuer.crt", folder / "issuer.key")
    write_atomic(files.anchors, _pem([anchor.certificate]))
    write_atomic(files.certificate, _pem([issuer.certificate]))
    write_atomic(
        files.key,
        issuer.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    return files


def _pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _make(name: str, issuer: _Pair | None, now: datetime) -> _Pair:
    """A CA: self-signed with room for one more below it, or an issuer of leaves."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = key if issuer is None else issuer.key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(
            x509.BasicConstraints(ca=True, path_length=1 if issuer is None else 0), critical=True
        )
        .add_extension(_ca_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    return _Pair(builder.sign(signer, hashes.SHA256()), key)


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )

"""A certificate authority on P-256: made once, kept in two files, issuing leaves.

Rules: RFC 5280 for profiles; a leaf never outlives its issuer (what an expired CA signed fails in
ways nobody understands); client certificates carry the user as CN and the groups as O, as
"Kubernetes: X.509 client certificate authentication" reads them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.ca.files import private_directory, write_atomic
from isthmus.errors import UserFault

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
SKEW = timedelta(minutes=5)
"""How far a peer's clock may lag behind ours before a fresh certificate looks unborn."""


class Leaf(NamedTuple):
    """A certificate with the chain up to (not including) the root, and its key: PEM both."""

    certificate: bytes
    key: bytes
    not_after: datetime


class Authority:
    """A CA certificate and its private key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        if certificate.public_key() != key.public_key():
            raise UserFault("the CA's certificate and key do not belong together")
        self.certificate = certificate
        self._key = key

    @property
    def bundle(self) -> bytes:
        """The CA certificate as PEM: what clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as PKCS#8 PEM."""
        return _key_pem(self._key)

    def issue_server(
        self, names: Iterable[str], *, now: datetime, lifetime: timedelta = LEAF_LIFETIME
    ) -> Leaf:
        """A leaf for a TLS server that answers under `names`: IP addresses and DNS names.

        kubectl checks an IP address against IP SANs only, so an address never becomes a DNS SAN.
        """
        sans = [_general_name(name) for name in sorted(set(names))]
        if not sans:
            raise UserFault("a server certificate needs at least one name")
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "isthmus")])
        return self._issue(subject, sans, ExtendedKeyUsageOID.SERVER_AUTH, now, lifetime)

    def issue_client(
        self,
        user: str,
        groups: Sequence[str] = (),
        *,
        now: datetime,
        lifetime: timedelta = LEAF_LIFETIME,
    ) -> Leaf:
        """A leaf that makes its holder `user`, a member of `groups`."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, [], ExtendedKeyUsageOID.CLIENT_AUTH, now, lifetime)

    def _issue(
        self,
        subject: x509.Name,
        sans: Sequence[x509.GeneralName],
        usage: x509.ObjectIdentifier,
        now: datetime,
        lifetime: timedelta,
    ) -> Leaf:
        issuer = self.certificate
        if now >= issuer.not_valid_after_utc:
            raise UserFault(f"the CA expired on {issuer.not_valid_after_utc:%Y-%m-%d}")
        key = ec.generate_private_key(ec.SECP256R1())
        not_after = min(now + lifetime, issuer.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(max(now - SKEW, issuer.not_valid_before_utc))
            .not_valid_after(not_after)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return Leaf(pem, _key_pem(key), certificate.not_valid_after_utc)


def make(name: str, *, now: datetime, lifetime: timedelta = CA_LIFETIME) -> Authority:
    """A new self-signed CA called `name`; it signs leaves only, no further CAs."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def load_or_make(directory: Path, name: str, *, now: datetime) -> Authority:
    """The CA kept in `directory` (`ca.crt`, `ca.key`), made there the first time.

    The key is written before the certificate: a crash between the two leaves a key without a
    certificate, which nobody has trusted yet, so both are made anew. UserFault names the file
    that cannot be used.
    """
    private_directory(directory)
    certificate, key = directory / "ca.crt", directory / "ca.key"
    if certificate.exists():
        return _load(certificate, key, now)
    authority = make(name, now=now)
    write_atomic(key, authority.key_pem)
    write_atomic(certificate, authority.bundle, mode=0o644)
    return authority


def _load(certificate: Path, key: Path, now: datetime) -> Authority:
    remedy = f"restore it, or move {certificate.parent} away to get a new CA (and a new kubeconfig)"
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as fault:
        raise UserFault(f"cannot read the CA certificate {certificate}; {remedy}") from fault
    private = load_key(key, remedy)
    if loaded.not_valid_after_utc <= now:
        raise UserFault(
            f"the CA {certificate} expired on {loaded.not_valid_after_utc:%Y-%m-%d}; "
            f"move {certificate.parent} away to get a new CA (and a new kubeconfig)"
        )
    return Authority(loaded, private)


def load_key(path: Path, remedy: str) -> ec.EllipticCurvePrivateKey:
    """The P-256 private key in `path`; UserFault names the file and ends with `remedy`."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as fault:
        raise UserFault(f"cannot read the private key {path}; {remedy}") from fault
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise UserFault(f"{path} holds no P-256 key; {remedy}")
    return key


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

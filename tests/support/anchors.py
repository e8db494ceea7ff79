"""A mesh's trust anchor and leaves under it, for peers of a real Envoy."""

from __future__ import annotations

import hashlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.keys import HEAD

_START = datetime(2020, 1, 1, tzinfo=UTC)
_END = _START + timedelta(days=36500)


class Anchor:
    """A certificate authority. Every leaf has all of its names, in order."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mesh")])
        self.certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_START)
            .not_valid_after(_END)
        )

    def leaf(self, folder: Path, *names: str) -> tuple[Path, Path]:
        """Write a certificate and key for DNS names and URIs; the subject is empty."""
        key = ec.generate_private_key(ec.SECP256R1())
        sans = [_name(each) for each in names]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        made = (
            self._builder(x509.Name([]), key)
            .add_extension(x509.SubjectAlternativeName(sans), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        mark = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
        certificate, secret = folder / f"{mark}.pem", folder / f"{mark}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret

    def write(self, folder: Path, *names: str) -> None:
        """Write `identity/` as the agent does: a leaf of these names, and what to trust."""
        own = folder / "identity"
        own.mkdir(parents=True)
        certificate, key = self.leaf(own, *names)
        (own / "anchor.pem").write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        pair = f"certificate_chain: {{filename: identity/{certificate.name}}}"
        pair += f", private_key: {{filename: identity/{key.name}}}"
        (own / "default.yaml").write_text(f"{HEAD}  name: default\n  tls_certificate: {{{pair}}}\n")
        trust = "validation_context: {trusted_ca: {filename: identity/anchor.pem}}"
        (own / "ROOTCA.yaml").write_text(f"{HEAD}  name: ROOTCA\n  {trust}\n")

    def context(self, folder: Path, *names: str) -> ssl.SSLContext:
        """A client with a leaf of these names, which looks at nothing the server shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        certificate, key = self.leaf(folder, *names)
        context.load_cert_chain(certificate, key)
        return context


def _name(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text) if "://" in text else x509.DNSName(text)

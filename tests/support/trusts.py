"""Trust as somebody else made it: a root, perhaps a CA between, an issuer, each with its key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from isthmus.ca import Material, Trust, trust

NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""Where a ManualClock begins."""
YEAR = timedelta(days=365)


class Ca:
    """A certificate and its key."""

    def __init__(
        self,
        name: str,
        above: Ca | None = None,
        *,
        ca: bool = True,
        length: int | None = None,
        start: datetime = NOW - timedelta(days=1),
        lifetime: timedelta = YEAR,
        curve: ec.EllipticCurve | None = None,
    ) -> None:
        self.key: ec.EllipticCurvePrivateKey = ec.generate_private_key(curve or ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(above.certificate.subject if above else subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + lifetime)
            .add_extension(x509.BasicConstraints(ca, length if ca else None), critical=True)
            .add_extension(identifier, critical=False)
        )
        self.certificate: x509.Certificate = builder.sign(
            above.key if above else self.key, hashes.SHA256()
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )

    def signs(self, anchors: bytes, *between: Ca) -> Material:
        """This as the issuer."""
        return Material(anchors, self.pem + b"".join(each.pem for each in between), self.key_pem)


def ordinary(now: datetime = NOW) -> Trust:
    """A root and an issuer below it, as the workshop makes them."""
    root = Ca("root.linkerd.cluster.local", start=now - timedelta(days=1))
    issuer = Ca("identity.linkerd.cluster.local", root, length=0, start=now - timedelta(days=1))
    return trust.read(issuer.signs(root.pem), now=now, where="test")

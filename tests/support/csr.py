"""Signing requests as a hostile client would write them."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def csr(
    dns: Sequence[str] = (),
    uris: Sequence[str] = (),
    *,
    other: Sequence[x509.GeneralName] = (),
    cn: str = "",
    key: Key | None = None,
    extensions: Sequence[x509.ExtensionType] = (),
) -> bytes:
    """DER of a request with everything that is asked for."""
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, cn)] if cn else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    names = [
        *(x509.DNSName(each) for each in dns),
        *(x509.UniformResourceIdentifier(each) for each in uris),
        *other,
    ]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    for each in extensions:
        builder = builder.add_extension(each, critical=True)
    signed = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.DER)


def usage(**bits: bool) -> x509.KeyUsage:
    """Key usage with these bits alone."""
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
        "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: bits.get(name, False) for name in names})

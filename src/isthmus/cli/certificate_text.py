"""A certificate as text, in the layout that `linkerd identity` has (and openssl, nearly)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_USAGES = (
    ("digital_signature", "Digital Signature"),
    ("content_commitment", "Content Commitment"),
    ("key_encipherment", "Key Encipherment"),
    ("data_encipherment", "Data Encipherment"),
    ("key_agreement", "Key Agreement"),
    ("key_cert_sign", "Certificate Sign"),
    ("crl_sign", "CRL Sign"),
)
_EXTENDED = {
    ExtendedKeyUsageOID.SERVER_AUTH: "TLS Web Server Authentication",
    ExtendedKeyUsageOID.CLIENT_AUTH: "TLS Web Client Authentication",
}


def describe(certificate: x509.Certificate) -> str:
    """The text, ending in a newline."""
    return "".join(f"{line}\n" for line in _lines(certificate))


def _lines(certificate: x509.Certificate) -> Iterator[str]:
    serial = certificate.serial_number
    digest = certificate.signature_hash_algorithm
    algorithm = f"ECDSA-{digest.name.upper()}" if digest is not None else "unknown"
    yield "Certificate:"
    yield "    Data:"
    yield "        Version: 3 (0x2)"
    yield f"        Serial Number: {serial} (0x{serial:x})"
    yield f"    Signature Algorithm: {algorithm}"
    yield f"        Issuer: {_name(certificate.issuer)}"
    yield "        Validity"
    yield f"            Not Before: {_date(certificate.not_valid_before_utc)}"
    yield f"            Not After : {_date(certificate.not_valid_after_utc)}"
    yield f"        Subject: {_name(certificate.subject)}"
    yield from _key(certificate)
    yield "        X509v3 extensions:"
    for extension in certificate.extensions:
        yield from _extension(extension)
    yield f"    Signature Algorithm: {algorithm}"
    yield from _hex(certificate.signature, 18, "         ")


def _name(name: x509.Name) -> str:
    words = {NameOID.COMMON_NAME: "CN", NameOID.ORGANIZATION_NAME: "O"}
    return ",".join(
        f"{words.get(each.oid, each.oid.dotted_string)}={each.value!s}" for each in name
    )


def _date(when: datetime) -> str:
    return f"{when:%b} {when.day} {when:%H:%M:%S %Y} UTC"


def _key(certificate: x509.Certificate) -> Iterator[str]:
    yield "        Subject Public Key Info:"
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        yield "            Public Key Algorithm: not ECDSA"
        return
    numbers, size = key.public_numbers(), (key.key_size + 7) // 8
    yield "            Public Key Algorithm: ECDSA"
    yield f"                Public-Key: ({key.key_size} bit)"
    for letter, number in (("X", numbers.x), ("Y", numbers.y)):
        yield f"                {letter}:"
        yield from _hex(number.to_bytes(size), 15, "                    ")
    curve = {"secp256r1": "P-256", "secp384r1": "P-384"}.get(key.curve.name, key.curve.name)
    yield f"                Curve: {curve}"


def _extension(extension: x509.Extension[x509.ExtensionType]) -> Iterator[str]:
    title, said = _said(extension.value)
    if title:
        yield f"            X509v3 {title}:{' critical' if extension.critical else ''}"
        yield f"                {said}"


def _said(value: x509.ExtensionType) -> tuple[str, str]:
    match value:
        case x509.KeyUsage():
            said = (title for field, title in _USAGES if getattr(value, field))
            return "Key Usage", ", ".join(said)
        case x509.ExtendedKeyUsage():
            return "Extended Key Usage", ", ".join(
                _EXTENDED.get(each, each.dotted_string) for each in value
            )
        case x509.BasicConstraints():
            return "Basic Constraints", f"CA:{'TRUE' if value.ca else 'FALSE'}"
        case x509.AuthorityKeyIdentifier(key_identifier=bytes() as identifier):
            return "Authority Key Identifier", f"keyid:{identifier.hex(':').upper()}"
        case x509.SubjectKeyIdentifier(digest=digest):
            return "Subject Key Identifier", digest.hex(":").upper()
        case x509.SubjectAlternativeName():
            return "Subject Alternative Name", ", ".join(map(_san, value))
        case _:
            return "", ""


def _san(name: x509.GeneralName) -> str:
    match name:
        case x509.DNSName(value=value):
            return f"DNS:{value}"
        case x509.UniformResourceIdentifier(value=value):
            return f"URI:{value}"
        case _:
            return str(name.value)


def _hex(data: bytes, width: int, indent: str) -> Iterator[str]:
    pairs = [f"{each:02x}" for each in data]
    for start in range(0, len(pairs), width):
        more = ":" if start + width < len(pairs) else ""
        yield f"{indent}{':'.join(pairs[start : start + width])}{more}"

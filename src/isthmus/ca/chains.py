"""Certificates of strangers: reading PEM, and whether a chain ends in something that is trusted.

Rules: RFC 5280 section 6, the part that meshes use: signatures, names of issuers, validity, CA bits
and path lengths. Only P-256 keys are taken, since linkerd2-proxy verifies no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.errors import UserFault

MOST: Final = 64
"""Certificates of one file."""
LONGEST: Final = 8
"""Certificates between a leaf and its anchor."""
LARGEST: Final = 256 * 1024
"""Bytes of one file."""

Certificates = tuple[x509.Certificate, ...]


def read_pem(pem: bytes, where: str) -> Certificates:
    """All certificates in `pem`, in order, none twice.

    Raises:
        UserFault: there is none, or one cannot be read; names `where`.
    """
    if len(pem) > LARGEST:
        raise UserFault(f"{where} is longer than {LARGEST} bytes")
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError as fault:
        raise UserFault(f"{where} holds no certificates that can be read") from fault
    unlike = tuple(dict.fromkeys(found))
    if len(unlike) > MOST:
        raise UserFault(f"{where} holds more than {MOST} certificates")
    return unlike


def write_pem(certificates: Sequence[x509.Certificate]) -> bytes:
    """As PEM, one after the other."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def der(certificate: x509.Certificate) -> bytes:
    """As DER."""
    return certificate.public_bytes(serialization.Encoding.DER)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 over the DER form, hexadecimal."""
    return hashlib.sha256(der(certificate)).hexdigest()


def path(
    chain: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate], now: datetime
) -> Certificates:
    """The way from `chain[0]` to an anchor, both included.

    Further certificates of the chain may stand in any order. A chain that begins with an anchor is
    a way of one step.

    Raises:
        UserFault: there is none; says where it breaks off.
    """
    way = [chain[0]]
    others = list(chain[1 : LONGEST + 1])
    while way[-1] not in anchors:
        above = next((each for each in (*anchors, *others) if _issued(way[-1], each)), None)
        if above is None or len(way) > LONGEST:
            raise UserFault(
                f"the certificate {name(way[-1])!r} is not signed by a trust anchor, nor by"
                " a certificate that comes with it"
            )
        if above in others:
            others.remove(above)
        way.append(above)
    for depth, each in enumerate(way):
        _require_time(each, now)
        if depth:
            _require_authority(each, depth - 1)
    return tuple(way)


def name(certificate: x509.Certificate) -> str:
    """What people call a certificate: its subject, else its first name."""
    text = certificate.subject.rfc4514_string()
    return text or next(iter((*dns_names(certificate), *uris(certificate))), "(without a name)")


def dns_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Its DNS names, in order."""
    found = _sans(certificate)
    return tuple(found.get_values_for_type(x509.DNSName)) if found is not None else ()


def uris(certificate: x509.Certificate) -> tuple[str, ...]:
    """Its URIs, in order."""
    found = _sans(certificate)
    kind = x509.UniformResourceIdentifier
    return tuple(found.get_values_for_type(kind)) if found is not None else ()


def require_authority(certificate: x509.Certificate, below: int = 0) -> None:
    """UserFault unless it may sign certificates, with `below` further CAs between."""
    _require_authority(certificate, below)


def require_p256(key: object, what: str) -> ec.EllipticCurvePublicKey:
    """The key, if it is one that every proxy can verify; UserFault otherwise."""
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise UserFault(f"{what} must be an ECDSA key on the curve P-256")


def _sans(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        kind = x509.SubjectAlternativeName
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _issued(certificate: x509.Certificate, above: x509.Certificate) -> bool:
    if certificate == above:
        return False
    try:
        certificate.verify_directly_issued_by(above)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _require_time(certificate: x509.Certificate, now: datetime) -> None:
    if now >= certificate.not_valid_after_utc:
        when = certificate.not_valid_after_utc
        raise UserFault(f"the certificate {name(certificate)!r} expired on {when:%Y-%m-%d %H:%M}")
    if now < certificate.not_valid_before_utc:
        when = certificate.not_valid_before_utc
        raise UserFault(
            f"the certificate {name(certificate)!r} is not valid before {when:%Y-%m-%d %H:%M}"
        )


def _require_authority(certificate: x509.Certificate, below: int) -> None:
    try:
        extensions = certificate.extensions
        basic = extensions.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, ValueError) as fault:
        raise UserFault(f"the certificate {name(certificate)!r} is no CA's") from fault
    try:
        signs = extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        signs = True
    if not basic.ca or not signs:
        raise UserFault(f"the certificate {name(certificate)!r} is no CA's")
    if basic.path_length is not None and basic.path_length < below:
        raise UserFault(
            f"the CA {name(certificate)!r} allows no further {below} CAs below it (path length)"
        )

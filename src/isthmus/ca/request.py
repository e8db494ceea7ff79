"""Certificate signing requests: made by agents, and taken apart before anything is signed.

A request comes from outside. Nothing of it reaches a certificate but the public key and a common
name that was compared: names are the asker's proven ones, usages are ours. A request that asks for
more than that is refused, not trimmed, so that nobody mistakes what they were given.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.ca.chains import require_p256
from isthmus.errors import BadRequest, UserFault

LARGEST: Final = 16 * 1024
"""Bytes of a request; ours have about 400."""
LONGEST_COMMON_NAME: Final = 64
"""X.520's upper bound; longer names stand in the alternative names alone."""

_USAGES: Final = frozenset({ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH})
_HASHES: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)


class Request(NamedTuple):
    """What a request asks for, its signature checked."""

    key: ec.EllipticCurvePublicKey
    common_name: str
    dns_names: tuple[str, ...]
    uris: tuple[str, ...]


def make_key() -> ec.EllipticCurvePrivateKey:
    """A fresh key as all proxies take them."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """As PKCS#8 PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def make(key: ec.EllipticCurvePrivateKey, identity: str) -> bytes:
    """A request for one identity, a DNS name or a URI; DER."""
    uri = "://" in identity
    san = x509.UniformResourceIdentifier(identity) if uri else x509.DNSName(identity)
    named = not uri and len(identity) <= LONGEST_COMMON_NAME
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, identity)] if named else []
    built = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .add_extension(x509.SubjectAlternativeName([san]), critical=not named)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.DER)


def read(der: bytes) -> Request:
    """What the request asks for.

    Raises:
        BadRequest: these are not the bytes of a request.
        UserFault: it asks for what no workload gets, or its maker does not hold the key.
    """
    if len(der) > LARGEST:
        raise BadRequest(f"the signing request is longer than {LARGEST} bytes")
    try:
        csr = x509.load_der_x509_csr(der)
        extensions = csr.extensions
        key, subject, signed = csr.public_key(), csr.subject, csr.is_signature_valid
        algorithm = csr.signature_hash_algorithm
    except Exception as fault:  # whatever a parser of strangers' bytes may raise
        raise BadRequest("the signing request cannot be read") from fault
    public = require_p256(key, "the key of the signing request")
    if not signed or not isinstance(algorithm, _HASHES):
        raise UserFault("the signing request is not signed with the key that it shows")
    names = _alternative_names(extensions)
    return Request(public, _common_name(subject), *names)


def require_only(request: Request, identity: str) -> None:
    """UserFault unless the request names `identity`, once, and nothing else."""
    uri = "://" in identity
    wanted = ((), (identity,)) if uri else ((identity,), ())
    if (request.dns_names, request.uris) != wanted:
        raise UserFault(f"the signing request must name {identity!r}, and nothing else")
    if request.common_name not in ("", identity):
        raise UserFault("the signing request's common name must be empty, or its identity")


def _common_name(subject: x509.Name) -> str:
    attributes = list(subject)
    if not attributes:
        return ""
    if len(attributes) > 1 or attributes[0].oid != NameOID.COMMON_NAME:
        raise UserFault("the subject of the signing request must be a common name alone")
    value = attributes[0].value
    return value if isinstance(value, str) else value.decode(errors="replace")


def _alternative_names(extensions: x509.Extensions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dns: list[str] = []
    uris: list[str] = []
    for extension in extensions:
        match extension.value:
            case x509.SubjectAlternativeName() as names:
                for each in names:
                    match each:
                        case x509.DNSName(value=name):
                            dns.append(name)
                        case x509.UniformResourceIdentifier(value=name):
                            uris.append(name)
                        case _:
                            raise UserFault(
                                "the signing request names what is no DNS name and no URI"
                            )
            case other:
                _require_modest(other)
    return tuple(dns), tuple(uris)


def _require_modest(value: x509.ExtensionType) -> None:
    """Usages within those that we give; everything else that could mean a right is refused."""
    match value:
        case x509.BasicConstraints(ca=False) | x509.SubjectKeyIdentifier():
            return
        case x509.BasicConstraints():
            raise UserFault("the signing request asks for a CA's certificate")
        case x509.KeyUsage() as usage if not _excessive(usage):
            return
        case x509.ExtendedKeyUsage() as usages if set(usages) <= _USAGES:
            return
        case x509.KeyUsage() | x509.ExtendedKeyUsage():
            raise UserFault("the signing request asks for a key usage that workloads do not get")
        case _:
            raise UserFault(
                f"the signing request asks for an extension that workloads do not get"
                f" ({value.oid.dotted_string})"
            )


def _excessive(usage: x509.KeyUsage) -> bool:
    return (
        usage.key_cert_sign
        or usage.crl_sign
        or usage.content_commitment
        or usage.data_encipherment
        or usage.key_agreement
    )

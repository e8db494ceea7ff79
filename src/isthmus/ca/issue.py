"""Leaves of the mesh: signed by its issuer, for a day, never outliving anything above them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.ca import chains, request
from isthmus.ca.authority import Leaf
from isthmus.ca.chains import Certificates
from isthmus.ca.trust import Trust
from isthmus.errors import Unavailable

LIFETIME: Final = timedelta(hours=24)
SKEW: Final = timedelta(seconds=20)
"""By how much peers' clocks may differ from ours, to either side (Linkerd's chart)."""


class Issued(NamedTuple):
    """A leaf and what a peer needs beside its anchors to verify it, the issuer first."""

    leaf: x509.Certificate
    intermediates: Certificates

    @property
    def pem(self) -> bytes:
        """The chain as it is shown in handshakes."""
        return chains.write_pem((self.leaf, *self.intermediates))

    @property
    def until(self) -> datetime:
        """When it expires."""
        return self.leaf.not_valid_after_utc


def issue(
    trust: Trust,
    key: ec.EllipticCurvePublicKey,
    names: Sequence[str],
    *,
    common_name: str = "",
    now: datetime,
    lifetime: timedelta = LIFETIME,
) -> Issued:
    """A leaf for `key`, with `names` (DNS names and URIs) in this order (decision 23).

    Raises:
        Unavailable: the issuer, or what is above it, has expired.
    """
    until = min(now + lifetime + SKEW, trust.ends)
    if until <= now:
        raise Unavailable(f"the mesh's issuer expired on {trust.ends:%Y-%m-%d %H:%M}")
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    sans = [_general_name(each) for each in names]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(trust.issuer.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(now - SKEW, trust.issuer.not_valid_before_utc))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_KEY_USAGE, critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_authority_key(trust), critical=False)
        # RFC 5280 section 4.2.1.6: critical where the subject says nothing.
        .add_extension(x509.SubjectAlternativeName(sans), critical=not subject)
    )
    return Issued(builder.sign(trust.key, hashes.SHA256()), trust.intermediates)


def server_leaf(trust: Trust, names: Sequence[str], *, now: datetime) -> Leaf:
    """A leaf with a fresh key, for a listener of the control plane itself."""
    key = request.make_key()
    made = issue(trust, key.public_key(), names, now=now)
    return Leaf(made.pem, request.key_pem(key), made.until)


def _authority_key(trust: Trust) -> x509.AuthorityKeyIdentifier:
    """The issuer's own identifier where it has one, so that peers that compare them agree."""
    try:
        kind = x509.SubjectKeyIdentifier
        own = trust.issuer.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(trust.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _general_name(name: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(name) if "://" in name else x509.DNSName(name)


_KEY_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=True,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)

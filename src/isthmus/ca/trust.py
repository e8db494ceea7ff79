"""What one mesh trusts, and what signs its certificates.

*Anchors* are the roots that every proxy verifies against; there may be several, for as long as one
is replaced by another. The *issuer* is a CA below one of them (or the anchor itself), whose key the
control plane holds. Names and keys of the Secret and the ConfigMap are Linkerd's, so that what is
written for it serves here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.ca import authority, chains
from isthmus.ca.chains import Certificates
from isthmus.errors import UserFault

ISSUER_SECRET: Final = "linkerd-identity-issuer"  # noqa: S105  # the name of an object
ROOTS_CONFIG_MAP: Final = "linkerd-identity-trust-roots"
BUNDLE: Final = "ca-bundle.crt"
PAIRS: Final = (("crt.pem", "key.pem"), ("tls.crt", "tls.key"))
"""The keys of the Secret, by its scheme: linkerd.io/tls, kubernetes.io/tls."""
BESIDE: Final = "ca.crt"
"""Where other tools put the anchor beside a pair."""

LIFETIME: Final = timedelta(days=3650)
"""Of a CA that is made here."""


class Material(NamedTuple):
    """PEM texts, as they are kept. `issuer` may hold intermediates after the issuer."""

    anchors: bytes
    issuer: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key: values find their ways into logs."""
        return "Material(...)"


class Trust:
    """Material that was read and found good. Two of the same material are equal."""

    def __init__(self, material: Material, anchors: Certificates, way: Certificates) -> None:
        """`way` leads from the issuer to an anchor; see `read`."""
        self._material = material
        self.anchors = anchors
        self.way = way
        self.key = _read_key(material.key, "the issuer's key")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trust) and self._material == other._material

    def __hash__(self) -> int:
        return hash(self._material)

    @property
    def material(self) -> Material:
        """The PEM texts it was read from."""
        return self._material

    @property
    def issuer(self) -> x509.Certificate:
        """The certificate that signs."""
        return self.way[0]

    @property
    def intermediates(self) -> Certificates:
        """What a peer needs between a leaf and its anchors, the issuer first; no anchor."""
        return tuple(each for each in self.way if each not in self.anchors)

    @property
    def bundle(self) -> bytes:
        """The anchors as PEM: what peers verify against."""
        return chains.write_pem(self.anchors)

    @property
    def ends(self) -> datetime:
        """When the first certificate between the issuer and its anchor expires."""
        return min(each.not_valid_after_utc for each in self.way)


def read(material: Material, *, now: datetime, where: str) -> Trust:
    """What the PEM texts say.

    Raises:
        UserFault: something cannot be used; names `where`, and what is wrong.
    """
    anchors = chains.read_pem(material.anchors, f"the trust anchors of {where}")
    chain = chains.read_pem(material.issuer, f"the issuer's certificate of {where}")
    key = _read_key(material.key, f"the issuer's key of {where}")
    if chain[0].public_key() != key.public_key():
        raise UserFault(f"{where}: the issuer's certificate and key do not belong together")
    try:
        chains.require_authority(chain[0])
        return Trust(material, anchors, chains.path(chain, anchors, now))
    except UserFault as fault:
        raise UserFault(f"{where}: {fault.message}") from fault


def make(name: str, *, now: datetime) -> Trust:
    """A new CA: anchor and issuer in one."""
    made = authority.make(name, now=now, lifetime=LIFETIME)
    material = Material(made.bundle, made.bundle, made.key_pem)
    return read(material, now=now, where="the CA just made")


# ----------------------------------------------------------------------- the objects it is kept in


def from_objects(secret: Mapping[str, bytes], roots: str) -> Material | None:
    """The material in a Secret's decoded data and the ConfigMap's bundle.

    None if the Secret holds no pair; anchors that the ConfigMap lacks may stand beside the pair.
    """
    for certificate, key in PAIRS:
        if certificate in secret and key in secret:
            anchors = roots.encode() or secret.get(BESIDE, b"")
            return Material(anchors, secret[certificate], secret[key])
    return None


def secret_data(trust: Trust) -> dict[str, bytes]:
    """What the Secret of a CA made here holds."""
    certificate, key = PAIRS[0]
    material = trust.material
    return {certificate: material.issuer, key: material.key, BESIDE: material.anchors}


def _read_key(pem: bytes, where: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as fault:
        raise UserFault(f"{where} cannot be read (it must be PEM, and not encrypted)") from fault
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UserFault(f"{where} must be an ECDSA key on the curve P-256")
    chains.require_p256(key.public_key(), where)
    return key

"""The files of keys that a sidecar reads, for Envoys that only look at their configuration."""

from __future__ import annotations

from pathlib import Path

from tests.support.tls import self_signed

SECRET = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
HEAD = 'resources:\n- "@type": ' + SECRET + "\n"


def identity(folder: Path) -> None:
    """Write `identity/` into a sidecar's directory: a key and certificate, trusted as they are."""
    own = folder / "identity"
    own.mkdir()
    self_signed(own, "me.shop.serviceaccount.identity.isthmus.trust.mesh.test")
    certificate = "certificate_chain: {filename: identity/cert.pem}"
    key = "private_key: {filename: identity/key.pem}"
    secret = f"  name: default\n  tls_certificate: {{{certificate}, {key}}}\n"
    (own / "default.yaml").write_text(HEAD + secret)
    trust = "  name: ROOTCA\n  validation_context: {trusted_ca: {filename: identity/cert.pem}}\n"
    (own / "ROOTCA.yaml").write_text(HEAD + trust)

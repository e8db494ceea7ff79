"""How others find out who issued our ServiceAccount tokens, and verify them without asking us.

OpenID Connect Discovery 1.0 and RFC 7517, as far as Kubernetes serves them ("Service account issuer
discovery"): public keys and nothing else.
"""

from __future__ import annotations

import msgspec

from isthmus.ca.tokens import Keyring
from isthmus.serve.kube.answer import Answer

CONFIGURATION = (".well-known", "openid-configuration")
KEYS = ("openid", "v1", "jwks")
KEYS_MEDIA = "application/jwk-set+json"


class OpenId:
    """Answers both paths."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def answer(self, parts: tuple[str, ...]) -> Answer | None:
        """The document at a path; None at other paths."""
        if parts == CONFIGURATION:
            return Answer(msgspec.json.encode(self._configuration()))
        if parts == KEYS:
            return Answer(msgspec.json.encode(self._keyring.jwks()), content_type=KEYS_MEDIA)
        return None

    def _configuration(self) -> dict[str, object]:
        issuer = self._keyring.issuer
        return {
            "issuer": issuer,
            "jwks_uri": f"{issuer}/{'/'.join(KEYS)}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

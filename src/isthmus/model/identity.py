"""Identities as policies write them: SPIFFE ids, mesh names, `*` and `*.suffix`.

This is the grammar alone; what an identity matches is said in `isthmus.ir.identity`.
"""

from __future__ import annotations

import re
from typing import Final

from isthmus.model.names import Problems

MESH_NAME: Final = r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""The pattern of mesh names as the custom resources publish it."""

_SCHEME: Final = "spiffe://"
_DOMAIN_RE: Final = re.compile(r"[-a-z0-9._]+")
_SEGMENT_RE: Final = re.compile(r"[-A-Za-z0-9._]+")
_LABEL_RE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

MAX_SPIFFE: Final = 2048
"""Bytes of a SPIFFE id (SPIFFE-ID, section 2.3)."""

MAX_NAME: Final = 253
"""Bytes of a DNS name."""

_PATH: Final = (
    "the path of a SPIFFE id must have segments of letters, digits and '-._', none of them empty,"
    " '.' or '..', and no slash at the end"
)
_NEITHER: Final = (
    f"an identity must be a SPIFFE id, a name of lower case DNS labels of at most {MAX_NAME} bytes,"
    f" '*', or '*.' and such a name (regex used for validation is '{MESH_NAME}')"
)


def identity_problems(text: str) -> Problems:
    """What is wrong with an identity that a policy names; empty if nothing."""
    return _spiffe(text) if text.startswith(_SCHEME) else _mesh_name(text)


def _spiffe(text: str) -> Problems:
    domain, *segments = text.removeprefix(_SCHEME).split("/")
    if len(text) > MAX_SPIFFE:
        return (f"a SPIFFE id must be no more than {MAX_SPIFFE} bytes",)
    if not _DOMAIN_RE.fullmatch(domain):
        return (
            "the trust domain of a SPIFFE id must be made of lower case letters, digits and '-._'",
        )
    for segment in segments:
        if segment in (".", "..") or not _SEGMENT_RE.fullmatch(segment):
            return (_PATH,)
    return ()


def _mesh_name(text: str) -> Problems:
    first, *rest = text.split(".")
    fine = (first == "*" or _LABEL_RE.fullmatch(first)) and all(map(_LABEL_RE.fullmatch, rest))
    if fine and len(text) <= MAX_NAME:
        return ()
    return (_NEITHER,)

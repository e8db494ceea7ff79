"""Names and hashes that controllers give: no chance in them, so a plan made twice is one plan."""

from __future__ import annotations

import hashlib

from isthmus.controllers.steps import JSON, canonical

SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for made-up names: no vowels, so no words; no 0, 1, 3, so no mix-ups."""

MAX_NAME = 253
"""The longest name of most objects (RFC 1123 subdomain)."""

MAX_LABEL = 63
"""The longest label value, and the longest DNS label."""


def suffix(*parts: str, length: int = 5) -> str:
    """A word of `length` letters that depends on every part and on where each ends."""
    digest = hashlib.sha256(canonical(parts)).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(SAFE))
        letters.append(SAFE[index])
    return "".join(letters)


def template_hash(template: JSON, collisions: int = 0) -> str:
    """The value of `pod-template-hash` (or of a revision) for a pod template, ten letters.

    `collisions` is the owner's status.collisionCount: it moves the hash on when a name is taken.
    """
    return suffix(canonical(template).decode(), str(collisions or ""), length=10)


def child(base: str, *parts: str, length: int = 5, limit: int = MAX_NAME) -> str:
    """`<base>-<suffix>`, the base cut where the name would be longer than `limit`."""
    return f"{base[: limit - length - 1]}-{suffix(*parts, length=length)}"

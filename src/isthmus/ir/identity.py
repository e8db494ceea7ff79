"""Identities: reading them, and whether one satisfies a policy.

Names are compared as parsed labels and segments, byte by byte. No prefix of text, no regular
expression, no folding of case, no trailing dot: what only looks alike is somebody else.
"""

from __future__ import annotations

import re
from typing import Final, assert_never

from isthmus.ir.names import (
    AnyIdentity,
    Dns,
    Identity,
    IdentityMatch,
    IdentitySuffix,
    Spiffe,
)

_SCHEME: Final = "spiffe://"
_DOMAIN: Final = re.compile(r"[-a-z0-9._]+")
_SEGMENT: Final = re.compile(r"[-A-Za-z0-9._]+")
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_LONGEST_NAME: Final = 253
_LONGEST_SPIFFE: Final = 2048


def parse_identity(text: str) -> Identity | None:
    """What a certificate proves: a SPIFFE id or a DNS name; None for anything else."""
    if text.startswith(_SCHEME):
        return _spiffe(text)
    fits = len(text) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, text.split(".")))
    return Dns(text) if fits else None


def parse_identity_match(text: str) -> IdentityMatch | None:
    """What a policy names: an identity, `*` for all, `*.suffix`; None for anything else."""
    if text == "*":
        return AnyIdentity()
    if not text.startswith("*."):
        return parse_identity(text)
    suffix = parse_identity(text[2:]) if len(text) <= _LONGEST_NAME else None
    return IdentitySuffix(tuple(suffix.name.split("."))) if isinstance(suffix, Dns) else None


def _spiffe(text: str) -> Spiffe | None:
    domain, *path = text.removeprefix(_SCHEME).split("/")
    if len(text) > _LONGEST_SPIFFE or not _DOMAIN.fullmatch(domain):
        return None
    if any(each in (".", "..") or not _SEGMENT.fullmatch(each) for each in path):
        return None
    return Spiffe(domain, tuple(path))


def account(name: str, namespace: str, *, control_plane: str, trust_domain: str) -> Dns:
    """The mesh name of a ServiceAccount, as Linkerd makes it."""
    return Dns(f"{name}.{namespace}.serviceaccount.identity.{control_plane}.{trust_domain}")


def accounts(namespace: str, *, control_plane: str, trust_domain: str) -> IdentitySuffix:
    """The mesh names of all ServiceAccounts of a namespace."""
    suffix = f"{namespace}.serviceaccount.identity.{control_plane}.{trust_domain}"
    return IdentitySuffix(tuple(suffix.split(".")))


def satisfies(identity: Identity, match: IdentityMatch) -> bool:
    """Whether the identity is one that the policy names."""
    match match:
        case AnyIdentity():
            return True
        case Spiffe() | Dns():
            return identity == match
        case IdentitySuffix(labels=labels):
            return isinstance(identity, Dns) and _under(identity.name, labels)
        case _:
            assert_never(match)


def _under(name: str, suffix: tuple[str, ...]) -> bool:
    labels = tuple(name.split("."))
    if len(labels) <= len(suffix) or not all(map(_LABEL.fullmatch, labels)):
        return False
    return labels[len(labels) - len(suffix) :] == suffix

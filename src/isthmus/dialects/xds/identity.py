"""Identities as certificates and access rules write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from isthmus.ir.names import Dns, Identity, Spiffe


def text(identity: Identity) -> str:
    """A DNS name or a SPIFFE URI."""
    match identity:
        case Dns(name=name):
            return name
        case Spiffe():
            return identity.uri
        case _:
            assert_never(identity)


def in_order(peers: Iterable[Identity]) -> list[Identity]:
    """DNS names first, each kind sorted: equal sets have equal bytes."""
    return sorted(peers, key=lambda peer: (isinstance(peer, Spiffe), text(peer)))

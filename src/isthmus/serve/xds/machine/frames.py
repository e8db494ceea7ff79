"""Responses as bytes. Protobuf messages concatenate, so shared parts are copied, never encoded.

Numbers of fields: envoy/service/discovery/v3/discovery.proto.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from isthmus.serve.xds.machine.types import ENDPOINTS
from isthmus.serve.xds.machine.values import Framed

NOTHING: Final = "absent"
"""The version of an assignment that stands for none."""


def varint(value: int) -> bytes:
    """A length as protobuf writes it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field of type string, bytes or message. Numbers up to 15."""
    return bytes((number << 3 | 2,)) + varint(len(content)) + content


@lru_cache(maxsize=64)
def _type_field(type_url: str) -> bytes:
    return field(4, type_url.encode())


def delta(type_url: str, nonce: str, chunks: Iterable[bytes], removed: Iterable[str]) -> bytes:
    """A DeltaDiscoveryResponse."""
    gone = [field(6, name.encode()) for name in removed]
    return b"".join((*chunks, _type_field(type_url), field(5, nonce.encode()), *gone))


def whole(type_url: str, nonce: str, chunks: Iterable[bytes]) -> bytes:
    """A DiscoveryResponse. Its version is its nonce: nobody compares it."""
    mark = nonce.encode()
    return b"".join((field(1, mark), *chunks, _type_field(type_url), field(5, mark)))


def framed(
    name: str,
    version: str,
    type_url: str,
    message: bytes,
    *,
    clusters: tuple[str, ...] | None = (),
    origin: object = None,
) -> Framed:
    """Frame a serialised message of `type_url` for both protocols."""
    packed = field(1, type_url.encode()) + field(2, message)
    entry = field(1, version.encode()) + field(2, packed) + field(3, name.encode())
    return Framed(name, version, field(2, entry), field(2, packed), clusters, origin)


@lru_cache(maxsize=4096)
def no_endpoints(name: str) -> Framed:
    """An assignment without endpoints, for a cluster that has none to tell."""
    return framed(name, NOTHING, ENDPOINTS, field(1, name.encode()))

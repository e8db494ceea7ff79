"""xDS resources as bytes: made once, and sent by every stream as they are.

A resource is what `serve.xds` asks of dialects. Its bytes are those of the repeated field that both
kinds of responses carry at number 2, so that a response is a concatenation.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

PREFIX: Final = "type.googleapis.com/"

CLUSTER: Final = f"{PREFIX}envoy.config.cluster.v3.Cluster"
ENDPOINTS: Final = f"{PREFIX}envoy.config.endpoint.v3.ClusterLoadAssignment"
LISTENER: Final = f"{PREFIX}envoy.config.listener.v3.Listener"
ROUTES: Final = f"{PREFIX}envoy.config.route.v3.RouteConfiguration"


class Resource(msgspec.Struct, frozen=True):
    """One resource, encoded.

    `version` is a hash of the content. `chunk` is field 2 of a DeltaDiscoveryResponse, whose end,
    from `at` on, is field 2 of a DiscoveryResponse. `clusters` are those that it sends to, None
    where they are not known; `origin` is the object to blame if a proxy rejects it, `parts` are the
    objects that parts of it come from, each with a hash of its part.
    """

    name: str
    version: str
    chunk: bytes
    at: int
    clusters: tuple[str, ...] | None = ()
    origin: object = None
    parts: tuple[tuple[object, str], ...] = ()

    @property
    def any_chunk(self) -> bytes:
        """Field 2 of a DiscoveryResponse: the Any alone."""
        return self.chunk[self.at :]

    @property
    def value(self) -> bytes:
        """The encoded message itself."""
        return Any.FromString(unframed(self.any_chunk)).value


def resource(
    message: Message,
    name: str,
    *,
    clusters: Iterable[str] | None = (),
    origin: object = None,
) -> Resource:
    """A message as a resource of its own type."""
    type_url = PREFIX + message.DESCRIPTOR.full_name
    value = message.SerializeToString(deterministic=True)
    return encoded(type_url, name, value, clusters=clusters, origin=origin)


def encoded(
    type_url: str,
    name: str,
    value: bytes,
    *,
    clusters: Iterable[str] | None = (),
    origin: object = None,
    parts: Iterable[tuple[object, str]] = (),
) -> Resource:
    """An encoded message as a resource."""
    version = mark(value)
    body = field(1, type_url.encode()) + field(2, value)
    # Resource{3 name, 1 version, 2 resource}: the Any last, so that it can be cut off.
    head = field(3, name.encode()) + field(1, version.encode())
    tail = field(2, body)
    chunk = field(2, head + tail)
    needed = None if clusters is None else tuple(sorted(set(clusters)))
    return Resource(name, version, chunk, len(chunk) - len(tail), needed, origin, tuple(parts))


def mark(value: bytes) -> str:
    """A hash of content: equal content, equal mark."""
    return blake2b(value, digest_size=8).hexdigest()


def packed(message: Message) -> Any:
    """A message inside an Any; equal messages have equal bytes."""
    value = message.SerializeToString(deterministic=True)
    return Any(type_url=PREFIX + message.DESCRIPTOR.full_name, value=value)


def duration(milliseconds: int) -> Duration:
    """A protobuf Duration."""
    seconds, rest = divmod(milliseconds, 1000)
    return Duration(seconds=seconds, nanos=rest * 1_000_000)


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field: the tag, the length, the bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def number_field(number: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unframed(chunk: bytes) -> bytes:
    """The payload of one length-delimited field with a one-byte tag."""
    size = shift = 0
    for at in range(1, len(chunk)):
        size |= (chunk[at] & 0x7F) << shift
        shift += 7
        if chunk[at] < 0x80:
            return chunk[at + 1 : at + 1 + size]
    raise ValueError("the field is cut off")

"""What goes into a stream and what comes out: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class DeltaRequest(NamedTuple):
    """One DeltaDiscoveryRequest. `error` is None for everything that is not a NACK."""

    type_url: str
    nonce: str = ""
    error: str | None = None
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()
    initial: Mapping[str, str] = {}
    """Name to version of what the proxy has, on the first request of a type on a new stream."""


class SotwRequest(NamedTuple):
    """One DiscoveryRequest. Its `version_info` says nothing that the nonce does not."""

    type_url: str
    nonce: str = ""
    error: str | None = None
    names: tuple[str, ...] = ()


class Framed(NamedTuple):
    """A resource as the contract wants it, from a serialised Any."""

    name: str
    version: str
    chunk: bytes
    any_chunk: bytes
    clusters: tuple[str, ...] | None = ()
    origin: object = None
    parts: tuple[tuple[object, str], ...] = ()


UNKNOWN: Final = Framed("", "", b"", b"")
"""Stands for a resource that could not be made, through a fault of ours."""


class Response(NamedTuple):
    """One response, to be written before the next is asked for."""

    type_url: str
    nonce: str
    body: bytes
    sent: tuple[str, ...]
    """Names of the resources that are new to the proxy in it, for logs and tests."""
    removed: tuple[str, ...] = ()


class Rejected(NamedTuple):
    """A resource the proxy rejected when it was sent alone."""

    name: str
    version: str
    message: str
    at: float
    origin: object


class Error(NamedTuple):
    """The last NACK of a type, whoever was guilty."""

    message: str
    at: float


class TypeStatus(NamedTuple):
    """What one stream has been told of one type. Times are those given to the stream."""

    type_url: str
    wildcard: bool
    subscribed: int
    """Names asked for one by one."""
    sent: int
    """Resources the proxy has or may have."""
    acked: int
    """Those of them that it accepted."""
    waiting: int
    """Names still to be looked at or held back: for clusters, for the answer to what was sent."""
    in_flight_since: float | None
    acked_at: float | None
    error: Error | None
    rejected: tuple[Rejected, ...]

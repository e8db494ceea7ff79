"""Resource records as bytes.

The owner of the first records is always the question's name, at its fixed place in the message:
so a record is the same bytes whoever asks, in whatever mix of large and small letters.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

import dns.name
from dns import rdata
from dns.rdataclass import IN
from dns.rdatatype import AAAA, CNAME, NS, PTR, SOA, SRV, TXT, A

ASKED: Final = b"\xc0\x0c"
"""The question's name, as an owner: a pointer to where it stands."""

TTL: Final = 5
"""Seconds that an answer may be kept. Endpoints come and go."""

_FIXED: Final = struct.Struct(">HHIH")
_SRV: Final = struct.Struct(">HHH")
_WEIGHT: Final = 100


def record(owner: bytes, rdtype: int, data: bytes) -> bytes:
    """One record."""
    return owner + _FIXED.pack(rdtype, IN, TTL, len(data)) + data


@lru_cache(1024)
def name(text: str) -> bytes:
    """A whole name. It must be one: at most 63 bytes a label, 253 in all."""
    return dns.name.from_text(text).to_wire() or b""


def address(owner: bytes, ip: str) -> bytes:
    """A or AAAA."""
    packed = ip_address(ip).packed
    return record(owner, A if len(packed) == 4 else AAAA, packed)


def alias(owner: bytes, target: str) -> bytes:
    """CNAME."""
    return record(owner, CNAME, name(target))


def pointer(owner: bytes, target: str) -> bytes:
    """PTR."""
    return record(owner, PTR, name(target))


def server(owner: bytes, port: int, target: str) -> bytes:
    """SRV: all are alike, in priority and in weight."""
    return record(owner, SRV, _SRV.pack(0, _WEIGHT, port) + name(target))


def text(owner: bytes, said: str) -> bytes:
    """TXT, of one string of at most 255 bytes."""
    return record(owner, TXT, bytes([len(said)]) + said.encode())


def name_server(owner: bytes, zone: str) -> bytes:
    """NS: we have no name that leads to us, but a zone has a server."""
    return record(owner, NS, name(f"ns.dns.{zone}"))


@lru_cache(64)
def authority(owner: bytes, zone: str) -> bytes:
    """SOA; its last field is how long clients may remember that something is not there."""
    said = f"ns.dns.{zone}. hostmaster.{zone}. 1 7200 1800 86400 {TTL}"
    return record(owner, SOA, rdata.from_text(IN, SOA, said).to_wire() or b"")

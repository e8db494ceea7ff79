"""Protobuf by the field: joining parts that are encoded already, and values all messages share."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final

from isthmus.proto.linkerd import net_pb2


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field: the tag, the length, the bytes."""
    return b"%b%b%b" % (varint(number << 3 | 2), varint(len(payload)), payload)


def varint(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT: Final = [bytes((value,)) for value in range(0x80)]


@lru_cache(maxsize=4096)
def tcp_address(ip: str, port: int) -> net_pb2.TcpAddress:
    """An address on the wire: IPv4 as one number, IPv6 as two. Shared: not to be changed."""
    address = ip_address(ip)
    if isinstance(address, IPv4Address):
        wire = net_pb2.IPAddress(ipv4=int(address))
    else:
        high, low = divmod(int(address), 1 << 64)
        wire = net_pb2.IPAddress(ipv6=net_pb2.IPv6(first=high, last=low))
    return net_pb2.TcpAddress(ip=wire, port=port)


@lru_cache(maxsize=4096)
def tcp_bytes(ip: str, port: int) -> bytes:
    """`tcp_address`, encoded."""
    return tcp_address(ip, port).SerializeToString(deterministic=True)

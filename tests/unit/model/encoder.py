"""A writer of the protobuf wire format for tests, sharing nothing with the reader."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def num(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def lend(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def body(api_version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    meta = lend(1, api_version) + lend(2, kind)
    return b"k8s\0" + lend(1, meta) + lend(2, raw) + b"".join(more)

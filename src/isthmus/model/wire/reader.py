"""Reading the protobuf wire format: tags, varints, lengths. Every fault is a BadRequest."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from isthmus.errors import BadRequest

_MAX_VARINT: Final = 10


class WireType(IntEnum):
    """How a field's value is laid out. Groups (3 and 4) died with proto2; nobody may send them."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


class Cursor:
    """A window `[at, end)` of a body, read forwards."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def __bool__(self) -> bool:
        return self.at < self.end

    def varint(self) -> int:
        """An unsigned 64-bit varint."""
        value = shift = 0
        start = self.at
        while self.at < self.end:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF
            shift += 7
            if self.at - start >= _MAX_VARINT:
                raise BadRequest(f"byte {start}: a varint of more than {_MAX_VARINT} bytes")
        raise BadRequest(f"byte {start}: the body ends inside a varint")

    def tag(self) -> tuple[int, WireType]:
        """The next field's number and wire type."""
        start = self.at
        tag = self.varint()
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or number >= 1 << 29:
            raise BadRequest(f"byte {start}: {number} is not a field number")
        try:
            return number, WireType(wire_type)
        except ValueError:
            raise BadRequest(f"byte {start}: wire type {wire_type} is not supported") from None

    def window(self) -> Cursor:
        """The window of a length-delimited value; this cursor moves behind it."""
        start = self.at
        length = self.varint()
        if length > self.end - self.at:
            left = self.end - self.at
            raise BadRequest(f"byte {start}: {length} bytes are announced, {left} are left")
        inner = Cursor(self.data, self.at, self.at + length)
        self.at += length
        return inner

    def bytes(self) -> bytes:
        """A length-delimited value."""
        inner = self.window()
        return self.data[inner.at : inner.end]

    def double(self) -> float:
        """A 64-bit floating-point number."""
        self._need(8)
        (value,) = struct.unpack_from("<d", self.data, self.at)
        self.at += 8
        return float(value)

    def skip(self, wire_type: WireType) -> None:
        """Move behind a value that nobody asked for."""
        match wire_type:
            case WireType.VARINT:
                self.varint()
            case WireType.BYTES:
                self.window()
            case WireType.FIXED64 | WireType.FIXED32:
                size = 8 if wire_type is WireType.FIXED64 else 4
                self._need(size)
                self.at += size

    def _need(self, size: int) -> None:
        if self.end - self.at < size:
            raise BadRequest(f"byte {self.at}: the body ends inside a value of {size} bytes")


def signed(value: int, bits: int) -> int:
    """The two's complement reading of the low `bits` of a varint."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value

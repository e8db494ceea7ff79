from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.dialects.linkerd.wire import field, tcp_address, varint
from isthmus.proto.linkerd import destination_pb2 as pb


@pytest.mark.parametrize(
    ("value", "wire"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32, "8080808010")]
)
def test_numbers(value: int, wire: str) -> None:
    assert varint(value).hex() == wire


@given(st.lists(st.binary(max_size=400), max_size=4))
def test_fields_that_are_joined_are_a_message(parts: list[bytes]) -> None:
    entries = [pb.WeightedAddr(metric_labels={"x": part.hex()}) for part in parts]
    joined = b"".join(field(1, entry.SerializeToString()) for entry in entries)
    assert joined == pb.WeightedAddrSet(addrs=entries).SerializeToString()


def test_addresses() -> None:
    assert tcp_address("10.42.0.53", 8080).SerializeToString().hex() == "0a050d35002a0a10903f"
    six = "0a1412120900000000b80d012011940000000000000010903f"
    assert tcp_address("2001:db8::94", 8080).SerializeToString().hex() == six
    assert tcp_address("0.0.0.0", 0).SerializeToString().hex() == "0a050d00000000"

from __future__ import annotations

import pytest

from isthmus.serve.kube.blob import blob, json_blob


def test_equal_bytes_have_equal_etags() -> None:
    one, other = json_blob({"a": 1}), json_blob({"a": 2})
    assert one == blob(b'{"a":1}')
    assert one.etag != other.etag
    assert one.etag == f'"{one.digest}"'


@pytest.mark.parametrize(
    ("header", "unchanged"),
    [
        (None, False),
        ("", False),
        ('"other"', False),
        ("ETAG", True),
        ("W/ETAG", True),
        ('"other", ETAG', True),
        ("*", True),
    ],
)
def test_who_holds_the_bytes_need_not_get_them(header: str | None, *, unchanged: bool) -> None:
    one = blob(b"x")
    assert one.unchanged(header and header.replace("ETAG", one.etag)) is unchanged

"""Which conditions the dashboard shows."""

from __future__ import annotations

import json

import pytest

from isthmus.app.dashboard import not_well


def stored(*conditions: tuple[str, str], parents: tuple[tuple[str, str], ...] = ()) -> bytes:
    def made(pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
        return [{"type": kind, "status": status} for kind, status in pairs]

    status = {"conditions": made(conditions), "parents": [{"conditions": made(parents)}]}
    return json.dumps({"kind": "Any", "status": status}).encode()


@pytest.mark.parametrize(
    ("document", "types"),
    [
        (stored(("Accepted", "True"), ("isthmus.dev/ProxyRejected", "False")), []),
        (stored(("Accepted", "False"), ("Ready", "False")), ["Accepted"]),
        (stored(("isthmus.dev/ProxyRejected", "True")), ["isthmus.dev/ProxyRejected"]),
        (stored(parents=(("ResolvedRefs", "False"),)), ["ResolvedRefs"]),
        (b'{"status": {"conditions": "none"}}', []),
        (b'{"status": null}', []),
        (b"{}", []),
        (b"junk", []),
    ],
)
def test_what_is_not_well(document: bytes, types: list[str]) -> None:
    assert [each.type for each in not_well(document)] == types

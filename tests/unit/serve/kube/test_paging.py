from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from isthmus.errors import BadRequest
from isthmus.model.key import Key
from isthmus.serve.kube import paging
from isthmus.serve.kube.paging import read_continue, write_continue
from isthmus.serve.kube.status import refusal
from tests.unit.serve.kube.kinds import THING, WIDGET

LAST = Key(WIDGET.resource, "ns", "name-é")
TOKEN = write_continue(12, LAST, "", b"secret")


def test_a_token_brings_back_revision_and_key() -> None:
    assert read_continue(TOKEN, WIDGET, "", b"secret") == (12, LAST)
    assert TOKEN.isascii()
    assert "=" not in TOKEN


def test_a_token_of_another_list_is_refused() -> None:
    with pytest.raises(BadRequest, match="of another list"):
        read_continue(TOKEN, THING, "", b"secret")
    with pytest.raises(BadRequest, match="of another list"):
        read_continue(TOKEN, WIDGET, "ns", b"secret")


def test_a_token_made_under_another_secret_is_refused() -> None:
    with pytest.raises(BadRequest, match="not one of this server's"):
        read_continue(TOKEN, WIDGET, "", b"other")


def test_every_changed_byte_is_noticed() -> None:
    data = bytearray(urlsafe_b64decode(TOKEN + "=" * (-len(TOKEN) % 4)))
    for at in range(len(data)):
        changed = bytes(data[:at]) + bytes([data[at] ^ 1]) + bytes(data[at + 1 :])
        token = urlsafe_b64encode(changed).decode()
        with pytest.raises(BadRequest):
            read_continue(token, WIDGET, "", b"secret")


@pytest.mark.parametrize(
    "token", ["x", "!!!!", "", "é", "a" * 5000, "AAAA", "====", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"]
)
def test_garbage_is_refused(token: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        read_continue(token, WIDGET, "", b"secret")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'[1,"x","","","",""]', b"[9" + b"]" * 9])
def test_a_signed_token_of_another_shape_is_refused(raw: bytes) -> None:
    token = urlsafe_b64encode(paging._digest(raw, b"") + raw).decode()  # noqa: SLF001
    with pytest.raises(BadRequest, match="cannot be read"):
        read_continue(token, WIDGET, "")


def test_a_list_whose_revision_is_forgotten_begins_again() -> None:
    told = refusal(paging.list_expired(continued=True), "")
    assert (told.code, told.status["reason"]) == (410, "Expired")
    assert "without the continue parameter" in told.status["message"]
    plain = paging.list_expired(continued=False)
    assert plain.message == "The resourceVersion for the provided list is too old."

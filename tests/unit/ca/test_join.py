from __future__ import annotations

import base64

import msgspec
import pytest

from isthmus.ca import Invitation, join
from isthmus.errors import BadRequest

URI = "spiffe://cluster.local/isthmus/host/vm-1"


def invitation() -> Invitation:
    return Invitation.make(URI, "10.0.0.1:8080", "control-plane.x", ("ab" * 32,))


def test_a_token_is_read_back() -> None:
    made = invitation()
    assert join.read(made.token) == made
    assert join.fits(made.secret, made.hash)


def test_another_secret_does_not_fit() -> None:
    assert not join.fits(invitation().secret, invitation().hash)


def test_what_is_kept_and_what_is_logged_hold_no_secret() -> None:
    made = invitation()
    assert made.secret not in made.hash + made.object_name + repr(made) + f"{made}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "isthmus-join.",
        "isthmus-join.!!!",
        "isthmus-join." + "A" * 5000,
        "isthmus-join.bnVsbA",
        "isthmus-join.\u00e9",
        "eyJhbGciOiJFUzI1NiJ9.e30.x",
        join.PREFIX + base64.urlsafe_b64encode(b"[" * 2000).decode(),
        join.PREFIX + base64.urlsafe_b64encode(b'{"id":1}').decode(),
    ],
)
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(BadRequest):
        join.read(text)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "x" * 65, "\u0660"])
def test_an_id_cannot_lead_elsewhere(name: str) -> None:
    """The id becomes the name of the object that is looked up."""
    crafted = msgspec.structs.replace(invitation(), id=name)
    with pytest.raises(BadRequest):
        join.read(crafted.token)

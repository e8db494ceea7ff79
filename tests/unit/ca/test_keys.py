"""Keys of tokens are replaced by files while the server runs; a bad file changes nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from isthmus import ca
from isthmus.aio import ManualClock
from isthmus.ca.keys import ALL_KEYS, PERIOD, ROTATE, SIGNING_KEY
from isthmus.errors import Unauthenticated
from tests.support.log import ListLog

ISSUER = "https://isthmus"
ACCOUNT = ca.Bound("serviceaccounts", "a", "bot", "u")


class World:
    """A keyring, its files, and what keeps them equal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = ManualClock()
        self.log = ListLog()
        self.ring = ca.load_keyring(home, ISSUER)
        self.rotation = ca.Rotation(home, self.ring, self.clock, self.log)

    def sign(self) -> str:
        return self.ring.sign(ACCOUNT, now=self.clock.utc(), lifetime=timedelta(hours=1))

    def verify(self, token: str) -> ca.Claims:
        return self.ring.verify(token, now=self.clock.utc())

    def files(self) -> list[str]:
        return sorted(path.name for path in self.home.glob(ALL_KEYS))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_a_file_called_rotate_makes_a_new_key_and_keeps_the_old(world: World) -> None:
    old = world.sign()
    (world.home / ROTATE).touch()
    world.rotation.look()
    assert not (world.home / ROTATE).exists()
    new = world.sign()
    assert new.split(".")[0] != old.split(".")[0]
    assert world.verify(old).name == world.verify(new).name == "bot"
    assert len(world.files()) == len(world.ring.ids) == 2
    for name in world.files():
        assert (world.home / name).stat().st_mode & 0o777 == 0o600
    # Another server that starts now signs and verifies the same.
    again = ca.load_keyring(world.home, ISSUER)
    assert again.ids[0] == world.ring.ids[0]
    assert again.verify(old, now=world.clock.utc())


def test_two_rotations_in_one_second_lose_nothing(world: World) -> None:
    tokens = [world.sign()]
    for _ in range(3):
        (world.home / ROTATE).touch()
        world.rotation.look()
        tokens.append(world.sign())
    assert len({token.split(".")[0] for token in tokens}) == 4
    assert [world.verify(token).name for token in tokens] == ["bot"] * 4


def test_a_key_is_retired_by_removing_its_file(world: World) -> None:
    old = world.sign()
    (world.home / ROTATE).touch()
    world.rotation.look()
    [retired] = [name for name in world.files() if name != SIGNING_KEY]
    (world.home / retired).unlink()
    world.rotation.look()
    with pytest.raises(Unauthenticated, match="not known here"):
        world.verify(old)
    assert world.verify(world.sign())


def test_a_key_of_ones_own_is_dropped_in(world: World) -> None:
    old = world.sign()
    (world.home / "service-account-old.key").write_bytes((world.home / SIGNING_KEY).read_bytes())
    ours = ec.generate_private_key(ec.SECP256R1())
    ca.write_atomic(world.home / SIGNING_KEY, pem(ours))
    world.rotation.look()
    assert world.ring.ids[0] == ca.tokens.thumbprint(ours.public_key())
    assert world.verify(old)


@pytest.mark.parametrize(
    "bad",
    [b"", b"no key", pem(rsa.generate_private_key(65537, 2048)),
     pem(ec.generate_private_key(ec.SECP384R1()))],
)  # fmt: skip
def test_what_cannot_be_used_changes_nothing_and_is_told_once(world: World, bad: bytes) -> None:
    token = world.sign()
    before = world.ring.ids
    ca.write_atomic(world.home / SIGNING_KEY, bad)
    for _ in range(3):
        world.rotation.look()
    assert world.ring.ids == before
    assert world.verify(token)
    assert world.log.events() == ["the token keys stay as they are"]


def test_a_signing_key_that_is_gone_is_not_made_anew(world: World) -> None:
    token = world.sign()
    (world.home / SIGNING_KEY).unlink()
    world.rotation.look()
    assert world.verify(token)
    assert world.files() == []


def test_nothing_is_rotated_while_the_present_key_cannot_be_read(world: World) -> None:
    ca.write_atomic(world.home / SIGNING_KEY, b"broken")
    (world.home / ROTATE).touch()
    world.rotation.look()
    assert world.files() == [SIGNING_KEY]
    assert (world.home / SIGNING_KEY).read_bytes() == b"broken"


def test_no_key_is_in_the_log(world: World) -> None:
    (world.home / ROTATE).touch()
    world.rotation.look()
    (world.home / "service-account-x.key").write_bytes(b"-----BEGIN PRIVATE KEY-----\nsecret")
    world.rotation.look()
    assert "PRIVATE" not in repr(world.log.lines)


async def test_it_looks_every_few_seconds(world: World) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.rotation.run())
        (world.home / ROTATE).touch()
        while len(world.ring.ids) < 2:
            await world.clock.turn(PERIOD)
        running.cancel()


def test_the_public_keys_and_nothing_else_are_told(world: World) -> None:
    (world.home / ROTATE).touch()
    world.rotation.look()
    keys = world.ring.jwks()["keys"]
    assert [key["kid"] for key in keys] == list(world.ring.ids)
    for key in keys:
        assert set(key) == {"crv", "kty", "x", "y", "use", "alg", "kid"}
        assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("EC", "P-256", "ES256", "sig")

"""The files of a keyring, and their replacement while the server runs.

`service-account.key` signs; every further `service-account*.key` verifies only. So a key is
replaced without a gap, by files alone:

- make a file `rotate` in the directory: the present key is renamed to `service-account-DATE.key`
  and a new one is made; or
- copy the present key to another `service-account-*.key`, then rename a key of your own (P-256,
  PEM) to `service-account.key`.

What an old key signed stays good until its file is removed. Whatever in the directory cannot be
used changes nothing: the keys that were in use stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.aio import Clock, Log
from isthmus.ca.authority import load_key
from isthmus.ca.files import private_directory, write_atomic
from isthmus.ca.tokens import Keyring
from isthmus.errors import UserFault

SIGNING_KEY: Final = "service-account.key"
ALL_KEYS: Final = "service-account*.key"
ROTATE: Final = "rotate"
PERIOD: Final = 5.0
"""Seconds between two looks at the directory."""
MOST: Final = 64
"""Keys that are read; each costs memory and, in the key set, bytes."""

Stamp = tuple[tuple[str, int, int, int], ...]
"""What tells that files changed: name, inode, size and time of each."""


def load_keyring(directory: Path, issuer: str) -> Keyring:
    """The keyring kept in `directory`; its signing key is made there the first time."""
    private_directory(directory)
    if not (directory / SIGNING_KEY).exists():
        write_atomic(directory / SIGNING_KEY, _new())
    signing, others = _read(directory)
    return Keyring(issuer, signing, others)


class Rotation:
    """Keeps a keyring equal to the files in its directory."""

    def __init__(self, directory: Path, keyring: Keyring, clock: Clock, log: Log) -> None:
        self._directory = directory
        self._keyring = keyring
        self._clock = clock
        self._log = log
        self._seen = _stamp(directory)

    async def run(self) -> None:
        """Look, again and again, until cancelled."""
        while True:
            await self._clock.sleep(PERIOD)
            self.look()

    def look(self) -> None:
        """Do what the files ask for, if they changed."""
        try:
            if (self._directory / ROTATE).exists():
                self._rotate()
            stamp = _stamp(self._directory)
            if stamp == self._seen:
                return
            self._seen = stamp
            signing, others = _read(self._directory)
        except (OSError, UserFault) as fault:
            self._log.warning("the token keys stay as they are", why=str(fault))
            return
        self._keyring.use(signing, others)
        self._log.info(
            "token keys changed", keys=len(self._keyring.ids), signing=self._keyring.ids[0]
        )

    def _rotate(self) -> None:
        """A new signing key. The old one has its second name before the first is taken over."""
        old = self._directory / SIGNING_KEY
        kept = _free(self._directory, self._clock.utc())
        load_key(old, "restore it; nothing was rotated")
        kept.hardlink_to(old)
        write_atomic(old, _new())
        (self._directory / ROTATE).unlink()


def _free(directory: Path, now: datetime) -> Path:
    """A name that no key has yet."""
    day = f"{now:%Y%m%d-%H%M%S}"
    names = (f"service-account-{day}{end}.key" for end in ("", *(f"-{n}" for n in range(2, 100))))
    return next(path for name in names if not (path := directory / name).exists())


def _read(
    directory: Path,
) -> tuple[ec.EllipticCurvePrivateKey, Sequence[ec.EllipticCurvePublicKey]]:
    path = directory / SIGNING_KEY
    remedy = "restore it, or move it away to get a new one (present tokens stop working)"
    others = [file for file in sorted(directory.glob(ALL_KEYS)) if file != path][:MOST]
    return load_key(path, remedy), [load_key(file, remedy).public_key() for file in others]


def _stamp(directory: Path) -> Stamp:
    found = []
    for file in sorted(directory.glob(ALL_KEYS)):
        state = file.stat()
        found.append((file.name, state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)


def _new() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

"""The file in which the last view of a linked cluster outlives this server.

A mark, pieces of msgpack each led by its length, and a digest of all that: what is cut off or
changed is noticed, so nothing is forced to the disk before it counts. The first piece says whose
view it is, the others hold objects. When the API was heard last is the file's own time, which costs
no writing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from isthmus.app.links.told import Told
from isthmus.errors import PeerFault
from isthmus.model.key import Key
from isthmus.store.contract import MAX_VALUE, Record
from isthmus.store.kubernetes import BOUNDS, MIRRORED, Access

MARK: Final = b"isthmus link 1\n"
PIECE: Final = 100
"""Objects of one piece."""
OVERHEAD: Final = 1024
"""Bytes that an object may take beside its value: names, and the frame around them."""
LARGEST: Final = BOUNDS.bytes + BOUNDS.objects * OVERHEAD
"""Bytes of a file that is read."""
ENDING: Final = ".view"
_DIGEST: Final = hashlib.sha256().digest_size
_LENGTH: Final = 4
_RESOURCES: Final = frozenset(each.name for each in MIRRORED)

Row = tuple[str, str, str, bytes]


class Spoilt(PeerFault):
    """A file that is not what was written."""


class Kept(msgspec.Struct, frozen=True):
    """Whose view it is, and what is known beside the objects.

    `whose` is of the API's address and authority, so no other cluster of this name is meant.
    """

    cluster: str
    whose: str
    told: Told = Told()
    answered: bool = False
    """Its data plane once answered from here."""


class Found(NamedTuple):
    """What a file holds; `heard` in seconds since the epoch."""

    kept: Kept
    objects: dict[Key, bytes]
    heard: float


def whose(access: Access) -> str:
    """What stays the same while tokens and certificates of one account come and go."""
    said = [access.server, access.authority, access.server_name]
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def path_of(home: Path, cluster: str) -> Path:
    """Names may be longer than files' names; a digest is not."""
    return home / (hashlib.sha256(cluster.encode()).hexdigest()[:32] + ENDING)


def write(path: Path, kept: Kept, records: Sequence[Record], heard: float) -> None:
    """Replace the file in one step. OSError. One server owns the directory, one thread the file."""
    new, digest = path.with_suffix(".new"), hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        for piece in chain([MARK], _pieces(kept, records)):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())
    touch(new, heard)
    new.replace(path)


def touch(path: Path, heard: float) -> None:
    """The API was heard at this time, and nothing has changed."""
    os.utime(path, (heard, heard))


def _pieces(kept: Kept, records: Sequence[Record]) -> Iterator[bytes]:
    yield _framed(kept)
    for begin in range(0, len(records), PIECE):
        yield _framed([(*each.key, each.value) for each in records[begin : begin + PIECE]])


def _framed(value: object) -> bytes:
    packed = msgspec.msgpack.encode(value)
    return len(packed).to_bytes(_LENGTH) + packed


def read(path: Path, cluster: str, owner: str) -> Found | None:
    """The view kept for a cluster of this name and owner; None if there is none, or another's.

    Raises:
        Spoilt: it cannot be what was written.
        OSError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise Spoilt(f"no file of at most {LARGEST} bytes")
        data = file.read(LARGEST + 1)
    pieces = _unframed(_body(data))
    try:
        kept = msgspec.msgpack.decode(next(pieces, b""), type=Kept)
        if (kept.cluster, kept.whose) != (cluster, owner):
            return None
        return Found(kept, _objects(pieces), about.st_mtime)
    except (msgspec.MsgspecError, ValueError) as fault:
        raise Spoilt(str(fault)) from None


def _body(data: bytes) -> memoryview:
    whole = memoryview(data)
    body, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    if bytes(body[: len(MARK)]) != MARK or hashlib.sha256(body).digest() != digest:
        raise Spoilt("it was cut off or changed, or is of another version")
    return body[len(MARK) :]


def _unframed(body: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + _LENGTH])
        at += _LENGTH
        yield body[at : at + size]
        at += size


def _objects(pieces: Iterator[memoryview]) -> dict[Key, bytes]:
    rows = chain.from_iterable(msgspec.msgpack.decode(each, type=list[Row]) for each in pieces)
    found: dict[Key, bytes] = {}
    for *names, value in rows:
        key = Key(*names)
        if key.resource not in _RESOURCES or len(value) > MAX_VALUE:
            raise Spoilt(f"{key.resource} is not kept, or is too large")
        found[key] = value
    return found


def sweep(home: Path, clusters: Sequence[str]) -> None:
    """Remove the files of all other clusters, and what a crash left. OSError."""
    wanted = {path_of(home, name) for name in clusters}
    for file in home.glob("*"):
        if file not in wanted and file.suffix in (ENDING, ".new"):
            file.unlink(missing_ok=True)

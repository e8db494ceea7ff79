"""Inputs that a fuzzer found worth keeping, one file of base64 lines for each target."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent / "corpus"


def kept(target: str) -> list[bytes]:
    """The inputs of a target."""
    path = FOLDER / f"{target}.txt"
    return [b64decode(line) for line in path.read_text().split()] if path.exists() else []


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Replace the inputs of a target."""
    FOLDER.mkdir(exist_ok=True)
    lines = sorted({b64encode(each).decode() for each in inputs if each})
    (FOLDER / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))


def spoiled(inputs: Sequence[bytes], words: Sequence[str], chance: Random) -> Iterator[bytes]:
    """The inputs, each with something changed at random: bytes, words, parts of another one."""
    for each in inputs:
        data = bytearray(each)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0:
                    data[at:at] = bytes([chance.randrange(256)])
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case 2 if words:
                    data[at:at] = chance.choice(words).encode()
                case 3:
                    other = chance.choice(inputs)
                    data[at:] = other[chance.randrange(len(other) + 1) :]
                case _:
                    data[at : at + 1] = data[at : at + 1] * chance.randrange(2, 40)
        yield bytes(data)

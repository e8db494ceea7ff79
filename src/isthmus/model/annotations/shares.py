"""Annotations of a federated Service: the share of each member.

multicluster.isthmus.dev/member.east: "weight=3, priority=1"
multicluster.isthmus.dev/member.local: "drain"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from isthmus.model.annotations.grammar import Problem, Unfit, parsed
from isthmus.model.annotations.keys import MEMBER

LOCAL: Final = "local"
"""What the local cluster's member may be called, beside the cluster's own name."""

HEAVIEST: Final = 10_000
LAST: Final = 15

_LONGEST: Final = 128
_NUMBER: Final = re.compile(r"[0-9]{1,5}")


class Share(NamedTuple):
    """What a member gets. `weight` is None where endpoints count alike.

    Members of a higher `priority` number are used when those of lower ones have nobody. A member
    that drains gets nothing while there is another one.
    """

    weight: int | None = None
    priority: int = 0
    drain: bool = False


def shares(annotations: Mapping[str, str]) -> dict[str, Share | Problem]:
    """The share of each cluster that is spoken of, or what is wrong with the annotation."""
    return {key.removeprefix(MEMBER): one for key, one in _found(annotations)}


def _found(annotations: Mapping[str, str]) -> Iterator[tuple[str, Share | Problem]]:
    for key in sorted(annotations):
        if key.startswith(MEMBER) and key != MEMBER:
            one = parsed(annotations, key, parse_share)
            if one is not None:
                yield key, one


def parse_share(text: str) -> Share:
    """The meaning of `weight=3, priority=1`, `drain`. Unfit."""
    if len(text) > _LONGEST:
        raise Unfit(f"is longer than {_LONGEST} characters")
    said: dict[str, int] = {}
    for item in text.split(","):
        word, equals, number = (part.strip() for part in item.partition("="))
        if word in said:
            raise Unfit(f"says {word} twice")
        said[word] = _value(word, number if equals else None)
    return Share(said.get("weight"), said.get("priority", 0), "drain" in said)


def _value(word: str, number: str | None) -> int:
    match word, number:
        case "drain", None:
            return 1
        case "weight", str():
            return _between(word, number, 1, HEAVIEST)
        case "priority", str():
            return _between(word, number, 0, LAST)
        case _:
            raise Unfit("must be weight=N, priority=N or drain, separated by commas")


def _between(word: str, text: str, least: int, most: int) -> int:
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        hint = "; to give nothing write drain" if word == "weight" else ""
        raise Unfit(f"{word} must be a whole number from {least} to {most}{hint}")
    return int(text)

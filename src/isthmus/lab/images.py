"""What an image name means in a lab, where nothing is ever pulled: a command of this machine.

A topology's `images` come first, the built-in ones after; of several patterns that fit, the most
exact counts (the one with the most characters that are no wildcards). `$NAME` and `${NAME}` in a
command stand for the container's environment.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

Command = tuple[str, ...]

_FACES: Command = (sys.executable, "-m", "isthmus.lab.faces")

BUILT_IN: Mapping[str, Command] = MappingProxyType(
    {
        "*/faces-gui:*": (*_FACES, "gui"),
        "*/faces-workload:*": (*_FACES, "workload"),
        "*/faces-smiley:*": (*_FACES, "smiley"),
        "*/faces-color:*": (*_FACES, "color"),
        "*/faces-face:*": (*_FACES, "face"),
        "*/pause:*": ("sleep", "infinity"),
    }
)
"""The images of the Faces workshop and of gateways, whatever registry and tag."""

_VARIABLE = re.compile(r"\$(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[^{}]+)\})")
_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[-._A-Za-z0-9]+)\))")


class Images:
    """Finds the command of an image."""

    def __init__(self, own: Mapping[str, Sequence[str]]) -> None:
        self._layers: list[list[tuple[str, Command]]] = [
            sorted(((each, tuple(words)) for each, words in layer.items()), key=_exactness)
            for layer in (own, BUILT_IN)
        ]

    def command(self, image: str) -> Command | None:
        """The command of an image; None when nobody said what it means."""
        name = normal(image)
        for layer in self._layers:
            for pattern, words in layer:
                if fnmatchcase(image, pattern) or fnmatchcase(name, pattern):
                    return words
        return None


def normal(image: str) -> str:
    """The name with a tag: `latest` where none is written and no digest either."""
    if "@" in image:
        return image
    last = image.rpartition("/")[2]
    return image if ":" in last else f"{image}:latest"


def _exactness(pair: tuple[str, Command]) -> tuple[int, str]:
    pattern = pair[0]
    return (-sum(character not in "*?" for character in pattern), pattern)


def substitute(words: Sequence[str], env: Mapping[str, str]) -> Command:
    """An image's command with `$NAME` and `${NAME}` filled in; what is not set becomes empty."""

    def value(found: re.Match[str]) -> str:
        return env.get(found["name"] or found["braced"], "")

    return tuple(_VARIABLE.sub(value, word) for word in words)


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` filled in as Kubernetes does: unknown names stay as written, `$$` is one `$`."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        return "$" if name is None else env.get(name, found[0])

    return _REFERENCE.sub(value, text)


def argv(
    image: str, command: Sequence[str], args: Sequence[str], env: Mapping[str, str], images: Images
) -> Command | None:
    """What a container runs; None when it names no command and its image is not known.

    A container's `command` replaces the image's, its `args` follow (Kubernetes: "command" and
    "args" against an image's entry point).
    """
    tail = tuple(expand(each, env) for each in args)
    if command:
        return (*(expand(each, env) for each in command), *tail)
    known = images.command(image)
    return None if known is None else (*substitute(known, env), *tail)

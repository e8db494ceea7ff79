"""The names of targets' clusters, read back."""

from __future__ import annotations

from typing import Final

from isthmus.ir.names import TargetId

LONGEST: Final = 2048
"""Characters of a name that may mean something."""


def read_target(name: str) -> TargetId | None:
    """The target whose cluster has this name: the opposite of `TargetId.key`."""
    if len(name) > LONGEST:
        return None
    variant, tilde, sni = name.rpartition("~")
    front, dot, trust_domain = sni.partition(".internal.")
    if not dot or not trust_domain or (tilde and not variant):
        return None
    match front.split("."):
        case [port, service, namespace, cluster]:
            subset = ""
        case [subset, port, service, namespace, cluster] if subset:
            pass
        case _:
            return None
    number = read_port(port[1:]) if port.startswith("p") else None
    if number is None or not all((service, namespace, cluster)):
        return None
    return TargetId(cluster, namespace, service, number, subset, variant)


def read_port(text: str) -> int | None:
    """A number from 0 to 65535 as `str` writes it."""
    fits = text.isascii() and text.isdecimal() and len(text) <= 5 and str(int(text)) == text
    return int(text) if fits and int(text) <= 65535 else None

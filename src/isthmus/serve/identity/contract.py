"""What the identity surface asks of others, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Reviewed(NamedTuple):
    """Whose a token is. `user` is as Kubernetes writes it, `system:serviceaccount:NS:NAME`."""

    user: str


class Reviewer(Protocol):
    """Knows the tokens of this cluster: a TokenReview, in process or not."""

    async def review(self, token: str, audience: str) -> Reviewed:
        """Whose it is, if it is for `audience`, in its time, and all it is bound to still exists.

        Raises:
            Unauthenticated: it is nobody's.
        """
        ...


class Caller(NamedTuple):
    """Who is at the other end, as a certificate that TLS verified says; nobody without one.

    `host` is empty for whoever is no host. `key` is the SHA-256 of the public key, hexadecimal.
    """

    host: str = ""
    key: str = ""


NOBODY = Caller()


class Heard(NamedTuple):
    """Who knows that a workload leaves.

    `known`: all who send to it are to be told; `behind`: proxies that have not accepted it yet.
    """

    known: bool
    behind: tuple[str, ...]


Ask = Callable[[str], Heard]
"""Of an ExternalWorkload, `NS/NAME`."""

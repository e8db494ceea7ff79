"""Why there is no answer. Free of gRPC, for the contracts of protocol machines."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a call is not served: the name of a gRPC status, and a short text."""

    status: str
    text: str


class Refused(Exception):
    """Ends a call with a refusal."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.refusal = Refusal(status, text)

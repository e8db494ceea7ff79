"""What the kinds of policy.linkerd.io share."""

from __future__ import annotations

from typing import Final

from msgspec import field

from isthmus.model.meta import View
from isthmus.model.shapes import CONDITIONS, STRING, about, listed, structure

GROUP: Final = "policy.linkerd.io"
CATEGORIES: Final = ("policy",)

STATUS: Final = about(
    structure({"conditions": about(CONDITIONS, "Accepted, ResolvedRefs, and what else is known.")}),
    "What the mesh made of this object; written by its controllers.",
)
"""Every kind has conditions, also those without a status in Linkerd (decision 25)."""


class Network(View, frozen=True):
    """A CIDR block or single address, without `excepts`."""

    cidr: str = ""
    excepts: tuple[str, ...] = field(default=(), name="except")


NETWORK: Final = structure(
    {
        "cidr": about(STRING, "A block such as 10.0.0.0/8, or a single address."),
        "except": about(listed(STRING), "Blocks or addresses inside it that do not count."),
    },
    required=("cidr",),
)


def policy_ref(version: str, kind: str) -> str:
    """The name under which OpenAPI shares a kind of this group."""
    return f"io.linkerd.policy.{version}.{kind}"

"""What the operator chose, as table cells, so that plans see it change."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from isthmus.engine import Query, Table
from isthmus.ir.faults import Unsupported
from isthmus.ir.proxy import InboundName, OutboundName
from isthmus.mesh.asked import ProfileKey


class Dialect(NamedTuple):
    """What proxies of one dialect do not do, of ports that they are told of; None: all is done.

    `name` is as in `mesh.spoken`.
    """

    name: str
    outbound: Query[[OutboundName], tuple[Unsupported, ...]] | None = None
    inbound: Query[[InboundName], tuple[Unsupported, ...]] | None = None


class Settings(msgspec.Struct, frozen=True):
    """Of one cluster. `root_ca` is the PEM text that pods verify the API server with.

    `unsupported`: what each dialect has to say of a profile that its proxies are told; `dialects`:
    of ports.
    """

    control_plane_namespace: str
    root_ca: str = ""
    unsupported: tuple[Query[[ProfileKey], tuple[Unsupported, ...]], ...] = ()
    dialects: tuple[Dialect, ...] = ()


SETTINGS: Table[str, Settings] = Table("settings")
"""By cluster."""

"""What the operator chose, as table cells, so that plans see it change."""

from __future__ import annotations

import msgspec

from isthmus.engine import Query, Table
from isthmus.ir.faults import Unsupported
from isthmus.mesh.asked import ProfileKey


class Settings(msgspec.Struct, frozen=True):
    """Of one cluster. `root_ca` is the PEM text that pods verify the API server with.

    `unsupported`: what each dialect has to say of a profile that its proxies are told.
    """

    control_plane_namespace: str
    root_ca: str = ""
    unsupported: tuple[Query[[ProfileKey], tuple[Unsupported, ...]], ...] = ()


SETTINGS: Table[str, Settings] = Table("settings")
"""By cluster."""

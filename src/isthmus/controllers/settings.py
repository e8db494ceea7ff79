"""What the operator chose, as table cells, so that plans see it change."""

from __future__ import annotations

import msgspec

from isthmus.engine import Table


class Settings(msgspec.Struct, frozen=True):
    """Of one cluster. `root_ca` is the PEM text that pods verify the API server with."""

    control_plane_namespace: str
    root_ca: str = ""


SETTINGS: Table[str, Settings] = Table("settings")
"""By cluster."""

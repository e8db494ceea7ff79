"""The dashboard's files: one page with its style and script, nothing from anywhere else."""

from __future__ import annotations

from importlib.resources import files
from typing import Final, NamedTuple

GUARDS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
"""No other site's script, no frame around the page."""


class File(NamedTuple):
    """What is answered at a path."""

    body: bytes
    content_type: str


def dashboard() -> dict[str, File]:
    """The files by path."""
    kept = files(__package__).joinpath("dashboard")
    return {
        "/": File(kept.joinpath("index.html").read_bytes(), "text/html"),
        "/dashboard.css": File(kept.joinpath("dashboard.css").read_bytes(), "text/css"),
        "/dashboard.js": File(kept.joinpath("dashboard.js").read_bytes(), "text/javascript"),
    }

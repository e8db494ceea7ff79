"""The gui: the page, and its way to the face service."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from isthmus.lab.faces import run
from isthmus.lab.faces.http import HOPS, BadMessageError, Handler, Request, Response, fetch
from isthmus.lab.faces.legend import LEGEND, Look, look
from isthmus.lab.faces.pace import within
from isthmus.lab.faces.run import POD, Settings
from isthmus.lab.faces.smiley import answer
from isthmus.lab.faces.words import color

PATIENCE: Final = 10.0
"""Seconds that face may take."""
LARGEST_GRID: Final = 16
_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_MARK: Final = "{{settings}}"
_GUARDS: Final = (
    ("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
)


class View(NamedTuple):
    """How the page begins. `edge` cells from the border belong to the edge, the others are center.

    `background` is "" where the page has its own.
    """

    rows: int
    columns: int
    edge: int
    active: bool
    hide_key: bool
    show_pods: bool
    background: str
    user_header: str

    def part(self, row: int, col: int) -> str:
        """`center` or `edge`."""
        inner = self.edge <= row < self.rows - self.edge
        return "center" if inner and self.edge <= col < self.columns - self.edge else "edge"


class Gui:
    """Serves the page and passes `face/...` on."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._face = found.env.get("FACE_SERVICE") or "face"
        self._files = {
            each.name: each.read_bytes()
            for each in files("isthmus.lab.faces").joinpath("page").iterdir()
        }
        self._view = view(found)

    async def __call__(self, request: Request) -> Response:
        """One request."""
        path = request.path.lstrip("/")
        if path.startswith("face/"):
            return await self._pass_on(request, request.target.lstrip("/").removeprefix("face"))
        if request.method not in ("GET", "HEAD"):
            return _text(405, f"Method {request.method} not allowed")
        match path:
            case "" | "index.html":
                return self._page(request)
            case "ready":
                return _text(200, "Ready and waiting!")
            case "state" | "state/":
                return await self._state(request)
            case name if name in self._files:
                kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
                headers = (("Content-Type", kind), *_GUARDS)
                return Response(200, self._files[name], headers)
        return _text(404, "there is nothing here")

    def _page(self, request: Request) -> Response:
        """The page, with all that it must know of us and of who loads it."""
        user = request.header(self._found.user_header)
        told = {**self._view._asdict(), "user": user, "legend": [each._asdict() for each in LEGEND]}
        # Inside a script element only `<` could end it: then the user's name would be markup.
        text = json.dumps(told).replace("<", "\\u003c")
        page = self._files["index.html"].decode().replace(_MARK, text)
        return Response(200, page.encode(), (("Content-Type", _TYPES["html"]), *_GUARDS))

    async def _pass_on(self, request: Request, target: str) -> Response:
        start = self._found.pace.now()
        headers = [
            (name, value)
            for name, value in request.headers
            if name not in HOPS and name != "accept-encoding"
        ]
        try:
            async with within(PATIENCE):
                got = await fetch(self._face, target, headers, method=request.method)
        except TimeoutError:
            got = Response(504, f"no answer from {self._face} in time".encode())
        except (OSError, BadMessageError) as fault:
            got = Response(500, f"cannot reach {self._face}: {fault}".encode())
        spent = round((self._found.pace.now() - start) * 1000)
        kind = got.header("content-type", "text/plain; charset=utf-8")
        agent = request.header("user-agent", "unknown")
        pod = got.header(POD) or self._found.pod
        told = (
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Faces-User-Agent", agent),
            ("X-Faces-Latency", str(spent)),
            (self._found.user_header, request.header(self._found.user_header, "unknown")),
            (POD, pod),
            *(((run.CLUSTER, where),) if (where := got.header(run.CLUSTER)) else ()),
        )
        return Response(got.status, got.body, told)

    # ---------------------------------------------------------------------------------- state

    async def _state(self, request: Request) -> Response:
        """What the page would show now: one round of all cells, as JSON."""
        rows, columns = self._view.rows, self._view.columns
        cells = await asyncio.gather(
            *(self._cell(request, row, col) for row in range(rows) for col in range(columns))
        )
        counts = Counter(key for shown, _ in cells for key in shown.keys)
        return answer(
            200,
            {"counts": counts, "cells": [told for _, told in cells]},
            (("Cache-Control", "no-store"),),
        )

    async def _cell(self, request: Request, row: int, col: int) -> tuple[Look, dict[str, object]]:
        part = self._view.part(row, col)
        got = await self._pass_on(request._replace(method="GET"), f"/{part}/?row={row}&col={col}")
        shown = look(got.status, got.body)
        told = {
            "row": row,
            "col": col,
            "part": part,
            "status": got.status,
            "pod": got.header(POD),
            **shown._asdict(),
        }
        return shown, told


def view(found: Settings) -> View:
    """From the environment."""
    env = found.env
    background = env.get("COLOR") or "white"
    return View(
        rows=max(1, run.number(env, "NUM_ROWS", 4, most=LARGEST_GRID)),
        columns=max(1, run.number(env, "NUM_COLS", 4, most=LARGEST_GRID)),
        edge=run.number(env, "EDGE_SIZE", 1, most=LARGEST_GRID),
        active=run.truth(env, "START_ACTIVE", default=True),
        hide_key=run.truth(env, "HIDE_KEY", default=False),
        show_pods=run.truth(env, "SHOW_PODS", default=False),
        background="" if background == "white" else color(background),
        user_header=found.user_header,
    )


def _text(status: int, said: str) -> Response:
    return Response(status, said.encode(), (("Content-Type", "text/plain; charset=utf-8"),))


def handler(found: Settings) -> Handler:
    """The service."""
    return Gui(found)


def main(argv: Sequence[str]) -> int:
    """Run it."""
    return run.run("gui", argv, run.over_http(handler))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

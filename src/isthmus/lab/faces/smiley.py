"""The smiley service: which smiley a cell shows, over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from isthmus.lab.faces import run
from isthmus.lab.faces.http import Handler, Headers, Request, Response
from isthmus.lab.faces.run import Settings
from isthmus.lab.faces.trouble import Fate, Trouble, Turn
from isthmus.lab.faces.words import SMILEYS, entity, smiley

JSON: Final = ("Content-Type", "application/json")
PARTS: Final = ("center", "edge")
STATUS: Final[Mapping[Fate, int]] = {Fate.FAILED: 500, Fate.STUCK: 599, Fate.LIMITED: 429}


def part_of(path: str) -> str:
    """`center` or `edge`: the first part of the path, whatever follows."""
    return path.lstrip("/").split("/")[0]


def answer(status: int, said: Mapping[str, object], headers: Headers) -> Response:
    """A JSON answer."""
    return Response(status, json.dumps(said).encode(), (JSON, *headers))


def plain(found: Settings, trouble: Trouble, request: Request) -> Response | None:
    """The answer to what needs no fate: probes, figures, and methods that are not there."""
    echoes = found.echoes(request)
    if request.method == "HEAD":
        return Response(200, b"", (JSON, *echoes))
    if request.method != "GET":
        text = f"Method {request.method} not allowed".encode()
        return Response(405, text, (("Content-Type", "text/plain"), *echoes))
    match request.path:
        case "/ready":
            return answer(200, {"ready": True}, echoes)
        case "/rl":
            return answer(200, {"rl": trouble.rate_text(found.pace.now())}, echoes)
    return None


def described(request: Request, status: int) -> dict[str, object]:
    """What every JSON answer tells of its request."""
    headers: dict[str, list[str]] = {}
    for name, value in request.headers:
        headers.setdefault(name, []).append(value)
    return {
        "path": request.path,
        "client_address": request.client,
        "method": request.method,
        "headers": headers,
        "status": status,
    }


class Smiley:
    """Tells smileys, and can be told others at run time."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._trouble = Trouble(found.plan, found.random)
        wanted = smiley(found.env.get("SMILEY") or "Grinning")
        self._smileys = dict.fromkeys(PARTS, wanted)

    async def __call__(self, request: Request) -> Response:
        """One request."""
        if request.method == "PUT":
            return self._change(request)
        done = plain(self._found, self._trouble, request)
        if done is not None:
            return done
        turn = self._trouble.turn(self._found.pace.now())
        await self._found.pace.sleep(turn.delay)
        return self._tell(request, turn)

    def _tell(self, request: Request, turn: Turn) -> Response:
        echoes = self._found.echoes(request)
        status = STATUS.get(turn.fate, 200)
        said = described(request, status) | {"errors": []}
        match turn.fate:
            case Fate.SERVED:
                part = part_of(request.path)
                said["smiley"] = self._smileys.get(part, self._smileys["edge"])
                said["rate"] = self._trouble.rate_text(self._found.pace.now())
            case Fate.LIMITED:
                said |= {"smiley": entity(SMILEYS["Kaboom"]), "errors": [turn.why]}
            case Fate.FAILED | Fate.STUCK:
                said["errors"] = [f"Smiley error! ({turn.why})"]
        return answer(status, said, echoes)

    def _change(self, request: Request) -> Response:
        echoes = self._found.echoes(request)
        try:
            read = json.loads(request.body)
            which, name = str(read["which"]), str(read["smiley"])
        except (ValueError, KeyError, TypeError, RecursionError):
            why = 'the body must be {"which": "all|center|edge", "smiley": NAME}'
            return answer(400, {"errors": [why]}, echoes)
        if which not in (*PARTS, "all"):
            return answer(400, {"errors": [f"no part {which[:64]!r}"]}, echoes)
        for part in PARTS if which == "all" else (which,):
            self._smileys[part] = smiley(name)
        return answer(200, {"which": which, "smiley": smiley(name)}, echoes)


def handler(found: Settings) -> Handler:
    """The service."""
    return Smiley(found)


def main(argv: Sequence[str]) -> int:
    """Run it."""
    return run.run("smiley", argv, run.over_http(handler))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The face service: one face, made of what `smiley` and `color` say at the same time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from isthmus.lab.faces import run
from isthmus.lab.faces.http import BadMessageError, Handler, Request, Response, address, fetch
from isthmus.lab.faces.pace import within
from isthmus.lab.faces.run import CLUSTER, POD, Settings
from isthmus.lab.faces.smiley import STATUS, answer, described, part_of, plain
from isthmus.lab.faces.trouble import Fate, Trouble
from isthmus.lab.faces.words import COLORS, SMILEYS, entity
from isthmus.proto.faces import color_pb2 as pb

PATIENCE_MS: Final = 5000
"""What a backend may take, unless BACKEND_TIMEOUT_MS says more or less."""
_LONGEST: Final = 300
"""Characters of an error that are told on."""

_OPTIONS: Final = (
    # Each call a connection of its own: so balancing and policies show at once.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


class Said(NamedTuple):
    """What a backend said, or what stands for it and why. `by` is who, as far as known."""

    value: str
    error: str
    by: dict[str, object]


class Face:
    """Makes faces."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._trouble = Trouble(found.plan, found.random)
        self._smiley = found.env.get("SMILEY_SERVICE") or "smiley"
        self._color = found.env.get("COLOR_SERVICE") or "color"
        self._patience = (
            run.number(found.env, "BACKEND_TIMEOUT_MS", PATIENCE_MS, most=600_000) / 1000
        )

    async def __call__(self, request: Request) -> Response:
        """One request."""
        done = plain(self._found, self._trouble, request)
        if done is not None:
            return done
        start = self._found.pace.now()
        turn = self._trouble.turn(start)
        await self._found.pace.sleep(turn.delay)
        said: dict[str, object]
        match turn.fate:
            case Fate.FAILED | Fate.STUCK:
                status = STATUS[turn.fate]
                said = described(request, status) | {"errors": [f"Face error! ({turn.why})"]}
                return answer(status, said, self._found.echoes(request))
            case Fate.LIMITED:
                kaboom = entity(SMILEYS["Kaboom"])
                said = {"smiley": kaboom, "color": COLORS["yellow"], "errors": [turn.why]}
            case Fate.SERVED:
                said = await self._ask(request)
        now = self._found.pace.now()
        said["rate"] = self._trouble.rate_text(now)
        said["latency"] = round((now - start) * 1000)
        return answer(200, described(request, 200) | said, self._found.echoes(request))

    async def _ask(self, request: Request) -> dict[str, object]:
        smiley, color = await asyncio.gather(
            self._timed(self._ask_smiley(request)), self._timed(self._ask_color(request))
        )
        return {
            "smiley": smiley.value,
            "color": color.value,
            "errors": [each.error for each in (smiley, color) if each.error],
            "answered": {"smiley": smiley.by, "color": color.by},
        }

    async def _timed(self, asking: Awaitable[Said]) -> Said:
        start = self._found.pace.now()
        said = await asking
        said.by["ms"] = round((self._found.pace.now() - start) * 1000)
        return said

    def _user(self, request: Request) -> str:
        return request.header(self._found.user_header, "unknown")

    # --------------------------------------------------------------------------------- smiley

    async def _ask_smiley(self, request: Request) -> Said:
        target = (
            f"/{part_of(request.path)}/?row={_cell(request, 'row')}&col={_cell(request, 'col')}"
        )
        headers = [
            (self._found.user_header, self._user(request)),
            ("User-Agent", request.header("user-agent", "unknown")),
        ]
        try:
            async with within(self._patience):
                got = await fetch(self._smiley, target, headers)
        except TimeoutError:
            return _no_smiley("Sleeping", f"no answer from {self._smiley} in time")
        except (OSError, BadMessageError) as fault:
            return _no_smiley("Cursing", f"cannot reach {self._smiley}: {_short(str(fault))}")
        by = {"pod": got.header(POD), "cluster": got.header(CLUSTER), "status": got.status}
        read = _json(got.body)
        smiley, errors = read.get("smiley"), read.get("errors")
        if got.status == 200 and isinstance(smiley, str):
            return Said(smiley, "", by)
        if got.status == 200:
            return _no_smiley("Cursing", f"{self._smiley} sent no smiley", by)
        stands = {504: "Sleeping", 429: "Kaboom"}.get(got.status, "Cursing")
        body = (
            str(errors[0])
            if isinstance(errors, list) and errors
            else got.body.decode(errors="replace")
        )
        why = f"error from {self._smiley}: {got.status} ({_short(body)})"
        return _no_smiley(stands, why, by)

    # ---------------------------------------------------------------------------------- color

    async def _ask_color(self, request: Request) -> Said:
        host, port = address(self._color)
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        method = "Center" if part_of(request.path) == "center" else "Edge"
        asked = pb.ColorRequest(row=_cell(request, "row"), column=_cell(request, "col"))
        metadata = ((self._found.user_header.lower(), self._user(request)),)
        by: dict[str, object] = {}
        async with grpc.aio.insecure_channel(target, options=_OPTIONS) as channel:
            ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/ColorService/{method}"
            )
            call = ask(asked.SerializeToString(), timeout=self._patience, metadata=metadata)
            try:
                told = dict(await call.initial_metadata())
                by |= {"pod": told.get(POD.lower(), ""), "cluster": told.get(CLUSTER.lower(), "")}
                color = pb.ColorResponse.FromString(await call).color
            except grpc.aio.AioRpcError as fault:
                by["status"] = fault.code().name
                return Said(_stand_in(fault), f"color: {self._why(fault)}", by)
            except DecodeError:
                return Said(COLORS["grey"], f"color: {self._color} sent no color", by)
        return Said(color, "", by | {"status": "OK"})

    def _why(self, fault: grpc.aio.AioRpcError) -> str:
        return f"error from {self._color}: {fault.code().name} ({_short(fault.details() or '')})"


def _stand_in(fault: grpc.aio.AioRpcError) -> str:
    """Red is too late, yellow is too much, grey is all else."""
    code, details = fault.code(), fault.details() or ""
    late = code is grpc.StatusCode.UNAVAILABLE and "504" in details
    if late or code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return COLORS["red"]
    return COLORS["yellow" if code is grpc.StatusCode.RESOURCE_EXHAUSTED else "grey"]


def _no_smiley(stands: str, why: str, by: dict[str, object] | None = None) -> Said:
    return Said(entity(SMILEYS[stands]), f"smiley: {why}", {} if by is None else by)


def _cell(request: Request, name: str) -> int:
    """A row or column; -1 if it is none."""
    said = request.query.get(name, "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 9 else -1


def _json(body: bytes) -> dict[str, object]:
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def handler(found: Settings) -> Handler:
    """The service."""
    return Face(found)


def main(argv: Sequence[str]) -> int:
    """Run it."""
    return run.run("face", argv, run.over_http(handler))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

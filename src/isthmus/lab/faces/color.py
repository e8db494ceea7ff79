"""The color service: which color a cell has, over gRPC."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from isthmus.lab.faces import run
from isthmus.lab.faces.run import Settings
from isthmus.lab.faces.trouble import Fate, Trouble
from isthmus.lab.faces.words import color
from isthmus.proto.faces import color_pb2 as pb

SERVICE: Final = "ColorService"
PARTS: Final = ("center", "edge")
LARGEST: Final = 64 * 1024

Context = grpc.aio.ServicerContext[bytes, bytes]
Method = Callable[[bytes, Context], Awaitable[bytes]]


class Color:
    """Tells colors, and can be told others at run time."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._trouble = Trouble(found.plan, found.random)
        self._colors = dict.fromkeys(PARTS, color(found.env.get("COLOR") or "blue"))
        self._server = grpc.aio.server(
            options=(("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", LARGEST))
        )
        methods: dict[str, Method] = {
            "Center": self._teller("center"),
            "Edge": self._teller("edge"),
            "UpdateColor": self._change,
        }
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((generic,))

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port. OSError where it cannot be had."""
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            port = self._server.add_insecure_port(at)
        except RuntimeError as fault:
            raise OSError(0, "it is taken, or may not be used") from fault
        await self._server.start()
        return port

    async def stop(self, grace: float) -> None:
        """Let calls end."""
        await self._server.stop(grace)

    def _teller(self, part: str) -> Method:
        async def tell(_request: bytes, context: Context) -> bytes:
            who = [(name.lower(), value) for name, value in self._found.identity()]
            await context.send_initial_metadata(who)
            turn = self._trouble.turn(self._found.pace.now())
            await self._found.pace.sleep(turn.delay)
            if turn.fate is Fate.LIMITED:
                why = f"rate limited: {turn.why}"
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
            if turn.fate is not Fate.SERVED:
                why = f"failed to get color: {turn.why}"
                await context.abort(grpc.StatusCode.INTERNAL, why)
            return pb.ColorResponse(color=self._colors[part]).SerializeToString()

        return tell

    async def _change(self, request: bytes, context: Context) -> bytes:
        try:
            wanted = pb.ColorUpdate.FromString(request)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no ColorUpdate")
        if wanted.which not in (*PARTS, "all"):
            why = f"no part {wanted.which[:64]!r}; all, center or edge"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why)
        for part in PARTS if wanted.which == "all" else (wanted.which,):
            self._colors[part] = color(wanted.color)
        return pb.ColorUpdateResponse(
            which=wanted.which, color=color(wanted.color)
        ).SerializeToString()


def main(argv: Sequence[str]) -> int:
    """Run it."""
    return run.run("color", argv, Color)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

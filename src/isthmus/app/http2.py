"""The file of `--meshed-http2-params`: HTTP/2 settings of clients towards meshed endpoints.

JSON as Linkerd's charts write it: names as in the proxy API, durations as seconds and nanos.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from isthmus.errors import UserFault
from isthmus.mesh.settings import Http2Params

LARGEST = 64 * 1024
"""Bytes of the file."""

_Window = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # RFC 9113, section 6.9.1


class _Duration(msgspec.Struct, forbid_unknown_fields=True):
    seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    nanos: Annotated[int, Meta(ge=0, lt=10**9)] = 0

    @property
    def milliseconds(self) -> int:
        return self.seconds * 1000 + self.nanos // 10**6


class _KeepAlive(msgspec.Struct, forbid_unknown_fields=True):
    interval: _Duration | None = None
    timeout: _Duration | None = None
    while_idle: bool = False


class _FlowControl(msgspec.Struct, forbid_unknown_fields=True):
    initial_connection_window_size: _Window = 0
    initial_stream_window_size: _Window = 0
    adaptive_flow_control: bool = False


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    keep_alive: _KeepAlive = msgspec.field(default_factory=_KeepAlive)
    flow_control: _FlowControl = msgspec.field(default_factory=_FlowControl)


def read_params(path: Path | None) -> Http2Params | None:
    """What the file says; None without a file.

    Raises:
        UserFault: it cannot be read; says why.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return parse_params(file.read(LARGEST + 1))
    except OSError as fault:
        raise UserFault(f"cannot read --meshed-http2-params {path}: {fault.strerror}") from fault
    except ValueError as fault:  # msgspec's errors are ValueErrors
        raise UserFault(f"--meshed-http2-params {path}: {fault}") from fault


def parse_params(text: bytes) -> Http2Params:
    """The settings in a JSON text. Raises ValueError with a clear half-line."""
    if len(text) > LARGEST:
        raise ValueError(f"longer than {LARGEST} bytes")
    said = msgspec.json.decode(text, type=_Params)
    ping, windows = said.keep_alive, said.flow_control
    return Http2Params(
        ping_interval=ping.interval.milliseconds if ping.interval is not None else None,
        ping_timeout=ping.timeout.milliseconds if ping.timeout is not None else None,
        ping_while_idle=ping.while_idle,
        connection_window=windows.initial_connection_window_size,
        stream_window=windows.initial_stream_window_size,
        adaptive_window=windows.adaptive_flow_control,
    )

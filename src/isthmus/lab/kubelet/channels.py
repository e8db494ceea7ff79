"""The frames of Kubernetes' remote commands over WebSocket (`v5.channel.k8s.io`, and v4).

The first byte of a binary message is its channel: 0 stdin, 1 stdout, 2 stderr, 3 the end, as a
Status; 4 a terminal's size; 255 (v5 only): the channel named by the next byte is closed.
"""

from __future__ import annotations

import msgspec

STDIN, STDOUT, STDERR, END, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)


def ended(code: int) -> bytes:
    """The last frame of a command that was run: its exit code, in a Status."""
    if code == 0:
        status: dict[str, object] = {"metadata": {}, "status": "Success"}
    else:
        status = {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    return bytes((END,)) + msgspec.json.encode(status)


def failed(message: str) -> bytes:
    """The last frame of a command that could not be run."""
    status = {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
    return bytes((END,)) + msgspec.json.encode(status)


def read_size(frame: bytes) -> tuple[int, int]:
    """Columns and rows that a frame of channel 4 tells (without its first byte), or 80 × 24."""
    try:
        size = msgspec.json.decode(frame)
    except msgspec.MsgspecError:
        size = None
    found = size if isinstance(size, dict) else {}
    width, height = found.get("Width"), found.get("Height")
    return (
        width if isinstance(width, int) and width > 0 else 80,
        height if isinstance(height, int) and height > 0 else 24,
    )


class End(msgspec.Struct, frozen=True):
    """What the last frame said. `code` is None when the command could not be run."""

    code: int | None
    message: str = ""


def read_end(frame: bytes) -> End:
    """The end that a frame of channel 3 tells (without its first byte)."""
    try:
        status = msgspec.json.decode(frame)
    except msgspec.MsgspecError:
        return End(None, "the end could not be read")
    if not isinstance(status, dict):
        return End(None, "the end could not be read")
    if status.get("status") == "Success":
        return End(0)
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            digits = str(cause.get("message"))
            return End(int(digits) if digits.isdigit() else 1)
    return End(None, str(status.get("message") or "the command could not be run"))

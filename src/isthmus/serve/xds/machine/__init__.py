"""xDS streams without I/O: what a proxy says goes in, at most one response comes out.

What it is: the whole protocol, delta and state of the world, with the order in which a proxy may
be told things. What it is not: it reads no protobuf, keeps no time and knows no mesh; the shell
gives it requests as values and the time as a number, and writes the bytes it returns.

Its words:
    Stream     one proxy's stream; `Delta` and `Sotw` are the two protocols
    Truth      what is true for this proxy now; asked, never copied
    held       what the proxy has or may have, name by name: a Resource, or a bare version
    flight     the response of a type that is not answered yet; at most one per type
    look       names whose truth may differ from what is held
    again      names to be sent although nothing changed: their cluster or listener did
    suspects   groups of resources of a rejected response, to be tried apart
    rejected   resources that were rejected alone: not sent again until their content changes
    leaving    held names that are gone, kept until nothing in use refers to them
"""

from isthmus.serve.xds.machine.delta import Delta
from isthmus.serve.xds.machine.judge import Truth
from isthmus.serve.xds.machine.sotw import Sotw
from isthmus.serve.xds.machine.stream import PATIENCE, Convicted, Stream
from isthmus.serve.xds.machine.values import (
    UNKNOWN,
    DeltaRequest,
    Rejected,
    Response,
    SotwRequest,
    TypeStatus,
)

__all__ = [
    "PATIENCE",
    "UNKNOWN",
    "Convicted",
    "Delta",
    "DeltaRequest",
    "Rejected",
    "Response",
    "Sotw",
    "SotwRequest",
    "Stream",
    "Truth",
    "TypeStatus",
]

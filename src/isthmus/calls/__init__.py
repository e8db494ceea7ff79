"""What every gRPC surface does alike: addresses are bound, and a call ends with one status.

No protocol is known here, and no service. The surfaces, which must not know each other, take from
this room what would otherwise be written once in each of them.

A **refusal** is the name of a gRPC status and a short text. `Refused` carries it up to the edge,
where `guarded` ends the call with it; so does any error of `isthmus.errors`. Anything else is a
bug.
"""

from isthmus.calls.address import bind
from isthmus.calls.ending import Context, guarded, refusal_of, shorten
from isthmus.calls.refusal import Refusal, Refused

__all__ = ["Context", "Refusal", "Refused", "bind", "guarded", "refusal_of", "shorten"]

"""What a proxy does that was told this: the reference reading of the IR.

`outbound(ir, request, endpoints)` and `inbound(ir, peer, request)` follow one request or connection
through a configuration and answer with every step and what comes of it. `explain` prints the
steps; tests compare the verdicts with what real proxies do. Both are total: whatever stands in the
IR, they answer and never raise.

They read what is written, as a proxy of any kind should. Where a data plane does otherwise, that is
its dialect's fault to list, and none of this reading's business.
"""

from isthmus.ir.decide.inbound import inbound
from isthmus.ir.decide.outbound import Endpoints, outbound
from isthmus.ir.decide.terms import (
    Admit,
    Close,
    Decision,
    Forward,
    Reply,
    Step,
    ToOriginal,
    Verdict,
)

__all__ = [
    "Admit",
    "Close",
    "Decision",
    "Endpoints",
    "Forward",
    "Reply",
    "Step",
    "ToOriginal",
    "Verdict",
    "inbound",
    "outbound",
]

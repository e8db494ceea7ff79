"""Annotations that configure the mesh, as pure parsers: text in, a value or a Problem out.

Linkerd's grammar (its policy controller reads the same keys). A feature that no annotation asks for
is None. A Problem spoils its own group (timeouts, retries, accrual, load bias, ports) and no other;
on a route it is a fault, elsewhere a warning.
"""

from isthmus.model.annotations.balancer import (
    Accrual,
    AccrualMode,
    LoadBias,
    SuccessRate,
    failure_accrual,
    load_bias,
)
from isthmus.model.annotations.grammar import Problem, parse_duration, parse_truth
from isthmus.model.annotations.inbound import (
    ACCESS_POLICIES,
    INBOUND_TLS_MODES,
    Upstream,
    default_inbound_policy,
    inbound_tls,
    upstreams,
)
from isthmus.model.annotations.parents import parent_warnings
from isthmus.model.annotations.ports import NO_PORTS, Ports, port_list
from isthmus.model.annotations.shares import LOCAL, Share, shares
from isthmus.model.annotations.staleness import DROP, KEEP, Staleness, staleness
from isthmus.model.annotations.traffic import (
    GrpcRetry,
    HttpRetry,
    Timeouts,
    grpc_retry,
    http_retry,
    timeouts,
)

__all__ = [
    "ACCESS_POLICIES",
    "DROP",
    "INBOUND_TLS_MODES",
    "KEEP",
    "LOCAL",
    "NO_PORTS",
    "Accrual",
    "AccrualMode",
    "GrpcRetry",
    "HttpRetry",
    "LoadBias",
    "Ports",
    "Problem",
    "Share",
    "Staleness",
    "SuccessRate",
    "Timeouts",
    "Upstream",
    "default_inbound_policy",
    "failure_accrual",
    "grpc_retry",
    "http_retry",
    "inbound_tls",
    "load_bias",
    "parent_warnings",
    "parse_duration",
    "parse_truth",
    "port_list",
    "shares",
    "staleness",
    "timeouts",
    "upstreams",
]

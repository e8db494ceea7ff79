"""The keys. Whoever reads or writes one of these annotations imports it from here."""

from __future__ import annotations

from typing import Final

TIMEOUT_REQUEST: Final = "timeout.linkerd.io/request"
TIMEOUT_RESPONSE: Final = "timeout.linkerd.io/response"
TIMEOUT_IDLE: Final = "timeout.linkerd.io/idle"

RETRY_LIMIT: Final = "retry.linkerd.io/limit"
RETRY_TIMEOUT: Final = "retry.linkerd.io/timeout"
RETRY_HTTP: Final = "retry.linkerd.io/http"
RETRY_GRPC: Final = "retry.linkerd.io/grpc"

FAILURE_ACCRUAL: Final = "balancer.linkerd.io/failure-accrual"
_CONSECUTIVE: Final = "balancer.linkerd.io/failure-accrual-consecutive-"
MAX_FAILURES: Final = f"{_CONSECUTIVE}max-failures"
MAX_PENALTY: Final = f"{_CONSECUTIVE}max-penalty"
MIN_PENALTY: Final = f"{_CONSECUTIVE}min-penalty"
JITTER_RATIO: Final = f"{_CONSECUTIVE}jitter-ratio"

_ALPHA: Final = "balancer.alpha.linkerd.io/"
SUCCESS_THRESHOLD: Final = f"{_ALPHA}failure-accrual-success-rate-threshold"
SUCCESS_WINDOW: Final = f"{_ALPHA}failure-accrual-success-rate-window"
SUCCESS_MIN_REQUESTS: Final = f"{_ALPHA}failure-accrual-success-rate-min-requests"
HONOR_RETRY_AFTER: Final = f"{_ALPHA}failure-accrual-honor-retry-after"
PENALIZE_FAILURES: Final = f"{_ALPHA}penalize-failures"
BIAS_PENALTY: Final = f"{_ALPHA}load-biaser-penalty"
BIAS_MAX_RETRY_AFTER: Final = f"{_ALPHA}load-biaser-max-retry-after"

OPAQUE_PORTS: Final = "config.linkerd.io/opaque-ports"
DEFAULT_INBOUND_POLICY: Final = "config.linkerd.io/default-inbound-policy"
REQUIRE_IDENTITY_PORTS: Final = "config.linkerd.io/proxy-require-identity-inbound-ports"
UPSTREAMS: Final = "config.isthmus.dev/upstreams"
INBOUND_TLS: Final = "config.isthmus.dev/inbound-tls"

MEMBER: Final = "multicluster.isthmus.dev/member."
"""The beginning of keys on a federated Service; a cluster's name follows."""
ENABLE_GATEWAY: Final = "config.linkerd.io/enable-gateway"
STALENESS: Final = "multicluster.isthmus.dev/staleness"
HEADLESS_SERVICES: Final = "multicluster.isthmus.dev/headless-services"
"""On a Link, "true": headless Services are mirrored host by host."""
CREATE_NAMESPACES: Final = "multicluster.isthmus.dev/create-namespaces"
"""On a Link, "true": namespaces that its Services need are made."""
CARRY: Final = "multicluster.isthmus.dev/carry"
"""On an AuthorizationPolicy for a Service, "true": it counts at that Service's members."""
ACCEPT_POLICIES: Final = "multicluster.isthmus.dev/accept-policies"
"""On a Service: the linked clusters whose carried policies count here, `west, north` or `*`. On the
Link to such a cluster, "true"."""
CARRIED_FROM: Final = "multicluster.isthmus.dev/carried-from"
"""On what a carried policy became: `<cluster>/<namespace>/<name>`."""
CARRIED_UID: Final = "multicluster.isthmus.dev/carried-uid"
"""On what a carried policy became: the policy's uid."""

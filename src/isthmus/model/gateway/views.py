"""Views of routes, shared by both groups that have HTTPRoutes.

Lenient: a filter of an unknown type, a match without a path, a rule without backends all decode;
`mesh` makes conditions and error values of them. A field that admission fills in has the same
default here, for objects that were stored around it.
"""

from __future__ import annotations

from msgspec import field

from isthmus.model.meta import Meta, View
from isthmus.model.references import Ref


class ParentRef(View, frozen=True):
    """What a route attaches to. `port` 0 means every port, `namespace` "" the route's own."""

    group: str = "gateway.networking.k8s.io"
    kind: str = "Gateway"
    namespace: str = ""
    name: str = ""
    section_name: str = ""
    port: int = 0


class HeaderValue(View, frozen=True):
    """A header to set or add."""

    name: str = ""
    value: str = ""


class HeaderModifier(View, frozen=True):
    """Changes of headers."""

    set: tuple[HeaderValue, ...] = ()
    add: tuple[HeaderValue, ...] = ()
    remove: tuple[str, ...] = ()


class PathModifier(View, frozen=True):
    """`type` is ReplaceFullPath or ReplacePrefixMatch."""

    type: str = ""
    replace_full_path: str | None = None
    replace_prefix_match: str | None = None


class RequestRedirect(View, frozen=True):
    """What is None comes from the request."""

    scheme: str | None = None
    hostname: str | None = None
    path: PathModifier | None = None
    port: int | None = None
    status_code: int = 302


class UrlRewrite(View, frozen=True):
    """Changes of host and path on the way to the backend."""

    hostname: str | None = None
    path: PathModifier | None = None


class Fraction(View, frozen=True):
    """`numerator` of `denominator`."""

    numerator: int = 0
    denominator: int = 100


class MirrorRef(View, frozen=True):
    """Where copies go."""

    group: str = ""
    kind: str = "Service"
    namespace: str = ""
    name: str = ""
    port: int = 0


class RequestMirror(View, frozen=True):
    """A share of requests is copied: all if neither `percent` nor `fraction` is given."""

    backend_ref: MirrorRef = MirrorRef()
    percent: int | None = None
    fraction: Fraction | None = None


class Cors(View, frozen=True):
    """Cross-origin resource sharing."""

    allow_origins: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    allow_credentials: bool = False
    max_age: int = 5


class Filter(View, frozen=True):
    """One filter; the field that belongs to `type` is set."""

    type: str = ""
    request_header_modifier: HeaderModifier | None = None
    response_header_modifier: HeaderModifier | None = None
    request_redirect: RequestRedirect | None = None
    url_rewrite: UrlRewrite | None = field(default=None, name="urlRewrite")
    request_mirror: RequestMirror | None = None
    cors: Cors | None = None
    extension_ref: Ref | None = None


class BackendRef(View, frozen=True):
    """Where a rule sends to. `port` 0 means that none was given."""

    group: str = ""
    kind: str = "Service"
    namespace: str = ""
    name: str = ""
    port: int = 0
    weight: int = 1
    filters: tuple[Filter, ...] = ()


class PathMatch(View, frozen=True):
    """`type` is Exact, PathPrefix or RegularExpression."""

    type: str = "PathPrefix"
    value: str = "/"


class ValueMatch(View, frozen=True):
    """A header or query parameter; `type` is Exact or RegularExpression."""

    type: str = "Exact"
    name: str = ""
    value: str = ""


class HttpMatch(View, frozen=True):
    """Everything that is set must hold."""

    path: PathMatch | None = None
    headers: tuple[ValueMatch, ...] = ()
    query_params: tuple[ValueMatch, ...] = ()
    method: str = ""


class Timeouts(View, frozen=True):
    """Durations as text, "" where none was given."""

    request: str = ""
    backend_request: str = ""


class Retry(View, frozen=True):
    """Retries by status; `backoff` is a duration as text."""

    codes: tuple[int, ...] = ()
    attempts: int | None = None
    backoff: str = ""


class HttpRule(View, frozen=True):
    """One rule of an HTTPRoute."""

    name: str = ""
    matches: tuple[HttpMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendRef, ...] = ()
    timeouts: Timeouts = Timeouts()
    retry: Retry | None = None


class HttpRouteSpec(View, frozen=True):
    """Parents, hosts, rules."""

    parent_refs: tuple[ParentRef, ...] = ()
    hostnames: tuple[str, ...] = ()
    rules: tuple[HttpRule, ...] = ()


class HttpRoute(View, frozen=True):
    """HTTPRoute of gateway.networking.k8s.io and of policy.linkerd.io."""

    metadata: Meta = Meta()
    spec: HttpRouteSpec = HttpRouteSpec()


class GrpcMethod(View, frozen=True):
    """`type` is Exact or RegularExpression; "" means any."""

    type: str = "Exact"
    service: str = ""
    method: str = ""


class GrpcMatch(View, frozen=True):
    """Everything that is set must hold."""

    method: GrpcMethod | None = None
    headers: tuple[ValueMatch, ...] = ()


class GrpcRule(View, frozen=True):
    """One rule of a GRPCRoute; without matches it is for every call."""

    name: str = ""
    matches: tuple[GrpcMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendRef, ...] = ()


class GrpcRouteSpec(View, frozen=True):
    """Parents, hosts, rules."""

    parent_refs: tuple[ParentRef, ...] = ()
    hostnames: tuple[str, ...] = ()
    rules: tuple[GrpcRule, ...] = ()


class GrpcRoute(View, frozen=True):
    """gateway.networking.k8s.io GRPCRoute."""

    metadata: Meta = Meta()
    spec: GrpcRouteSpec = GrpcRouteSpec()


class StreamRule(View, frozen=True):
    """One rule for whole connections."""

    name: str = ""
    backend_refs: tuple[BackendRef, ...] = ()


class TlsRouteSpec(View, frozen=True):
    """`hostnames` are server names; none means every one."""

    parent_refs: tuple[ParentRef, ...] = ()
    hostnames: tuple[str, ...] = ()
    rules: tuple[StreamRule, ...] = ()


class TlsRoute(View, frozen=True):
    """gateway.networking.k8s.io TLSRoute."""

    metadata: Meta = Meta()
    spec: TlsRouteSpec = TlsRouteSpec()


class TcpRouteSpec(View, frozen=True):
    """Parents and rules."""

    parent_refs: tuple[ParentRef, ...] = ()
    rules: tuple[StreamRule, ...] = ()


class TcpRoute(View, frozen=True):
    """gateway.networking.k8s.io TCPRoute."""

    metadata: Meta = Meta()
    spec: TcpRouteSpec = TcpRouteSpec()

"""The tests of the Gateway API's mesh profiles (v1.6.1, and one that came after), as data.

Upstream compares neither the Location of redirects nor the path that a backend saw; here both are.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.lab.conformance.world import (
    CONSUMER,
    MESH,
    Manifest,
    exact,
    full,
    header,
    pairs,
    prefix,
    query,
    redirect,
    request_headers,
    response_header,
    route,
    rule,
    stem,
    to,
)

Headers = tuple[tuple[str, str], ...]

HTTP, GRPC = "MESH-HTTP", "MESH-GRPC"


class Ask(NamedTuple):
    """A request and what must come of it.

    `client` is a Deployment, `namespace` where it is. `seen` are headers that the backend must have
    seen, None for those it must not; `told` likewise of the response. `pod` is the beginning of
    the answering pod's name.
    """

    path: str = "/"
    pod: str = ""
    host: str = "echo"
    port: int = 80
    headers: Headers = ()
    status: int = 200
    seen: dict[str, str | None] = {}  # noqa: RUF012 - never changed
    told: dict[str, str | None] = {}  # noqa: RUF012 - never changed
    seen_path: str = ""
    location: str = ""
    protocol: str = "http"
    client: str = "echo-v1"
    namespace: str = MESH


class Conformance(NamedTuple):
    """One test: `core` of `profiles`, or of a feature. `shares` is for tests of weights."""

    name: str
    routes: tuple[Manifest, ...]
    asks: tuple[Ask, ...]
    profiles: tuple[str, ...] = (HTTP,)
    features: tuple[str, ...] = ()
    provisional: bool = False
    shares: dict[str, float] = {}  # noqa: RUF012 - never changed


V1, V2 = to("echo-v1"), to("echo-v2")

# ------------------------------------------------------------------------------- header changes

_CHANGES: dict[str, Manifest] = {
    "/set": {"set": pairs(X_Header_Set="set-overwrites-values")},
    "/add": {"add": pairs(X_Header_Add="add-appends-values")},
    "/remove": {"remove": ["X-Header-Remove"]},
    "/multiple": {
        "set": pairs(X_Header_Set_1="header-set-1", X_Header_Set_2="header-set-2"),
        "add": pairs(
            X_Header_Add_1="header-add-1",
            X_Header_Add_2="header-add-2",
            X_Header_Add_3="header-add-3",
        ),
        "remove": ["X-Header-Remove-1", "X-Header-Remove-2"],
    },
    "/case-insensitivity": {
        "set": pairs(X_Header_Set="header-set"),
        "add": pairs(X_Header_Add="header-add"),
        "remove": ["X-Header-Remove"],
    },
}
_CHANGED = (
    Ask("/set", "echo-v1", headers=(("Some-Other-Header", "val"),),
        seen={"Some-Other-Header": "val", "X-Header-Set": "set-overwrites-values"}),
    Ask("/set", "echo-v1",
        headers=(("Some-Other-Header", "val"), ("X-Header-Set", "some-other-value")),
        seen={"Some-Other-Header": "val", "X-Header-Set": "set-overwrites-values"}),
    Ask("/add", "echo-v1", headers=(("Some-Other-Header", "val"),),
        seen={"Some-Other-Header": "val", "X-Header-Add": "add-appends-values"}),
    Ask("/add", "echo-v1", headers=(("X-Header-Add", "some-other-value"),),
        seen={"X-Header-Add": "some-other-value,add-appends-values"}),
    Ask("/remove", "echo-v1", headers=(("X-Header-Remove", "val"),),
        seen={"X-Header-Remove": None}),
    Ask("/multiple", "echo-v1",
        headers=(("X-Header-Set-2", "set-val-2"), ("X-Header-Add-2", "add-val-2"),
                 ("X-Header-Remove-2", "remove-val-2"), ("Another-Header", "another")),
        seen={"X-Header-Set-1": "header-set-1", "X-Header-Set-2": "header-set-2",
              "X-Header-Add-1": "header-add-1", "X-Header-Add-2": "add-val-2,header-add-2",
              "X-Header-Add-3": "header-add-3", "Another-Header": "another",
              "X-Header-Remove-1": None, "X-Header-Remove-2": None}),
    Ask("/case-insensitivity", "echo-v1",
        headers=(("x-header-set", "original-val-set"), ("x-header-add", "original-val-add"),
                 ("x-header-remove", "original-val-remove"), ("Another-Header", "another")),
        seen={"X-Header-Set": "header-set", "X-Header-Add": "original-val-add,header-add",
              "X-Header-Remove": None, "Another-Header": "another"}),
)  # fmt: skip


def _changing(*, backend: bool) -> tuple[Manifest, ...]:
    rules = []
    for path, change in _CHANGES.items():
        filters = [request_headers(**change)]
        where: Manifest = {"backend": V1, "filters": filters}
        if backend:
            where = {"backend": to("echo-v1", filters=filters)}
        rules.append(rule(prefix(path), **where))
    return (route("request-header-modifier", "echo", *rules),)


# ---------------------------------------------------------------------------------- redirects


def _redirects(name: str, **targets: Manifest) -> Manifest:
    rules = [
        rule(prefix(f"/{path.replace('_', '-')}"), filters=[redirect(**said)])
        for path, said in targets.items()
    ]
    return route(name, "echo", *rules)


def _to(path: str, location: str, status: int = 302) -> Ask:
    return Ask(path, status=status, location=location)


_ORG = {"hostname": "example.org"}
_PATHS = _redirects(
    "redirect-path",
    original_prefix={"path": stem("/replacement-prefix")},
    full={"path": full("/full-path-replacement")},
    path_and_host={**_ORG, "path": stem("/replacement-prefix")},
    path_and_status={"path": stem("/replacement-prefix"), "statusCode": 301},
    full_path_and_host={**_ORG, "path": full("/replacement-full")},
    full_path_and_status={"path": full("/replacement-full"), "statusCode": 301},
)
_PORTS = _redirects(
    "redirect-port",
    port={"port": 8083},
    port_and_host={**_ORG, "port": 8083},
    port_and_status={"port": 8083, "statusCode": 301},
    port_and_host_and_status={**_ORG, "port": 8083, "statusCode": 302},
)
_SCHEMES = _redirects(
    "redirect-scheme",
    scheme={"scheme": "https"},
    scheme_and_host={**_ORG, "scheme": "https"},
    scheme_and_status={"scheme": "https", "statusCode": 301},
    scheme_and_host_and_status={**_ORG, "scheme": "https", "statusCode": 302},
)
_STATUSES = _redirects(
    "redirect-status",
    redirect={**_ORG, "statusCode": 303},
    temporary={**_ORG, "statusCode": 307},
    permanent={**_ORG, "statusCode": 308},
)

# ----------------------------------------------------------------------------------- rewrites


def _rewrite(path: Manifest) -> Manifest:
    return {"type": "URLRewrite", "urlRewrite": {"path": path}}


_ALSO = request_headers(
    set=pairs(X_Header_Set="set-overwrites-values"),
    add=pairs(X_Header_Add="header-val-1", X_Header_Add_Append="header-val-2"),
    remove=["X-Header-Remove"],
)
_SENT: Headers = (
    ("X-Header-Remove", "remove-val"),
    ("X-Header-Add-Append", "append-val-1"),
    ("X-Header-Set", "set-val"),
)
_SEEN: dict[str, str | None] = {
    "X-Header-Add": "header-val-1",
    "X-Header-Add-Append": "append-val-1,header-val-2",
    "X-Header-Set": "set-overwrites-values",
    "X-Header-Remove": None,
}
_LAST = to("echo-v1", 80)
_REWRITES = route(
    "rewrite-path", "echo",
    rule(prefix("/prefix/one"), filters=[_rewrite(stem("/one"))], backend=_LAST),
    rule(prefix("/strip-prefix"), filters=[_rewrite(stem("/"))], backend=_LAST),
    rule(prefix("/full/one"), filters=[_rewrite(full("/one"))], backend=_LAST),
    rule(prefix("/full/rewrite-path-and-modify-headers"),
         filters=[_rewrite(full("/test")), _ALSO], backend=_LAST),
    rule(prefix("/prefix/rewrite-path-and-modify-headers"),
         filters=[_rewrite(stem("/prefix")), _ALSO], backend=_LAST),
)  # fmt: skip

# ------------------------------------------------------------------------------- other pieces

_SET = {"X-Header-Set": "set"}
_UNSET: dict[str, str | None] = {"X-Header-Set": None}
_FRONT = route(
    "mesh-split-v1", "echo-v2",
    rule(filters=[response_header("set")], backend=to("echo-v2", 80)), port=None,
)  # fmt: skip
_ANIMALS = route(
    "query-param-matching", "echo",
    rule(query("whale"), backend=V1),
    rule(query("dolphin"), backend=V2),
    rule(prefix("/path1", **query("whale")), backend=V1),
    rule({**header("version", "one"), **query("whale")}, backend=V2),
    rule(prefix("/path3", **query("shark")),
         prefix("/path4", **header("version", "three"), **query("kraken")), backend=V1),
    rule(prefix("/path5"), backend=V1),
    rule(query("hydra"), backend=V2),
)  # fmt: skip
_ONE: Headers = (("version", "one"),)
_THREE: Headers = (("version", "three"),)


def _call(case: str, change: Manifest, backend: str = "echo-v1") -> Manifest:
    filters = [request_headers(**change)]
    return rule(header("x-test-case", case), filters=filters, backend=to(backend, 7070))


_CALLS = route(
    "grpc-request-header-modifier", "echo",
    _call("set", {"set": pairs(x_header_set="set-overwrites-values")}),
    _call("add", {"add": pairs(x_header_add="add-appends-values")}),
    _call("remove", {"remove": ["x-header-remove"]}),
    _call("multi", {
        "set": pairs(x_header_set_1="header-set-1", x_header_set_2="header-set-2"),
        "add": pairs(x_header_add_1="header-add-1", x_header_add_2="header-add-2"),
        "remove": ["x-header-remove-1", "x-header-remove-2"],
    }, "echo-v2"),
    port=7070, kind="GRPCRoute",
)  # fmt: skip


def _asked(
    case: str,
    headers: Headers,
    seen: dict[str, str | None],
    pod: str = "echo-v1",
    client: str = "echo-v1",
) -> Ask:
    return Ask(
        "/", pod, port=7070, headers=(("x-test-case", case), *headers), seen=seen,
        protocol="grpc", client=client,
    )  # fmt: skip


def _any(pod: str, *paths: str, status: int = 200) -> tuple[Ask, ...]:
    return tuple(Ask(path, pod, status=status) for path in paths)


# ------------------------------------------------------------------------------------ the tests

TESTS = (
    Conformance("MeshBasic", (), (Ask(),), (HTTP, GRPC)),
    Conformance(
        "MeshHTTPRouteSimpleSameNamespace",
        (route("mesh-simple", "echo", rule(backend=V1)),),
        _any("echo-v1", "/", "/", "/any"),
    ),
    Conformance(
        "MeshHTTPRouteMatching",
        (
            route(
                "mesh-matching", "echo",
                rule(prefix("/"), header("version", "one"), backend=V1),
                rule(prefix("/v2"), header("version", "two"), backend=V2),
            ),
        ),
        (
            *_any("echo-v1", "/", "/example", "/v2example", "/foo/v2/example"),
            Ask("/", "echo-v1", headers=_ONE),
            *_any("echo-v2", "/v2", "/v2/", "/v2/example"),
            Ask("/", "echo-v2", headers=(("version", "two"),)),
        ),
    ),
    Conformance(
        "MeshTrafficSplit",
        (
            route(
                "mesh-split-v1", "echo",
                rule(exact("/v1"), backend=to("echo-v1", 80)),
                rule(exact("/v2"), backend=to("echo-v2", 80)), port=None,
            ),
        ),
        (Ask("/v1", "echo-v1"), Ask("/v2", "echo-v2")),
    ),
    Conformance(
        "MeshHTTPRouteWeight",
        (
            route(
                "mesh-weighted-backends", "echo",
                rule(backend=[to("echo-v1", weight=70), to("echo-v2", weight=30)]),
            ),
        ),
        (Ask(),),
        shares={"echo-v1": 0.7, "echo-v2": 0.3},
    ),
    Conformance("MeshHTTPRouteRequestHeaderModifier", _changing(backend=False), _CHANGED),
    Conformance(
        "MeshHTTPRouteRedirectHostAndStatus",
        (
            _redirects(
                "redirect-host-and-status",
                hostname_redirect=_ORG,
                host_and_status={**_ORG, "statusCode": 301},
            ),
        ),
        (
            _to("/hostname-redirect", "http://example.org/hostname-redirect"),
            _to("/host-and-status", "http://example.org/host-and-status", 301),
        ),
    ),
    Conformance(
        "MeshFrontend",
        (_FRONT,),
        (
            Ask("/", "echo-v2", "echo-v2", told={**_SET}),
            Ask("/", "", "{echo-v2}", 8080, told=_UNSET),
        ),
        features=("HTTPRouteResponseHeaderModification",),
    ),
    Conformance(
        "MeshPorts",
        (
            route("mesh-ports", "echo-v1", rule(filters=[response_header("v1")],
                                                backend=to("echo-v1", 80))),
            route("mesh-ports-v2", "echo-v2", rule(filters=[response_header("v2")],
                                                   backend=to("echo-v2", 80)), port=None),
        ),
        (
            Ask("/", "echo-v1", "echo-v1", told={"X-Header-Set": "v1"}),
            Ask("/", "echo-v1", "echo-v1", 8080, told=_UNSET),
            Ask("/", "echo-v2", "echo-v2", told={"X-Header-Set": "v2"}),
            Ask("/", "echo-v2", "echo-v2", 8080, told={"X-Header-Set": "v2"}),
        ),
        features=("HTTPRouteParentRefPort", "HTTPRouteResponseHeaderModification"),
    ),
    Conformance(
        "MeshFrontendHostname",
        (_FRONT,),
        (
            Ask("/", "echo-v2", "echo-v2", headers=(("Host", "echo-v1"),), told={**_SET}),
            Ask("/", "echo-v1", "echo-v1", headers=(("Host", "echo-v2"),), told=_UNSET),
        ),
        features=("MeshClusterIPMatching", "HTTPRouteResponseHeaderModification"),
    ),
    Conformance(
        "MeshConsumerRoute",
        (
            route("mesh-split-v1", "echo-v1",
                  rule(filters=[response_header("set")],
                       backend=to("echo-v1", 80, namespace=MESH)),
                  port=None, namespace=CONSUMER),
        ),
        (
            Ask("/", "echo-v1", f"echo-v1.{MESH}", told={**_SET}, namespace=CONSUMER),
            Ask("/", "echo-v1", f"echo-v1.{MESH}", told=_UNSET),
        ),
        features=("MeshConsumerRoute", "HTTPRouteResponseHeaderModification"),
    ),
    Conformance(
        "MeshHTTPRouteBackendRequestHeaderModifier",
        _changing(backend=True),
        _CHANGED,
        features=("MeshHTTPRouteBackendRequestHeaderModification",),
    ),
    Conformance(
        "MeshHTTPRouteQueryParamMatching",
        (_ANIMALS,),
        (
            *_any("echo-v1", "/?animal=whale", "/?animal=whale&otherparam=irrelevant"),
            *_any("echo-v2", "/?animal=dolphin", "/?animal=dolphin&color=yellow"),
            *_any("", "/?color=blue", "/?animal=dog", "/?animal=whaledolphin", "/", status=404),
            *_any("echo-v1", "/path1?animal=whale", "/path3?animal=shark", "/path5?animal=hydra"),
            Ask("/?animal=whale", "echo-v2", headers=_ONE),
            Ask("/path4?animal=kraken", "echo-v1", headers=_THREE),
            *_any("", "/?animal=shark", "/path4?animal=kraken", status=404),
        ),
        features=("MeshHTTPRouteQueryParamMatching",),
    ),
    Conformance(
        "MeshHTTPRouteRedirectPath",
        (_PATHS,),
        (
            _to("/original-prefix/lemon", "http://echo/replacement-prefix/lemon"),
            _to("/full/path/original", "http://echo/full-path-replacement"),
            _to("/path-and-host", "http://example.org/replacement-prefix"),
            _to("/path-and-status", "http://echo/replacement-prefix", 301),
            _to("/full-path-and-host", "http://example.org/replacement-full"),
            _to("/full-path-and-status", "http://echo/replacement-full", 301),
        ),
        features=("MeshHTTPRouteRedirectPath",),
    ),
    Conformance(
        "MeshHTTPRouteRedirectPort",
        (_PORTS,),
        (
            _to("/port", "http://echo:8083/port"),
            _to("/port-and-host", "http://example.org:8083/port-and-host"),
            _to("/port-and-status", "http://echo:8083/port-and-status", 301),
            _to("/port-and-host-and-status", "http://example.org:8083/port-and-host-and-status"),
        ),
        features=("MeshHTTPRouteRedirectPort",),
    ),
    Conformance(
        "MeshHTTPRouteSchemeRedirect",
        (_SCHEMES,),
        (
            _to("/scheme", "https://echo/scheme"),
            _to("/scheme-and-host", "https://example.org/scheme-and-host"),
            _to("/scheme-and-status", "https://echo/scheme-and-status", 301),
            _to("/scheme-and-host-and-status", "https://example.org/scheme-and-host-and-status"),
        ),
        features=("MeshHTTPRouteSchemeRedirect",),
    ),
    Conformance(
        "MeshHTTPRouteRewritePath",
        (_REWRITES,),
        (
            Ask("/prefix/one/two", "echo-v1", seen_path="/one/two"),
            Ask("/strip-prefix/three", "echo-v1", seen_path="/three"),
            Ask("/strip-prefix", "echo-v1", seen_path="/"),
            Ask("/full/one/two", "echo-v1", seen_path="/one"),
            Ask("/full/rewrite-path-and-modify-headers/test", "echo-v1", headers=_SENT,
                seen=_SEEN, seen_path="/test"),
            Ask("/prefix/rewrite-path-and-modify-headers/one", "echo-v1", headers=_SENT,
                seen=_SEEN, seen_path="/prefix/one"),
        ),
        features=("MeshHTTPRouteRewritePath",),
    ),
    Conformance(
        "MeshHTTPRouteNamedRule",
        (
            route(
                "mesh-named-rule", "echo",
                rule(prefix("/named"), name="named-rule", backend=V1),
                rule(prefix("/unnamed"), backend=V2),
            ),
        ),
        (Ask("/named", "echo-v1"), Ask("/unnamed", "echo-v2")),
        features=("MeshHTTPRouteNamedRouteRule",),
        provisional=True,
    ),
    *(
        Conformance(
            f"MeshHTTPRoute{status}Redirect",
            (_STATUSES,),
            (_to(path, f"http://example.org{path}", status),),
            features=(f"HTTPRoute{status}RedirectStatusCode",),
            provisional=True,
        )
        for path, status in (("/redirect", 303), ("/temporary", 307), ("/permanent", 308))
    ),
    Conformance(
        "MeshGRPCRouteWeight",
        (
            route(
                "mesh-grpc-weighted-backends", "echo",
                rule(backend=[to("echo-v1", 7070, weight=70), to("echo-v2", 7070, weight=30),
                              to("echo-v3", 7070, weight=0)]),
                port=7070, kind="GRPCRoute",
            ),
        ),
        (Ask(port=7070, protocol="grpc"),),
        (GRPC,),
        shares={"echo-v1": 0.7, "echo-v2": 0.3},
    ),
    Conformance(
        "MeshGRPCRouteRequestHeaderModifier",
        (_CALLS,),
        (
            _asked("set", (("some-other-header", "val"), ("x-header-set", "overwritten")),
                   {"some-other-header": "val", "x-header-set": "set-overwrites-values"}),
            _asked("add", (("x-header-add", "appended"),),
                   {"x-header-add": "appended,add-appends-values"}),
            _asked("remove", (("x-header-remove", "val"),), {"x-header-remove": None}),
            _asked("multi",
                   (("x-header-set-2", "set-val-2"), ("x-header-add-2", "add-header-2"),
                    ("x-header-remove-2", "remove-val-2")),
                   {"x-header-set-1": "header-set-1", "x-header-set-2": "header-set-2",
                    "x-header-add-1": "header-add-1",
                    "x-header-add-2": "add-header-2,header-add-2",
                    "x-header-remove-1": None, "x-header-remove-2": None},
                   "echo-v2", client="echo-v2"),
        ),
        (GRPC,),
    ),
)  # fmt: skip

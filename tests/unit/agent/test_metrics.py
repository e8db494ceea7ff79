from __future__ import annotations

import re

import pytest

from isthmus.agent.metrics import export

IP = "10.1.0.9"
PARENT = "core|Service|faces|smiley|80|"
ROUTE = f"{PARENT}|gateway.networking.k8s.io|HTTPRoute|faces|smiley-route"
CALLS = ROUTE.replace("HTTPRoute", "GRPCRoute")
DENY = "policy.linkerd.io|EgressNetwork|faces|all|8000|||default||http-egress-deny"
BACKEND = "core|Service|faces|smiley2|80|"
KNOWN = (
    'parent_group="core",parent_kind="Service",parent_namespace="faces",parent_name="smiley",'
    'parent_port="80",parent_section_name="",route_group="gateway.networking.k8s.io",'
    'route_kind="HTTPRoute",route_namespace="faces",route_name="smiley-route"'
)
SENT = (
    'backend_group="core",backend_kind="Service",backend_namespace="faces",'
    'backend_name="smiley2",backend_port="80",backend_section_name=""'
)
WEB = "policy.linkerd.io|server|web|8080"
HERE = 'target_addr="10.1.0.9:8080",target_ip="10.1.0.9",target_port="8080"'
SERVER = 'srv_group="policy.linkerd.io",srv_kind="server",srv_name="web",srv_port="8080"'
SERVED = 'route_group="",route_kind="default",route_name="default"'
CLIENT = "me.shop.serviceaccount.identity.linkerd.cluster.local"
KNOWS = f'tls="true",client_id="{CLIENT}"'
STRANGER = 'tls="no_identity",no_tls_reason="no_tls_from_remote"'


def lines(page: str, family: str = "") -> list[str]:
    told = (line for line in export(page, IP).splitlines() if not line.startswith("#"))
    return [line for line in told if line.startswith(family)]


def counted(counter: str, *groups: str, times: int = 1) -> str:
    return f'envoy_isthmus_{counter}{{labels="{";".join(groups)}"}} {times}\n'


def request(
    *end: str, route: str = ROUTE, to: str = BACKEND, attempts: int = 1, host: str = "smiley.faces"
) -> str:
    return counted("outbound_http", route, to, *end, str(attempts), host, times=2)


STATUSES = "outbound_http_route_request_statuses_total"
CALLED = "outbound_grpc_route_request_statuses_total"
ANSWERS = "outbound_http_route_backend_response_statuses_total"


def test_requests_count_by_route_and_by_backend_in_linkerds_order() -> None:
    assert lines(request("200", "", "-")) == [
        f"outbound_http_route_backend_requests_total{{{KNOWN},{SENT}}} 2",
        f'{ANSWERS}{{{KNOWN},{SENT},http_status="200",error=""}} 2',
        f'{STATUSES}{{{KNOWN},hostname="smiley.faces",http_status="200",error=""}} 2',
    ]


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (("503", "", "UF,URX"), 'http_status="",error="FAIL_FAST"'),
        (("504", "", "UT"), 'http_status="",error="REQUEST_TIMEOUT"'),
        (("503", "", "URX"), 'http_status="503",error=""'),
        (("200", "", "UR"), 'http_status="200",error="RESET"'),
        (("0", "", "DC"), 'http_status="",error="CANCEL"'),
    ],
)
def test_errors_are_the_proxys_and_statuses_the_servers(
    end: tuple[str, str, str], shown: str
) -> None:
    (line,) = lines(request(*end), STATUSES)
    assert shown in line


def test_grpc_is_counted_apart_where_it_is_declared() -> None:
    (line,) = lines(request("200", "14", "-"), STATUSES)
    assert 'http_status="200",error=""' in line
    (line,) = lines(request("200", "14", "-", route=CALLS), CALLED)
    assert 'grpc_status="UNAVAILABLE",error=""' in line
    (line,) = lines(request("200", "7", "-", route=CALLS, to=""), CALLED)
    assert 'grpc_status="PERMISSION_DENIED",error=""' in line
    (line,) = lines(request("503", "", "UF", route=CALLS), CALLED)
    assert 'grpc_status="UNKNOWN",error="FAIL_FAST"' in line


@pytest.mark.parametrize("end", [("200", "9", "-"), ("403", "", "-")])
def test_denials_count_as_403_whatever_was_spoken(end: tuple[str, str, str]) -> None:
    (line,) = lines(request(*end, route=DENY, to="", host="color:8000"))
    assert 'route_name="http-egress-deny",hostname="color",http_status="403",error=""' in line


@pytest.mark.parametrize(
    ("authority", "shown"),
    [
        ("color:8000", "color"),
        ("Color.", "color"),
        ("10.0.0.1:80", ""),
        ("[fd00::1]:80", ""),
        ("a,b=c", ""),
        ("a;b|c", ""),
        ('a\\"} 1\\nevil{b=\\"', ""),
        ("", ""),
    ],
)
def test_hosts_are_names_without_ports(authority: str, shown: str) -> None:
    (line,) = lines(request("200", "", "-", host=authority), STATUSES)
    assert f'hostname="{shown}",' in line


def test_failed_attempts_count_at_their_backend_and_retries_at_the_route() -> None:
    page = request("200", "", "-", attempts=3)
    page += counted("outbound_try", ROUTE, BACKEND, "503", "", "-", times=4)
    (requests,) = lines(page, "outbound_http_route_backend_requests_total")
    assert requests.endswith("} 6")
    assert lines(page, ANSWERS) == [
        f'{ANSWERS}{{{KNOWN},{SENT},http_status="200",error=""}} 2',
        f'{ANSWERS}{{{KNOWN},{SENT},http_status="503",error=""}} 4',
    ]
    assert lines(page, "outbound_http_route_retry_") == [
        f'outbound_http_route_retry_requests_total{{{KNOWN},hostname="smiley.faces"}} 4',
        f'outbound_http_route_retry_successes_total{{{KNOWN},hostname="smiley.faces"}} 2',
    ]


def test_retries_that_did_not_help() -> None:
    page = request("503", "", "URX", attempts=3)
    page += counted("outbound_try", ROUTE, BACKEND, "503", "", "-", times=6)
    (answers,) = lines(page, ANSWERS)
    assert answers.endswith("} 6")
    assert [line.split("{")[0] for line in lines(page, "outbound_http_route_retry_")] == [
        "outbound_http_route_retry_limit_exceeded_total",
        "outbound_http_route_retry_requests_total",
    ]


def test_series_that_become_one_are_summed() -> None:
    (line,) = lines(request("503", "", "UF") + request("503", "", "UH"), STATUSES)
    assert line.endswith("} 4")


def test_what_went_where_it_was_going_has_the_routes_backend() -> None:
    fallback = "|default||egress-fallback||||default||egress-fallback"
    page = counted(
        "outbound_http",
        f"{fallback}||default||egress-fallback||",
        "-",
        "200",
        "",
        "-",
        "1",
        "color",
    )
    assert 'backend_kind="default",backend_namespace="",backend_name="egress-fallback"' in page_of(
        page, "outbound_http_route_backend_requests_total"
    )
    (line,) = lines(page, STATUSES)
    assert 'parent_name="egress-fallback",parent_port=""' in line


def test_a_network_as_a_backend_is_at_the_port_that_was_dialled() -> None:
    route = DENY.replace("deny", "allow")
    network = "policy.linkerd.io|EgressNetwork|faces|all||"
    page = counted("outbound_http", f"{route}|{network}", "-", "200", "", "-", "1", "color")
    line = page_of(page, "outbound_http_route_backend_requests_total")
    assert 'backend_name="all",backend_port="8000",backend_section_name=""} 1' in line


def page_of(page: str, family: str) -> str:
    (line,) = lines(page, family)
    return line


def test_no_route_is_an_error_of_nobody() -> None:
    page = counted("outbound_http", "", "", "404", "", "UT", "", "x")
    assert lines(page) == ['outbound_http_errors_total{error="response timeout"} 1']


def test_times_are_seconds_and_requests_have_fewer_buckets() -> None:
    labels = f'labels="{ROUTE};{BACKEND}"'
    name = "envoy_isthmus_outbound_http_ms"
    page = (
        f'{name}_bucket{{{labels},le="25"}} 1\n{name}_bucket{{{labels},le="50"}} 2\n'
        f'{name}_bucket{{{labels},le="+Inf"}} 3\n{name}_sum{{{labels}}} 1500\n'
        f"{name}_count{{{labels}}} 3\n"
    )
    family = "outbound_http_route_request_duration_seconds"
    host = 'hostname=""'
    assert lines(page, family) == [
        f'{family}_bucket{{{KNOWN},{host},le="0.05"}} 2',
        f'{family}_bucket{{{KNOWN},{host},le="+Inf"}} 3',
        f"{family}_sum{{{KNOWN},{host}}} 1.5",
        f"{family}_count{{{KNOWN},{host}}} 3",
    ]
    backend = "outbound_http_route_backend_response_duration_seconds"
    (first, *_) = lines(page, backend)
    assert first == f'{backend}_bucket{{{KNOWN},{SENT},le="0.025"}} 1'


def test_connections_open_and_close() -> None:
    route = f"{PARENT}||default||opaq"
    page = counted("outbound_tcp", route, BACKEND, "TcpUpstreamConnected", "-", IP, "80", "")
    page += counted("outbound_tcp", route, BACKEND, "TcpConnectionEnd", "-", IP, "80", "")
    page += counted("outbound_tcp", route, BACKEND, "TcpConnectionEnd", "UF,URX", IP, "80", "")
    (opened,) = lines(page, "outbound_tcp_route_open_total")
    assert opened.endswith('route_name="opaq",target_ip="10.1.0.9",target_port="80"} 2')
    closed = [line.partition(",error=")[2] for line in lines(page, "outbound_tcp_route_close")]
    assert closed == ['""} 1', '"unexpected"} 1']


def test_connections_by_server_name() -> None:
    route = "policy.linkerd.io|EgressNetwork|faces|all|443|||default||tls-egress-deny"
    page = counted("outbound_tcp", route, "", "TcpConnectionEnd", "UH", IP, "443", "a.example")
    assert [line.split('hostname="')[1] for line in lines(page)] == [
        'a.example",error="forbidden"} 1',
        'a.example"} 1',
    ]


# ------------------------------------------------------------------------------ what comes


def came(*end: str, served: str = "", rule: str = "", client: str = "", limit: str = "") -> str:
    inside = served or f"{WEB}||default|default||"
    inside = f"{inside}|{limit}" if limit else inside
    return counted("inbound_http", inside, *end, "8080", rule, client)


def test_who_let_a_request_in() -> None:
    page = came("200", "", "-", rule="authorizationpolicy/shop/cart", client=CLIENT)
    rule = 'authz_group="policy.linkerd.io",authz_kind="authorizationpolicy",authz_name="cart"'
    end = 'status_code="200",grpc_status_code="",classification="success"'
    came_in = f'direction="inbound",{HERE},{KNOWS},{SERVER},{SERVED}'
    assert lines(page) == [
        f"inbound_http_authz_allow_total{{{HERE},{SERVER},{SERVED},{rule},{KNOWS}}} 1",
        f"request_total{{{came_in}}} 1",
        f"response_total{{{came_in},{end}}} 1",
    ]


def test_where_everybody_is_let_in() -> None:
    served = "|default|all-unauthenticated|8080||default|default|default|all-unauthenticated"
    (line,) = lines(came("200", "", "-", served=served), "inbound_http_authz_allow_total")
    assert 'authz_group="",authz_kind="default",authz_name="all-unauthenticated"' in line
    assert STRANGER in line


@pytest.mark.parametrize("end", [("403", "", "-"), ("200", "7", "-")])
def test_who_is_refused(end: tuple[str, str, str]) -> None:
    (line,) = lines(came(*end), "inbound_http_authz")
    assert line == f"inbound_http_authz_deny_total{{{HERE},{SERVER},{SERVED},{STRANGER}}} 1"


def test_audited_is_allowed() -> None:
    (line,) = lines(came("200", "", "-", rule="~default/audit"), "inbound_http_authz_allow_total")
    assert 'authz_group="",authz_kind="default",authz_name="audit"' in line


def test_requests_that_no_route_is_for() -> None:
    page = counted("inbound_lost", WEB, "8080", CLIENT)
    (line,) = lines(page, "inbound_http_")
    assert line == f"inbound_http_route_not_found_total{{{HERE},{SERVER},{KNOWS}}} 1"


def test_requests_over_the_limit() -> None:
    limit = "policy.linkerd.io|HTTPLocalRateLimitPolicy|slow|total"
    page = came("429", "", "RL", rule="default/localhost", limit=limit)
    (line,) = lines(page, "inbound_http_local_ratelimit_total")
    assert (
        'ratelimit_kind="HTTPLocalRateLimitPolicy",ratelimit_name="slow",ratelimit_scope="total"'
        in line
    )


def test_connections_let_in_and_refused() -> None:
    page = counted("inbound_tcp", f"{WEB}|default|all", "TcpUpstreamConnected", "-", "80", "", "")
    page += counted("inbound_tcp", f"{WEB}|default|all", "TcpConnectionEnd", "-", "80", "", "")
    page += counted("inbound_tcp", f"{WEB}||", "TcpConnectionEnd", "UH", "80", "", CLIENT)
    assert [line.split("{")[0] for line in lines(page)] == [
        "inbound_tcp_authz_allow_total",
        "inbound_tcp_authz_deny_total",
        "tcp_close_total",
        "tcp_close_total",
        "tcp_open_total",
    ]


def test_what_cannot_be_read_breaks_nothing() -> None:
    page = '# HELP x\nnonsense\nenvoy_server_live{} 1\nx{a="\\"} nan nan\nenvoy_bad{} word\n'
    page += counted("outbound_http", "a", "b") + counted("inbound_tcp", "") + counted("nobody", "a")
    assert lines(page) == ["envoy_server_live{} 1"]


def test_types_stand_above_their_series_as_linkerd_writes_them() -> None:
    assert "# TYPE outbound_http_route_request_statuses counter\n" in export(
        request("200", "", "-"), IP
    )


def test_no_value_confuses_a_script_that_splits() -> None:
    odd = 'a,b="c|d=e'
    page = request("200", "", "-", host=odd) + came("200", "", "-", client="a,b", rule="x/y=/z,")
    for line in lines(page):
        for part in line.partition("{")[2].rpartition("}")[0].split(","):
            assert re.fullmatch(r'\w+="[^",=]*"', part), line


def test_a_service_is_few_series() -> None:
    page = request("200", "", "-")
    labels = f'labels="{ROUTE};{BACKEND}"'
    name = "envoy_isthmus_outbound_http_ms"
    for bound in ("25", "50", "100", "250", "500", "1000", "10000", "+Inf"):
        page += f'{name}_bucket{{{labels},le="{bound}"}} 3\n'
    page += f"{name}_sum{{{labels}}} 9\n{name}_count{{{labels}}} 3\n"
    assert len(lines(page)) == 20

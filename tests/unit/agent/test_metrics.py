from __future__ import annotations

import pytest

from isthmus.agent.metrics import export

PARENT = "core|Service|faces|smiley|80||gateway.networking.k8s.io|HTTPRoute|faces|smiley-route"
KNOWN = (
    'parent_group="core",parent_kind="Service",'
    'parent_namespace="faces",parent_name="smiley",parent_port="80",parent_section_name="",'
    'route_group="gateway.networking.k8s.io",route_kind="HTTPRoute",route_namespace="faces",'
    'route_name="smiley-route"'
)


def lines(page: str) -> list[str]:
    return [line for line in export(page).splitlines() if not line.startswith("#")]


def outbound(**labels: str) -> str:
    more = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f'envoy_isthmus_outbound_http{{labels="{PARENT}",{more}}} 2'


def test_packed_labels_are_taken_apart() -> None:
    page = outbound(hostname="smiley.faces", status="200", grpc="-", flags="-")
    assert lines(page) == [
        (
            f"outbound_http_route_request_statuses_total{{{KNOWN},"
            'hostname="smiley.faces",http_status="200",error=""} 2'
        )
    ]


def test_an_error_has_linkerds_name_and_no_status() -> None:
    (line,) = lines(outbound(hostname="x", status="503", grpc="-", flags="UF,URX"))
    assert 'http_status="",error="FAIL_FAST"' in line


CALLS = PARENT.replace("HTTPRoute", "GRPCRoute")


def test_grpc_is_counted_apart_where_it_is_declared() -> None:
    (line,) = lines(outbound(hostname="x", status="200", grpc="14", flags="-"))
    assert line.startswith("outbound_http_route_request_statuses_total{")
    assert 'http_status="200",error=""' in line
    page = outbound(hostname="x", status="200", grpc="14", flags="-").replace(PARENT, CALLS)
    (line,) = lines(page)
    assert line.startswith("outbound_grpc_route_request_statuses_total{")
    assert 'grpc_status="UNAVAILABLE",error=""' in line


def test_denials_count_as_403_whatever_was_spoken() -> None:
    page = outbound(
        hostname="color:8000", status="200", grpc="9", flags="-", details="direct_response"
    )
    (line,) = lines(page)
    assert 'hostname="color",http_status="403",error=""' in line


@pytest.mark.parametrize(
    ("authority", "shown"),
    [
        ("color:8000", "color"),
        ("Color.", "color"),
        ("10.0.0.1:80", ""),
        ("[fd00::1]:80", ""),
        ("a,b=c", ""),
        ("-", ""),
    ],
)
def test_hosts_are_names_without_ports(authority: str, shown: str) -> None:
    (line,) = lines(outbound(hostname=authority, status="200", grpc="-", flags="-"))
    assert f'hostname="{shown}",' in line


def test_series_that_become_one_are_summed() -> None:
    one = outbound(hostname="x", status="503", grpc="-", flags="UF")
    other = outbound(hostname="x", status="503", grpc="-", flags="UH")
    (line,) = lines(f"{one}\n{other}\n")
    assert line.endswith("} 4")


def test_times_are_seconds() -> None:
    name = "envoy_isthmus_outbound_http_ms"
    found = lines(
        f'{name}_bucket{{labels="{PARENT}",le="25"}} 1\n'
        f'{name}_bucket{{labels="{PARENT}",le="+Inf"}} 3\n'
        f'{name}_sum{{labels="{PARENT}"}} 1500\n'
        f'{name}_count{{labels="{PARENT}"}} 3\n'
    )
    family = "outbound_http_route_request_duration_seconds"
    assert found == [
        f'{family}_bucket{{{KNOWN},le="0.025"}} 1',
        f'{family}_bucket{{{KNOWN},le="+Inf"}} 3',
        f"{family}_sum{{{KNOWN}}} 1.5",
        f"{family}_count{{{KNOWN}}} 3",
    ]


def test_inbound_says_who_called_and_how_it_ended() -> None:
    page = (
        'envoy_isthmus_inbound_http{labels="|default|all-unauthenticated||||",status="500",'
        'grpc="-",client="web.shop.serviceaccount.identity.linkerd.cluster.local",authz="-"} 1'
    )
    response, request = sorted(lines(page), reverse=True)
    assert 'tls="true",client_id="web.shop.' in request
    assert 'status_code="500",grpc_status_code="",classification="failure"' in response


def test_plaintext_has_no_client() -> None:
    page = 'envoy_isthmus_inbound_tcp{labels="a|b|c|80",port="80",client="-"} 1'
    (line,) = lines(page)
    assert 'direction="inbound",tls="no_identity",client_id=""' in line


def test_what_cannot_be_read_breaks_nothing() -> None:
    page = '# HELP x\nnonsense\nenvoy_server_live{} 1\nx{a="\\"} nan nan\nenvoy_bad{} word\n'
    assert lines(page) == ["server_live{} 1"]


def test_a_hostile_host_name_is_none() -> None:
    page = outbound(hostname='a\\"} 1\\nevil{b=\\"', status="200", grpc="-", flags="-")
    (line,) = lines(page)
    assert 'hostname="",' in line

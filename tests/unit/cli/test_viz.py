"""From pages of metrics to tables."""

from __future__ import annotations

import json
import math

import pytest

from isthmus.cli.commands.viz_asking import Counted
from isthmus.cli.commands.viz_stat import told_inbound, told_outbound
from isthmus.cli.viz.edges import Edge, Member, documents, edges, rows, sends
from isthmus.cli.viz.tables import table
from isthmus.cli.viz.window import Change, Histogram, changes, duration
from isthmus.errors import UserFault

ROUTE = (
    'parent_group="core",parent_kind="Service",parent_namespace="faces",parent_name="{service}",'
    'parent_port="80",parent_section_name="",route_group="",route_kind="{kind}",'
    'route_namespace="",route_name="{route}"'
)
SMILEY = ROUTE.format(service="smiley", kind="default", route="http")
COLOR = ROUTE.format(service="color", kind="GRPCRoute", route="split")
TIMES = "_route_backend_response_duration_seconds_bucket"


def to(name: str) -> str:
    return (
        'backend_group="core",backend_kind="Service",backend_namespace="faces",'
        f'backend_name="{name}",backend_port="80",backend_section_name=""'
    )


def page(*lines: str) -> str:
    return "# AGE 10.0\n" + "".join(f"{line}\n" for line in lines)


def answers(kind: str, way: str, status: str, count: int, error: str = "") -> str:
    name = "grpc_status" if kind == "grpc" else "http_status"
    return f'outbound_{kind}_route_{way},{name}="{status}",error="{error}"}} {count}'


def requests(kind: str, route: str, status: str, count: int, error: str = "") -> str:
    return answers(kind, f"request_statuses_total{{{route}", status, count, error)


def attempts(kind: str, route: str, backend: str, status: str, count: int) -> str:
    way = f"backend_response_statuses_total{{{route},{to(backend)}"
    return answers(kind, way, status, count)


NOW = page(
    requests("http", SMILEY, "200", 90),
    requests("http", SMILEY, "503", 5),
    requests("http", SMILEY, "", 5, "REQUEST_TIMEOUT"),
    attempts("http", SMILEY, "smiley", "200", 90),
    attempts("http", SMILEY, "smiley", "503", 30),
    f"outbound_http_route_retry_requests_total{{{SMILEY}}} 25",
    f'outbound_http{TIMES}{{{SMILEY},{to("smiley")},le="0.01"}} 50',
    f'outbound_http{TIMES}{{{SMILEY},{to("smiley")},le="0.02"}} 100',
    f'outbound_http{TIMES}{{{SMILEY},{to("smiley")},le="+Inf"}} 100',
    requests("grpc", COLOR, "OK", 40),
    attempts("grpc", COLOR, "color", "OK", 20),
    attempts("grpc", COLOR, "color2", "OK", 20),
)


def face(now: str = NOW, before: str = page()) -> list[Counted]:
    return [Counted("face", list(changes(now, before)))]


def test_routes_stand_above_their_backends() -> None:
    told = told_outbound(face(), "table").splitlines()
    assert [line.split() for line in told[1:]] == [
        ["face", "color:80", "split", "GRPCRoute", "100.00%", "4.00", "-", "-", "-", "0.00%",
         "0.00%"],
        ["├──────────────────►", "color:80", "100.00%", "2.00", "-", "-", "-", "0.00%"],
        ["└──────────────────►", "color2:80", "100.00%", "2.00", "-", "-", "-", "0.00%"],
        ["face", "smiley:80", "[default]", "90.00%", "10.00", "10ms", "19ms", "20ms", "5.00%",
         "20.00%"],
        ["└──────────────────►", "smiley:80", "75.00%", "12.00", "10ms", "19ms", "20ms", "0.00%"],
    ]  # fmt: skip


def test_columns_line_up_and_end_in_blanks() -> None:
    rows = [
        ("face", "smiley-federated:80", "[default]", "", "", "92.31%"),
        ("", "", "└─", "─►", "smiley-federated:80", "89.10%"),
        ("face", "color:80", "center-split", "GRPCRoute", "", "100.00%"),
    ]
    header = ("NAME", "SERVICE", "ROUTE", "TYPE", "BACKEND", "SUCCESS")
    assert table(header, rows, 5) == (
        "NAME  SERVICE              ROUTE         TYPE       BACKEND              SUCCESS  \n"
        "face  smiley-federated:80  [default]                                      92.31%  \n"
        "                           └─────────────────────►  smiley-federated:80   89.10%  \n"
        "face  color:80             center-split  GRPCRoute                       100.00%  \n"
    )


def test_for_programs() -> None:
    color, first, second, smiley, _ = json.loads(told_outbound(face(), "json"))
    assert (color["routeType"], color["latencyMsP50"]) == ("GRPCRoute", None)
    assert (first["backend"], second["backendPort"]) == ("color", "80")
    assert "retryRate" not in first
    assert smiley == {
        "name": "face", "service": "smiley", "port": "80", "route": "[default]", "routeType": "",
        "successRate": 0.9, "rps": 10.0, "latencyMsP50": 10.0, "latencyMsP95": pytest.approx(19),
        "latencyMsP99": pytest.approx(19.8), "timeoutRate": 0.05, "retryRate": 0.2,
    }  # fmt: skip


def test_only_what_grew_counts() -> None:
    assert told_outbound(face(NOW, NOW), "json") == "[]\n"
    assert told_outbound(face(NOW, NOW), "table").startswith("NAME  SERVICE")
    (one,) = changes(page("a_total{} 3"), page("a_total{} 5", "b_total{} 1"))
    assert one == Change("a_total", {}, 3.0, 0.3)  # it began anew


def test_servers() -> None:
    server = 'srv_group="",srv_kind="default",srv_name="all-unauthenticated",srv_port="8000"'
    door = f'direction="inbound",{server},route_group="",route_kind="default",route_name="default"'
    other = (
        'direction="inbound",srv_group="policy.linkerd.io",srv_kind="server",srv_name="web",'
        'srv_port="80",route_group="policy.linkerd.io",route_kind="HTTPRoute",route_name="r"'
    )
    now = page(
        f'response_total{{{door},classification="success"}} 3',
        f'response_total{{{door},classification="failure"}} 1',
        f'response_total{{{other},classification="success"}} 1',
    )
    told = told_inbound([Counted("face", list(changes(now, page())))], "table").splitlines()
    assert [line.split() for line in told[1:]] == [
        ["face", "[default]:8000", "[default]", "75.00%", "0.40", "-", "-", "-"],
        ["face", "web:80", "r", "HTTPRoute", "100.00%", "0.10", "-", "-", "-"],
    ]


def test_quantiles_lie_between_bounds() -> None:
    made = Histogram()
    assert math.isnan(made.quantile(0.5))
    for bound, count in (("0.1", 10.0), ("0.2", 10.0), ("+Inf", 20.0)):
        made.add(bound, count)
    assert made.quantile(0.25) == pytest.approx(50)
    assert made.quantile(0.99) == pytest.approx(200)  # no more is known


@pytest.mark.parametrize("text", ["", "1", "0s", "11m", "-1s", "1d", "m", "1.2.3s"])
def test_windows_that_are_none(text: str) -> None:
    with pytest.raises(UserFault):
        duration(text)
    assert (duration("1m"), duration("1.5s"), duration("500ms")) == (60, 1.5, 0.5)


# ---------------------------------------------------------------------------------- edges

WEB = Member("shop", "web", "web")
IDENTITY = "me.shop.serviceaccount.identity.linkerd.cluster.local"


def call(name: str = "request_total", **labels: str) -> Change:
    return Change(name, {"direction": "inbound", **labels}, 1, 1)


def test_clients_are_known_by_their_identity() -> None:
    client = call(client_id=IDENTITY, tls="true")
    alone = [Member("shop", "till", "me")]
    (edge,) = edges(WEB, [client], alone)
    assert edge == Edge("till", "web", "shop", "shop", "me.shop", "web.shop", "")
    (edge,) = edges(WEB, [client], [*alone, Member("shop", "cart", "me")])
    assert edge.source == "me"
    assert rows([edge], wide=True) == [("me", "web", "shop", "shop", "me.shop", "web.shop", "√")]


def test_plaintext_and_probes() -> None:
    plain = call("tcp_open_total", tls="no_identity")
    probe = call(route_name="probe")
    outside = call(client_id="spiffe://other/thing")
    found = edges(WEB, [plain, probe, outside], [])
    assert sorted(each.reason for each in found) == ["", "Not Provided By Remote"]
    assert documents(edges(WEB, [plain], [])) == [
        {"src": "-", "src_namespace": "-", "dst": "web", "dst_namespace": "shop",
         "client_id": "", "server_id": "", "no_tls_reason": "Not Provided By Remote"},
    ]  # fmt: skip


def test_who_calls_nobody_is_no_client() -> None:
    assert not sends([call()])
    assert sends([Change("outbound_tcp_route_open_total", {}, 1, 1)])

"""Write docs/examples/grafana.json, the dashboard: panels are lines here, and JSON there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = 'cluster=~"$cluster",namespace=~"$namespace",deployment=~"$deployment"'
BOTH = ("http", "grpc")
PARENT = "parent_name,route_name"
CLIENT = "srv_name,client_id"

Target = tuple[str, str]
"""An expression, and what its lines are called."""


def rate(name: str, by: str, which: str = "") -> str:
    """How much a counter grows a second, by labels besides cluster and deployment."""
    inside = f"{HERE},{which}" if which else HERE
    return f"sum(rate({name}{{{inside}}}[$__rate_interval])) by (cluster,deployment,{by})"


def late(name: str, by: str) -> str:
    """What 95 of 100 take at most."""
    return f"histogram_quantile(0.95, {rate(f'{name}_bucket', f'le,{by}')})"


def named(*labels: str) -> str:
    """A line's name: the deployment, and some labels."""
    return " ".join(f"{{{{{each}}}}}" for each in ("cluster", "deployment", *labels))


def out(what: str, by: str, which: str = "") -> list[Target]:
    """A counter of routes, for HTTP and for gRPC."""
    labels = by.split(",")
    return [
        (rate(f"outbound_{kind}_route_{what}_total", by, which), named(*labels)) for kind in BOTH
    ]


def success() -> list[Target]:
    """The share of requests that ended well."""
    good = {"http": 'error="",http_status!~"5.."', "grpc": 'error="",grpc_status="OK"'}
    names = {kind: f"outbound_{kind}_route_request_statuses_total" for kind in BOTH}
    return [
        (f"{rate(name, PARENT, good[kind])} / {rate(name, PARENT)}", named(*PARENT.split(",")))
        for kind, name in names.items()
    ]


def failures() -> list[Target]:
    """Attempts that ended badly."""
    bad = {"http": 'http_status=~"5..|"', "grpc": 'grpc_status!="OK"'}
    name = "outbound_{}_route_backend_response_statuses_total"
    return [
        (rate(name.format(kind), "backend_name", bad[kind]), named("backend_name")) for kind in BOTH
    ]


def latency(name: str, by: str) -> Target:
    """95 of 100."""
    return late(name, by), named(by)


def inbound(what: str, by: str, which: str = "") -> Target:
    """A counter of what comes."""
    return rate(f"{what}_total", by, which), named(*by.split(","))


OUT_TIMES = [
    latency(f"outbound_{kind}_route_backend_response_duration_seconds", "backend_name")
    for kind in BOTH
]
LEAVES = 'parent_kind=~"EgressNetwork|default"'
SILENT = 'isthmus_link_silent_seconds{cluster=~"$cluster"}'

PANELS: list[tuple[str, str, list[Target]]] = [
    ("Requests out", "reqps", out("request_statuses", PARENT)),
    ("Success out", "percentunit", success()),
    ("Latency out, 95 of 100", "s", OUT_TIMES),
    ("Backends that fail", "reqps", failures()),
    ("Retries", "reqps", out("retry_requests", PARENT)),
    ("What leaves the cluster", "reqps", out("request_statuses", f"{PARENT},hostname", LEAVES)),
    ("Requests in", "reqps", [inbound("response", "srv_name,classification")]),
    ("Latency in, 95 of 100", "s", [latency("inbound_http_request_duration_seconds", "srv_name")]),
    ("Let in", "reqps", [inbound("inbound_http_authz_allow", "authz_name,client_id")]),
    (
        "Refused",
        "reqps",
        [
            inbound("inbound_http_authz_deny", CLIENT),
            inbound("inbound_tcp_authz_deny", CLIENT),
            inbound("inbound_http_local_ratelimit", "ratelimit_name,client_id"),
        ],
    ),
    (
        "Connections out",
        "cps",
        [
            inbound("outbound_tcp_route_open", PARENT),
            inbound("outbound_tls_route_open", "parent_name,hostname"),
        ],
    ),
    ("Silence of linked clusters", "s", [(SILENT, "{{cluster}} {{exported_cluster}}")]),
]
COLUMNS, HEIGHT = 2, 8


def panel(number: int, title: str, unit: str, targets: list[Target]) -> dict[str, Any]:
    """A graph."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    width = 24 // COLUMNS
    where = {"x": number % COLUMNS * width, "y": number // COLUMNS * HEIGHT}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "gridPos": {**where, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": source, "expr": expr, "legendFormat": text}
            for at, (expr, text) in enumerate(targets)
        ],
    }


def variable(name: str, query: str) -> dict[str, Any]:
    """A choice of several values, all of them at first."""
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard() -> dict[str, Any]:
    """All of it."""
    up = 'envoy_server_live{cluster=~"$cluster"'
    return {
        "title": "Isthmus",
        "uid": "isthmus",
        "schemaVersion": 39,
        "tags": ["isthmus", "linkerd"],
        "time": {"from": "now-30m", "to": "now"},
        "refresh": "10s",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                variable("cluster", "label_values(envoy_server_live, cluster)"),
                variable("namespace", f"label_values({up}}}, namespace)"),
                variable("deployment", f'label_values({up},namespace=~"$namespace"}}, deployment)'),
            ]
        },
        "panels": [panel(number, *each) for number, each in enumerate(PANELS)],
    }


def main() -> None:
    """Write it."""
    path = Path(__file__).parent.parent / "docs" / "examples" / "grafana.json"
    path.write_text(json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

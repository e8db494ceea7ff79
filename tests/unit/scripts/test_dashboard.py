"""The scrape configuration and the dashboard speak of what is there."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.app.links import report
from isthmus.serve.kube.yaml_body import strict_yaml
from tests.support.metricpages import series

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
SCRAPED = {"cluster", "namespace", "pod", "deployment", "exported_cluster", "le"}
"""Labels that are none of ours: a Prometheus adds them."""

POD = {
    "__meta_kubernetes_namespace": "faces",
    "__meta_kubernetes_pod_name": "face-1",
    "__meta_kubernetes_pod_container_name": "linkerd-proxy",
    "__meta_kubernetes_pod_container_port_name": "linkerd-admin",
    "__meta_kubernetes_pod_label_linkerd_io_proxy_deployment": "face",
    "__meta_kubernetes_pod_label_linkerd_io_proxy_job": "once",
    "__meta_kubernetes_pod_label_linkerd_io_control_plane_ns": "linkerd",
    "__meta_kubernetes_pod_label_service": "face",
}


def dashboard() -> Any:  # noqa: ANN401 - JSON
    return json.loads((EXAMPLES / "grafana.json").read_text())


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
            yield target["legendFormat"].replace("{{", "by (").replace("}}", ")")


def test_the_dashboard_is_what_its_script_writes() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "dashboard.py"))["dashboard"]()
    assert dashboard() == made


def test_the_dashboard_asks_for_series_and_labels_that_there_are() -> None:
    known = {**series(), "isthmus_link_silent_seconds": {"cluster"}}
    asked = 0
    for expression in expressions():
        for name, selectors in re.findall(r"(\w+)\{([^}]*)\}", expression):
            asked += 1
            assert name in known, expression
            labels = set(re.findall(r'(\w+)(?:=~|!~|!=|=)"', selectors))
            assert labels <= known[name] | SCRAPED, expression
        for some in re.findall(r"by \(([^)]*)\)", expression):
            assert set(some.split(",")) <= set().union(*known.values()) | SCRAPED, expression
    assert asked > 20
    assert "isthmus_link_silent_seconds" in Path(report.__file__).read_text()


def test_the_dashboard_tells_clusters_apart() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert variables["cluster"]["query"]["query"] == "label_values(envoy_server_live, cluster)"
    assert "envoy_server_live" in series()
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            assert 'cluster=~"$cluster"' in target["expr"]


def relabelled(labels: Mapping[str, str], rules: list[dict[str, Any]]) -> dict[str, str] | None:
    """What Prometheus makes of a target's labels; None if it does not keep it."""
    found = dict(labels)
    for rule in rules:
        regex = re.compile(rule.get("regex", "(.*)"))
        joined = ";".join(found.get(each, "") for each in rule.get("source_labels", ()))
        match rule.get("action", "replace"):
            case "keep":
                if not regex.fullmatch(joined):
                    return None
            case "replace":
                target = rule.get("replacement", "$1").replace("$1", joined)
                found[rule["target_label"]] = target
            case "labeldrop":
                found = {key: value for key, value in found.items() if not regex.fullmatch(key)}
            case "labelmap":
                for key in list(found):
                    if matched := regex.fullmatch(key):
                        found[matched[1]] = found[key]
    return {key: value for key, value in found.items() if not key.startswith("__")}


def test_the_scrape_configuration_gives_the_labels_that_dashboards_use() -> None:
    jobs = strict_yaml((EXAMPLES / "prometheus.yaml").read_bytes())[0]["scrape_configs"]
    proxies, servers = jobs
    assert proxies["job_name"] == "linkerd-proxy"
    assert relabelled(POD, proxies["relabel_configs"]) == {
        "cluster": "east",
        "namespace": "faces",
        "pod": "face-1",
        "deployment": "face",
        "k8s_job": "once",
        "control_plane_ns": "linkerd",
    }
    other = {**POD, "__meta_kubernetes_pod_container_name": "face"}
    assert relabelled(other, proxies["relabel_configs"]) is None
    assert servers["static_configs"][0]["labels"] == {"cluster": "east"}


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_names_and_labels_are_linkerds(kind: str) -> None:
    known = series()
    parent = {
        "parent_group", "parent_kind", "parent_namespace", "parent_name", "parent_port",
        "parent_section_name", "route_group", "route_kind", "route_namespace", "route_name",
    }  # fmt: skip
    backend = {
        f"backend_{each}" for each in ("group", "kind", "namespace", "name", "port", "section_name")
    }
    status, family = f"{kind}_status", f"outbound_{kind}_route"
    end = {status, "error"}
    assert known[f"{family}_request_statuses_total"] == parent | {"hostname"} | end
    assert known[f"{family}_request_duration_seconds_count"] == parent | {"hostname"}
    assert known[f"{family}_backend_requests_total"] == parent | backend
    assert known[f"{family}_backend_response_statuses_total"] == parent | backend | end
    assert known[f"{family}_backend_response_duration_seconds_sum"] == parent | backend
    for each in ("requests", "successes", "limit_exceeded"):
        assert known[f"{family}_retry_{each}_total"] == parent | {"hostname"}

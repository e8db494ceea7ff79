"""From an Envoy's page to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.agent.metrics import inbound, outbound
from isthmus.agent.metrics.page import Page, Sample, read

PREFIX: Final = "envoy_"
OURS: Final = "isthmus_"
PARTS: Final = ("_bucket", "_sum", "_count")

OWN: Final[Mapping[str, str]] = {
    "cluster_manager_active_clusters": "gauge",
    "cluster_manager_cds_update_rejected": "counter",
    "listener_manager_lds_update_rejected": "counter",
    "listener_manager_total_listeners_active": "gauge",
    "server_days_until_first_cert_expiring": "gauge",
    "server_live": "gauge",
    "server_memory_allocated": "gauge",
    "server_memory_heap_size": "gauge",
    "server_total_connections": "gauge",
    "server_uptime": "gauge",
}
"""What is told of the Envoy itself, with `envoy_` in front."""


def export(page: str, ip: str, *, fine: bool = False) -> str:
    """What port 4191 tells of the workload at `ip` whose Envoy tells `page`.

    `fine`: with all buckets of histograms; else with Linkerd's.
    """
    made = Page(fine=fine)
    for sample in read(page):
        name = sample.name.removeprefix(PREFIX)
        if name.startswith(OURS):
            _ours(made, name.removeprefix(OURS), sample, ip)
        elif name in OWN:
            made.add(f"{PREFIX}{name}", OWN[name], (), sample.value)
    return made.text


def _ours(page: Page, name: str, sample: Sample, ip: str) -> None:
    labels = dict(sample.labels)
    groups = labels.get("labels", "").split(";")
    counter, timed, part = name.partition("_ms")
    if timed:
        if part in PARTS:
            _timed(page, counter, part, groups, labels.get("le", ""), sample.value)
        return
    match counter:
        case "outbound_http":
            outbound.request(page, groups, sample.value)
        case "outbound_try":
            outbound.attempt(page, groups, sample.value)
        case "outbound_tcp":
            outbound.connection(page, groups, sample.value)
        case "inbound_http":
            inbound.request(page, groups, sample.value, ip)
        case "inbound_lost":
            inbound.lost(page, groups, sample.value, ip)
        case "inbound_tcp":
            inbound.connection(page, groups, sample.value, ip)


def _timed(
    page: Page, counter: str, part: str, groups: list[str], bound: str, value: float
) -> None:
    if counter == "outbound_http":
        outbound.duration(page, part, groups, bound, value)
    elif counter == "inbound_http" and groups[0]:
        inbound.duration(page, part, groups[0], bound, value)

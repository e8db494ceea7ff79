"""What leaves: requests by route, attempts by backend, connections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from isthmus.agent.metrics import words
from isthmus.agent.metrics.page import Labels, Page

REQUESTS: Final = frozenset({"0.05", "0.5", "1.0", "10.0", "+Inf"})
BACKENDS: Final = REQUESTS | {"0.025", "0.1", "0.25"}
"""Upper bounds of buckets in seconds, of whole requests and of backends."""

FAILED: Final = 400
"""The least status of an attempt that is counted by itself."""

CONNECTED: Final = "TcpUpstreamConnected"


class _Way(NamedTuple):
    """A route, and the backend that was taken."""

    route: Labels
    backend: Labels
    sent: bool
    """Whether it was sent anywhere: else the proxy answered by itself."""

    @property
    def grpc(self) -> bool:
        """Whether the port is declared to speak gRPC: what else speaks it counts as HTTP."""
        said = dict(self.route)
        name = said["route_name"]
        return said["route_kind"] == "GRPCRoute" or name.startswith("grpc-egress-")

    @property
    def family(self) -> str:
        """How the names of its metrics begin."""
        return f"outbound_{'grpc' if self.grpc else 'http'}_route"


@lru_cache(maxsize=4096)
def _way(route: str, cluster: str) -> _Way:
    labels = words.labelled((*words.PARENT, *words.ROUTE), route)
    original = "|".join(route.split("|")[len(labels) :])
    backend = cluster if "|" in cluster else _at(original, dict(labels)["parent_port"])
    return _Way(labels, words.labelled(words.BACKEND, backend), bool(cluster))


def _at(original: str, port: str) -> str:
    """An EgressNetwork as a backend is at the port that was dialled."""
    group, kind, namespace, name, said, *rest = [*original.split("|"), "", "", "", "", ""]
    if kind != "EgressNetwork" or said:
        return original
    return "|".join((group, kind, namespace, name, port, *rest))


class _End(NamedTuple):
    """How a request or an attempt ended: Linkerd's label of its status, and the error."""

    status: tuple[str, str]
    error: str
    failed: bool

    @property
    def labels(self) -> Labels:
        """As they are told."""
        return (self.status, ("error", self.error))


def _end(way: _Way, code: str, grpc: str, flags: str) -> _End:
    error = words.error(flags)
    code = words.status(code)
    if not way.sent and grpc in words.LOCAL:
        code, local = words.LOCAL[grpc], True
    else:
        local = False
    bad = int(code or 0) >= FAILED or (grpc not in ("", "-", "0") and not local)
    if way.grpc:
        name = "UNKNOWN" if error else words.GRPC.get(grpc, "UNKNOWN")
        return _End(("grpc_status", name), error, bool(error) or name != "OK")
    if error and bad:
        code = ""  # it is the proxy's own
    return _End(("http_status", code), error, bool(error) or bad)


def request(page: Page, groups: Sequence[str], value: float) -> None:
    """Requests that ended, with all their attempts."""
    if len(groups) < 7:
        return
    route, cluster, code, grpc, flags, attempts, *rest = groups
    if error := words.error(flags):
        page.count("outbound_http_errors", (("error", _fault(error)),), value)
    if not route:
        return
    way = _way(route, cluster)
    end = _end(way, code, grpc, flags)
    hosted = (*way.route, ("hostname", words.host(";".join(rest))))
    page.count(f"{way.family}_request_statuses", (*hosted, *end.labels), value)
    tries = int(attempts) if attempts.isdecimal() else 0
    if tries > 1 or "URX" in flags:
        page.count(f"{way.family}_retry_requests", hosted, value * max(tries - 1, 0))
        how = "limit_exceeded" if "URX" in flags else "successes"
        if how == "limit_exceeded" or not end.error:
            page.count(f"{way.family}_retry_{how}", hosted, value)
    if not way.sent:
        return
    backend = (*way.route, *way.backend)
    page.count(f"{way.family}_backend_requests", backend, value * max(tries, 1))
    if not end.failed:
        page.count(f"{way.family}_backend_response_statuses", (*backend, *end.labels), value)


def _fault(error: str) -> str:
    return words.FAULTS.get(error, "unexpected")


def attempt(page: Page, groups: Sequence[str], value: float) -> None:
    """Attempts that failed."""
    if len(groups) < 5 or not groups[0]:
        return
    route, cluster, code, grpc, flags = groups[:5]
    way = _way(route, cluster)
    end = _end(way._replace(sent=True), code, grpc, flags)
    labels = (*way.route, *way.backend, *end.labels)
    page.count(f"{way.family}_backend_response_statuses", labels, value)


def duration(page: Page, part: str, groups: Sequence[str], bound: str, value: float) -> None:
    """A part of a histogram: of requests, and of the backends where they ended."""
    if len(groups) < 2 or not groups[0]:
        return
    route, cluster = groups[:2]
    way = _way(route, cluster)
    le = (("le", words.seconds(bound)),) if part == "_bucket" else ()
    value = value / 1000 if part == "_sum" else value
    if page.fine or not le or le[0][1] in REQUESTS:
        labels = (*way.route, ("hostname", ""), *le)  # one histogram for each would be many
        page.add(f"{way.family}_request_duration_seconds", "histogram", labels, value, part)
    if way.sent and (page.fine or not le or le[0][1] in BACKENDS):
        labels = (*way.route, *way.backend, *le)
        family = f"{way.family}_backend_response_duration_seconds"
        page.add(family, "histogram", labels, value, part)


def connection(page: Page, groups: Sequence[str], value: float) -> None:
    """Connections that were made, or ended."""
    if len(groups) < 7 or not groups[0]:
        return
    route, cluster, what, flags, ip, port, *rest = groups
    way = _way(route, cluster)
    said = dict(way.route)
    by_name = said["route_kind"] == "TLSRoute" or said["route_name"].startswith("tls-egress-")
    if by_name:
        labels: Labels = (*way.route, ("hostname", words.host(";".join(rest))))
    else:
        labels = (*way.route, ("target_ip", words.plain(ip)), ("target_port", port))
    family = f"outbound_{'tls' if by_name else 'tcp'}_route"
    error = _closed(said["route_name"], way, flags)
    if what == CONNECTED or error:
        page.count(f"{family}_open", labels, value)
    if what != CONNECTED:
        page.count(f"{family}_close", (*labels, ("error", error)), value)


def _closed(route: str, way: _Way, flags: str) -> str:
    """Why there was no connection; "" where there was."""
    if not way.sent:
        return "forbidden" if route.endswith("-deny") else "invalid_backend"
    return "unexpected" if words.error(flags) == "FAIL_FAST" else ""

"""`viz stat-outbound`: what leaves workloads, by service and route, and where it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from isthmus.cli.viz.tables import ARROW, BRANCH, LAST, at_port, millis, percent
from isthmus.cli.viz.window import Change, Histogram, rounded, share

HEADER: Final = (
    "NAME", "SERVICE", "ROUTE", "TYPE", "BACKEND", "SUCCESS", "RPS", "LATENCY_P50", "LATENCY_P95",
    "LATENCY_P99", "TIMEOUTS", "RETRIES",
)  # fmt: skip
LEFT: Final = 5
TIMEOUTS: Final = ("RESPONSE_HEADERS_TIMEOUT", "REQUEST_TIMEOUT")


class Way(NamedTuple):
    """A route of a service."""

    service: str
    port: str
    kind: str
    route: str


class Place(NamedTuple):
    """A backend."""

    name: str
    port: str


class Stat:
    """What was counted."""

    def __init__(self) -> None:
        self.success = self.failure = self.timeouts = self.retries = self.rate = 0.0
        self.latency = Histogram()

    @property
    def total(self) -> float:
        """Requests that ended."""
        return self.success + self.failure

    def ended(self, one: Change) -> None:
        """Count requests, or attempts, that ended so."""
        good = succeeded(one)
        self.success += one.grown if good else 0.0
        self.failure += 0.0 if good else one.grown
        self.timeouts += one.grown if one.labels.get("error") in TIMEOUTS else 0.0
        self.rate += one.rate

    def figures(self) -> dict[str, float]:
        """In the order of the columns."""
        return {
            "successRate": share(self.success, self.total),
            "rps": self.rate,
            "latencyMsP50": self.latency.quantile(0.5),
            "latencyMsP95": self.latency.quantile(0.95),
            "latencyMsP99": self.latency.quantile(0.99),
            "timeoutRate": share(self.timeouts, self.total),
        }

    @property
    def retried(self) -> float:
        """The share of requests that were tries after the first."""
        return share(self.retries, self.total + self.retries)


def succeeded(one: Change) -> bool:
    """Without an error, and with a status that says so."""
    if one.labels.get("error"):
        return False
    if "grpc_status" in one.labels:
        return one.labels["grpc_status"] == "OK"
    return not one.labels.get("http_status", "").startswith("5")


class Route:
    """A route and its backends."""

    def __init__(self) -> None:
        self.own = Stat()
        self.backends: dict[Place, Stat] = {}

    def backend(self, one: Change) -> Stat:
        """The backend that a series is of."""
        place = Place(one.labels["backend_name"], one.labels["backend_port"])
        return self.backends.setdefault(place, Stat())


def routes(found: Iterable[Change]) -> dict[Way, Route]:
    """The routes of one workload that had requests."""
    made: dict[Way, Route] = {}
    for one in found:
        if one.name.startswith("outbound_") and "parent_name" in one.labels:
            said = one.labels
            way = Way(
                said["parent_name"], said["parent_port"], said["route_kind"], said["route_name"]
            )
            _add(made.setdefault(way, Route()), one)
    return {way: made[way] for way in sorted(made) if made[way].own.total}


def _add(route: Route, one: Change) -> None:
    name = one.name
    if name.endswith("_route_request_statuses_total"):
        route.own.ended(one)
    elif name.endswith("_route_retry_requests_total"):
        route.own.retries += one.grown
    elif name.endswith("_route_backend_requests_total"):
        route.backend(one)
    elif name.endswith("_route_backend_response_statuses_total"):
        route.backend(one).ended(one)
    elif name.endswith("_route_backend_response_duration_seconds_bucket"):
        route.own.latency.add(one.labels["le"], one.rate)
        route.backend(one).latency.add(one.labels["le"], one.rate)


# -------------------------------------------------------------------------------- telling


def rows(name: str, found: dict[Way, Route]) -> Iterator[tuple[str, ...]]:
    """Rows of a table."""
    for way, route in found.items():
        default = way.kind == "default"
        shown = f"[{way.kind}]" if default else way.route
        service = at_port(way.service, way.port)
        head = (name, service, shown, "" if default else way.kind, "")
        yield (*head, *_cells(route.own), percent(route.own.retried))
        places = sorted(route.backends)
        for place in places:
            branch = LAST if place == places[-1] else BRANCH
            cells = _cells(route.backends[place])
            yield ("", "", branch, ARROW, at_port(*place), *cells, "")


def _cells(stat: Stat) -> tuple[str, ...]:
    said = stat.figures()
    times = (said[f"latencyMsP{at}"] for at in (50, 95, 99))
    return (
        percent(said["successRate"]),
        f"{said['rps']:.2f}",
        *(millis(each) for each in times),
        percent(said["timeoutRate"]),
    )


def documents(name: str, found: dict[Way, Route]) -> Iterator[dict[str, Any]]:
    """The same for programs."""
    for way, route in found.items():
        default = way.kind == "default"
        head = {
            "name": name,
            "service": way.service,
            "port": way.port,
            "route": "[default]" if default else way.route,
            "routeType": "" if default else way.kind,
        }
        yield {**head, **_numbers(route.own), "retryRate": rounded(route.own.retried)}
        for place in sorted(route.backends):
            backend = {"backend": place.name, "backendPort": place.port}
            yield {**head, **backend, **_numbers(route.backends[place])}


def _numbers(stat: Stat) -> dict[str, float | None]:
    return {key: rounded(value) for key, value in stat.figures().items()}

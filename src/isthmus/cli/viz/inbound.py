"""`viz stat-inbound`: what comes to workloads, by server and route."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from isthmus.cli.viz.tables import at_port, millis, percent
from isthmus.cli.viz.window import Change, Histogram, rounded, share

HEADER: Final = (
    "NAME", "SERVER", "ROUTE", "TYPE", "SUCCESS", "RPS", "LATENCY_P50", "LATENCY_P95",
    "LATENCY_P99",
)  # fmt: skip
LEFT: Final = 4
TIMES: Final = "inbound_http_request_duration_seconds_bucket"


class Door(NamedTuple):
    """A route of a server. `server` is `[default]` where no Server describes the port."""

    server: str
    port: str
    kind: str
    route: str


class Stat:
    """What was counted."""

    def __init__(self) -> None:
        self.success = self.total = self.rate = 0.0
        self.latency = Histogram()

    def figures(self) -> dict[str, float]:
        """In the order of the columns. The first name is spelt as linkerd spells it."""
        return {
            "successesRate": share(self.success, self.total),
            "rps": self.rate,
            "latencyMsP50": self.latency.quantile(0.5),
            "latencyMsP95": self.latency.quantile(0.95),
            "latencyMsP99": self.latency.quantile(0.99),
        }


def doors(found: Iterable[Change]) -> dict[Door, Stat]:
    """The servers of one workload that had requests."""
    made: dict[Door, Stat] = {}
    for one in found:
        if one.name == "response_total" and one.labels.get("direction") == "inbound":
            stat = made.setdefault(_door(one), Stat())
            good = one.labels["classification"] == "success"
            stat.success += one.grown if good else 0.0
            stat.total += one.grown
            stat.rate += one.rate
        elif one.name == TIMES:
            made.setdefault(_door(one), Stat()).latency.add(one.labels["le"], one.rate)
    return {door: made[door] for door in sorted(made) if made[door].total}


def _door(one: Change) -> Door:
    said = one.labels
    default = said["srv_kind"] == "default"
    kind, route = said.get("route_kind", ""), said.get("route_name", "")
    port = said["srv_port"] or said.get("target_port", "")
    return Door("[default]" if default else said["srv_name"], port, kind, route)


def rows(name: str, found: dict[Door, Stat]) -> Iterator[tuple[str, ...]]:
    """Rows of a table."""
    for door, stat in found.items():
        said = stat.figures()
        yield (
            name,
            at_port(door.server, door.port),
            _shown(door),
            "" if door.kind == "default" else door.kind,
            percent(said["successesRate"]),
            f"{said['rps']:.2f}",
            *(millis(said[f"latencyMsP{at}"]) for at in (50, 95, 99)),
        )


def _shown(door: Door) -> str:
    """Routes that nobody wrote are in brackets."""
    return f"[{door.route}]" if door.kind == "default" else door.route


def documents(name: str, found: dict[Door, Stat]) -> Iterator[dict[str, Any]]:
    """The same for programs."""
    for door, stat in found.items():
        yield {
            "name": name,
            "server": door.server,
            "port": door.port,
            "route": _shown(door),
            "routeType": "" if door.kind == "default" else door.kind,
            **{key: rounded(value) for key, value in stat.figures().items()},
        }

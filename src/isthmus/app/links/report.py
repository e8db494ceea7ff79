"""What is told of links beside the tables: the page /links, and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from isthmus.aio import Clock
from isthmus.app.links.links import Links
from isthmus.app.links.watcher import Watcher
from isthmus.model.times import format_seconds
from isthmus.serve.admin import Reading

LABELS = ("cluster",)


def page_of(links: Links, clock: Clock) -> Callable[[Mapping[str, str]], object]:
    """The page: every Link, and every cluster that a Secret alone links, by cluster."""

    def page(query: Mapping[str, str]) -> object:
        only = query.get("cluster", "")
        found = [_told(links, watcher, clock) for watcher in links.watchers.values()]
        watched = {watcher.wanted.value.link for watcher in links.watchers.values()}
        found += [
            {
                "cluster": "",
                "link": f"{key.namespace}/{key.name}",
                "state": row.state,
                "since": row.since,
                "reason": row.reason,
                "message": row.message,
            }
            for key, row in sorted(links.health.items())
            if key not in watched
        ]
        return [each for each in found if only in ("", each["cluster"])]

    return page


def _told(links: Links, watcher: Watcher, clock: Clock) -> dict[str, object]:
    linked, health, now = watcher.wanted.value, watcher.health, clock.now()
    row = links.health.get(linked.link) if linked.link is not None else None
    reason, message = health.words(now)
    access = watcher.access.value
    return {
        "cluster": linked.name,
        "link": f"{linked.link.namespace}/{linked.link.name}" if linked.link is not None else "",
        "state": health.state(now),
        "since": row.since if row is not None else "",
        "reason": reason,
        "message": message,
        "usable": watcher.feed.synced and health.usable(now),
        "staleSeconds": round(health.silence(now), 1) if health.silent(now) else 0.0,
        "calledByItself": watcher.told.cluster,
        "trustDomain": watcher.row.trust_domain if watcher.row is not None else "",
        "clusterDomain": watcher.row.cluster_domain if watcher.row is not None else "",
        "objects": len(watcher.view),
        "bytes": watcher.view.bytes,
        "clockSkewSeconds": round(health.skew, 1),
        "server": access.server if access is not None else "",
        "tokenExpires": format_seconds(health.expires) if health.expires is not None else "",
        "gateway": linked.probe is not None,
        "gatewayAlive": health.gateway_alive,
        "gatewayLatencyMillis": _millis(health.gateway_latency),
        "dataPlane": health.data_plane,
    }


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


class _Figure(NamedTuple):
    """One number of each cluster, read now (seconds of the clock)."""

    name: str
    text: str
    kind: Literal["counter", "gauge"]
    read: Callable[[Watcher, float], float]


_FIGURES: Final = (
    _Figure(
        "isthmus_link_silent_seconds",
        "Time since anything was heard of a linked cluster's API.",
        "gauge",
        lambda watcher, now: watcher.health.silence(now),
    ),
    _Figure(
        "isthmus_link_objects",
        "Objects of a linked cluster that are known.",
        "gauge",
        lambda watcher, _: len(watcher.view),
    ),
    _Figure(
        "isthmus_link_bytes",
        "Bytes of these objects.",
        "gauge",
        lambda watcher, _: watcher.view.bytes,
    ),
    _Figure(
        "isthmus_link_gateway_enabled",
        "Whether a linked cluster has a gateway.",
        "gauge",
        lambda watcher, _: watcher.wanted.value.probe is not None,
    ),
    _Figure(
        "isthmus_link_watch_starts_total",
        "How often a linked cluster was listed, and followed from there.",
        "counter",
        lambda watcher, _: watcher.starts,
    ),
    _Figure(
        "isthmus_link_usable",
        "Whether a linked cluster's endpoints are used.",
        "gauge",
        lambda watcher, now: watcher.health.usable(now),
    ),
)


def figures_of(links: Links, clock: Clock) -> list[Reading]:
    """Each cluster's state, age and size."""

    def of_each(figure: _Figure) -> Reading:
        def read() -> dict[tuple[str, ...], float]:
            now = clock.now()
            return {
                (name,): float(figure.read(watcher, now))
                for name, watcher in links.watchers.items()
            }

        return Reading(figure.name, figure.text, figure.kind, read, LABELS)

    return [_states(links, clock), *map(of_each, _FIGURES), _gateways(links)]


def _states(links: Links, clock: Clock) -> Reading:
    def read() -> dict[tuple[str, ...], float]:
        now = clock.now()
        return {
            (name, str(watcher.health.state(now))): 1.0 for name, watcher in links.watchers.items()
        }

    text = "How the connection to a linked cluster fares: 1 for the state that holds."
    return Reading("isthmus_link_state", text, "gauge", read, ("cluster", "state"))


def _gateways(links: Links) -> Reading:
    def read() -> dict[tuple[str, ...], float]:
        alive = {name: watcher.health.gateway_alive for name, watcher in links.watchers.items()}
        return {(name,): float(said) for name, said in alive.items() if said is not None}

    text = "Whether the gateway of a linked cluster answers its probes."
    return Reading("isthmus_link_gateway_alive", text, "gauge", read, LABELS)

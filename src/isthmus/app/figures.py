"""What a server counts, by the names under which /metrics tells it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from isthmus.board import Board
from isthmus.engine import Database
from isthmus.serve import xds
from isthmus.serve.admin import Reading
from isthmus.serve.dns import Resolver
from isthmus.serve.identity import IdentityServer
from isthmus.serve.kube.api import Verdict
from isthmus.serve.kube.auditlog import AuditLog
from isthmus.serve.kube.server import KubeApi
from isthmus.serve.linkerd import Streams
from isthmus.store.contract import Store

METHOD = ("method",)
REFUSED = "refused"
"""Counted as the verb of requests that ended before anybody knew what was asked."""
VERBS = frozenset(
    {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", REFUSED}
)
"""Verbs that are counted by name. Others come from clients, who could make up any number."""


class Requests:
    """Counts the API's requests as they end, and the seconds that they took."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.seconds = 0.0

    def observe(self, verdict: Verdict) -> None:
        """One request has ended."""
        verb = verdict.asked.verb if verdict.asked is not None else REFUSED
        self.counts[verb if verb in VERBS else "other", str(verdict.code)] += 1
        if verb != "watch":
            self.seconds += verdict.seconds


def of_requests(requests: Requests) -> list[Reading]:
    """The API's requests by verb and HTTP status, and the time that all but watches took."""
    return [
        Reading(
            "isthmus_api_requests_total",
            "Requests to the API that have ended.",
            "counter",
            lambda: dict(requests.counts),
            ("verb", "code"),
        ),
        Reading(
            "isthmus_api_request_seconds_total",
            "Time that requests other than watches took.",
            "counter",
            lambda: requests.seconds,
        ),
    ]


def of_watches(api: KubeApi) -> Reading:
    """The API's open watches."""
    return Reading("isthmus_api_watches", "Open watches.", "gauge", lambda: api.watches)


def of_connections(api: KubeApi) -> list[Reading]:
    """The API's connections, and those that found no room."""
    return [
        Reading("isthmus_api_connections", "Open connections.", "gauge", lambda: api.connections),
        Reading(
            "isthmus_api_connections_refused_total",
            "Connections that were closed unread: too many, or too many from one address.",
            "counter",
            lambda: api.turned_away,
        ),
    ]


def of_streams(listeners: Mapping[str, Streams]) -> list[Reading]:
    """What clients of the gRPC services are told, by listener and method."""

    def by(
        counted: Callable[[Streams], Counter[str]],
    ) -> Callable[[], dict[tuple[str, ...], float]]:
        return lambda: {
            (name, method): count
            for name, streams in listeners.items()
            for method, count in counted(streams).items()
        }

    def refused() -> dict[tuple[str, ...], float]:
        return {
            (name, *why): count
            for name, streams in listeners.items()
            for why, count in streams.refused.items()
        }

    calls = ("listener", *METHOD)
    live, opened, told = by(_live), by(_opened), by(_told)
    return [
        Reading("isthmus_streams", "Open streams.", "gauge", live, calls),
        Reading("isthmus_streams_total", "Streams opened.", "counter", opened, calls),
        Reading("isthmus_messages_total", "Messages written to streams.", "counter", told, calls),
        Reading(
            "isthmus_streams_refused_total",
            "Requests that got no stream.",
            "counter",
            refused,
            (*calls, "status"),
        ),
    ]


def _live(streams: Streams) -> Counter[str]:
    return streams.live


def _opened(streams: Streams) -> Counter[str]:
    return streams.opened


def _told(streams: Streams) -> Counter[str]:
    return streams.messages


def of_xds(streams: xds.Streams) -> list[Reading]:
    """What proxies are told over xDS, and what they reject."""
    return [
        Reading("isthmus_xds_streams", "Open xDS streams.", "gauge", lambda: len(streams)),
        Reading(
            "isthmus_xds_streams_total",
            "xDS streams opened.",
            "counter",
            lambda: _by(streams.opened),
            ("protocol",),
        ),
        Reading(
            "isthmus_xds_responses_total",
            "xDS responses written.",
            "counter",
            lambda: _by(streams.messages),
            ("type",),
        ),
        Reading(
            "isthmus_xds_rejections_total",
            "Resources that a proxy rejected alone.",
            "counter",
            lambda: _by(streams.rejections),
            ("type",),
        ),
        Reading(
            "isthmus_xds_refused_total",
            "Proxies that were not let in.",
            "counter",
            lambda: _by(streams.refused),
            ("status",),
        ),
    ]


def of_dns(resolver: Resolver) -> list[Reading]:
    """What cluster DNS was asked, by how it ended."""
    return [
        Reading(
            "isthmus_dns_answers_total",
            "Answers of cluster DNS.",
            "counter",
            lambda: dict(resolver.counts),
            ("transport", "code"),
        ),
        Reading(
            "isthmus_dns_dropped_total",
            "Packets that cluster DNS did not answer: they were no questions.",
            "counter",
            lambda: resolver.dropped,
        ),
    ]


def of_identity(server: IdentityServer) -> list[Reading]:
    """Certificates of the mesh: signed, and refused."""
    return [
        Reading(
            "isthmus_certificates_total",
            "Certificates signed.",
            "counter",
            lambda: server.issued,
        ),
        Reading(
            "isthmus_certificates_refused_total",
            "Requests for a certificate that were refused.",
            "counter",
            lambda: server.refused,
        ),
    ]


def _by(count: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(name,): number for name, number in count.items()}


def of_audit(audit: AuditLog) -> list[Reading]:
    """Lines of the audit that were written, and those that are missing in it."""
    return [
        Reading(
            "isthmus_audit_lines_total", "Audit lines written.", "counter", lambda: audit.written
        ),
        Reading(
            "isthmus_audit_dropped_total",
            "Audit lines that could not be written.",
            "counter",
            lambda: audit.dropped,
        ),
    ]


def of_state(database: Database, board: Board, store: Store) -> list[Reading]:
    """How far the store, the board and the database are."""
    return [
        Reading(
            "isthmus_store_revision",
            "Newest durable revision of the store.",
            "gauge",
            lambda: store.revision,
        ),
        Reading(
            "isthmus_board_revision",
            "Store revision up to which the tables are right.",
            "gauge",
            lambda: board.health.revision,
        ),
        Reading(
            "isthmus_unreadable_objects",
            "Stored objects that are left out because they cannot be read.",
            "gauge",
            lambda: board.health.unreadable,
        ),
        Reading(
            "isthmus_engine_revision",
            "Revisions of the database.",
            "gauge",
            lambda: database.stats.revision,
        ),
        Reading(
            "isthmus_engine_cells",
            "Memoised values.",
            "gauge",
            lambda: database.stats.cells,
        ),
        Reading(
            "isthmus_engine_evaluations_total",
            "Evaluations of queries.",
            "counter",
            lambda: database.stats.evaluations,
        ),
        Reading(
            "isthmus_engine_failures_total",
            "Queries that failed: bugs.",
            "counter",
            lambda: database.stats.failures,
        ),
    ]

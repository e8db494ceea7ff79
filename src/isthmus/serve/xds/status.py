"""What every proxy was told and has accepted: for people, `isthmus proxy status` and `/proxies`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from isthmus.aio import Clock
from isthmus.serve.xds.contract import Nacked
from isthmus.serve.xds.link import Link
from isthmus.serve.xds.machine import Rejected, TypeStatus


class RejectedResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that the proxy does not accept; it keeps the version before, if it had one."""

    name: str
    version: str
    message: str
    since: datetime
    origin: str


class TypeReport(msgspec.Struct, frozen=True, rename="camel"):
    """One type of resources on one stream. Counts are of resources."""

    type: str
    """The short name of the message: Cluster, Listener, ..."""
    type_url: str
    wildcard: bool
    subscribed: int
    sent: int
    acked: int
    waiting: int
    unanswered_since: datetime | None
    acked_at: datetime | None
    error: str
    """The last NACK's message, whoever was guilty; empty if there was none."""
    error_at: datetime | None
    rejected: tuple[RejectedResource, ...]


class ProxyReport(msgspec.Struct, frozen=True, rename="camel"):
    """One stream."""

    proxy: str
    node: str
    agent: str
    dialect: str
    protocol: str
    """`Delta` or `Sotw`."""
    peer: str
    identities: tuple[str, ...]
    since: datetime
    scope: tuple[str, ...]
    """The upstreams in sight; empty while nothing is known of the proxy."""
    types: tuple[TypeReport, ...]


class Proxies(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `/proxies`."""

    proxies: tuple[ProxyReport, ...]


def report(link: Link, clock: Clock) -> ProxyReport:
    """The state of one stream, with dates instead of seconds."""
    agent = f"{link.node.agent} {link.node.agent_version}".strip()
    date = _dates(clock)
    return ProxyReport(
        proxy=link.proxy.name,
        node=link.node.id,
        agent=agent,
        dialect=link.proxy.dialect.name,
        protocol=type(link.machine).__name__,
        peer=link.peer.address,
        identities=link.peer.identities,
        since=date(link.since),
        scope=tuple(link.sight.view.scope) if link.sight is not None else (),
        types=tuple(_of_type(one, date) for one in link.machine.status()),
    )


def nacked(link: Link, clock: Clock) -> tuple[Nacked, ...]:
    """What the proxy does not accept, for conditions."""
    date = _dates(clock)
    return tuple(
        Nacked(
            link.proxy.name,
            url,
            one.name,
            one.version,
            one.message,
            date(one.at).timestamp(),
            one.origin,
            link.proxy.dialect.name,
        )
        for url, one in link.machine.rejections()
    )


Dates = Callable[[float], datetime]


def _dates(clock: Clock) -> Dates:
    """From moments of `clock.now()` to dates."""
    now, date = clock.now(), clock.utc()
    return lambda moment: date - timedelta(seconds=now - moment)


def _of_type(one: TypeStatus, date: Dates) -> TypeReport:
    return TypeReport(
        type=one.type_url.rpartition(".")[2],
        type_url=one.type_url,
        wildcard=one.wildcard,
        subscribed=one.subscribed,
        sent=one.sent,
        acked=one.acked,
        waiting=one.waiting,
        unanswered_since=date(one.in_flight_since) if one.in_flight_since is not None else None,
        acked_at=date(one.acked_at) if one.acked_at is not None else None,
        error=one.error.message if one.error is not None else "",
        error_at=date(one.error.at) if one.error is not None else None,
        rejected=tuple(_rejected(each, date) for each in one.rejected),
    )


def _rejected(one: Rejected, date: Dates) -> RejectedResource:
    origin = "" if one.origin is None else str(one.origin)
    return RejectedResource(one.name, one.version, one.message, date(one.at), origin)

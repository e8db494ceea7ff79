"""What comes: requests and connections by server, and who let them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from isthmus.agent.metrics import words
from isthmus.agent.metrics.page import Labels, Page

BUCKETS: Final = frozenset({"0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "10.0", "+Inf"})
"""Upper bounds of buckets, in seconds."""

ENDED: Final = "TcpConnectionEnd"
_SERVED: Final = (*words.SERVER, *words.SERVED, "open_kind", "open_name")
_OPENED: Final = (*words.SERVER, "open_kind", "open_name")
_REFUSED: Final = ("7", "9", "16")
"""gRPC's codes for clients that are not let in."""


class _Door(NamedTuple):
    """Where a request came in."""

    target: Labels
    server: Labels
    route: Labels
    opened: tuple[str, str]


def _door(ip: str, port: str, names: tuple[str, ...], packed: str) -> _Door:
    said = dict(words.labelled(names, packed))
    server = tuple((name, said[name]) for name in words.SERVER)
    route = tuple((name, said[name]) for name in words.SERVED if name in said)
    return _Door(_target(ip, port), server, route, (said["open_kind"], said["open_name"]))


def _target(ip: str, port: str) -> Labels:
    """What was dialled: the workload's own address."""
    at = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    return (("target_addr", at), ("target_ip", ip), ("target_port", port))


def request(page: Page, groups: Sequence[str], value: float, ip: str) -> None:
    """Requests that ended."""
    if len(groups) < 7 or not groups[0]:
        return
    served, code, grpc, flags, port, authz, *rest = groups
    door = _door(ip, port, _SERVED, served)
    tls = words.tls(";".join(rest))
    _answered(page, door, tls, (code, grpc), value)
    before = (*door.target, *door.server)
    allowed = words.authorization(authz, door.opened)
    if allowed is not None:
        page.count("inbound_http_authz_allow", (*before, *door.route, *allowed, *tls), value)
    elif code == "403" or grpc in _REFUSED:
        page.count("inbound_http_authz_deny", (*before, *door.route, *tls), value)
    limit = "|".join(served.split("|")[len(_SERVED) :])
    if limit and "RL" in flags.split(","):
        said = words.labelled(words.LIMIT, limit)
        page.count("inbound_http_local_ratelimit", (*before, *said, *tls), value)


def _answered(page: Page, door: _Door, tls: Labels, end: tuple[str, str], value: float) -> None:
    code, grpc = words.status(end[0]), end[1] if end[1].isdecimal() else ""
    failed = grpc not in ("", "0") or code[:1] in ("", "5")
    before = (("direction", "inbound"), *door.target, *tls, *door.server, *door.route)
    told = (
        ("status_code", code),
        ("grpc_status_code", grpc),
        ("classification", "failure" if failed else "success"),
    )
    page.count("request", before, value)
    page.count("response", (*before, *told), value)


def lost(page: Page, groups: Sequence[str], value: float, ip: str) -> None:
    """Requests that no route is for."""
    if len(groups) < 3:
        return
    server, port, *rest = groups
    door = _door(ip, port, _OPENED, server)
    tls = words.tls(";".join(rest))
    _answered(page, door, tls, ("404", ""), value)
    before = (*door.target, *door.server)
    page.count("inbound_http_route_not_found", (*before, *tls), value)


def duration(page: Page, part: str, packed: str, bound: str, value: float) -> None:
    """A part of a histogram."""
    labels = words.labelled((*words.SERVER, *words.SERVED), packed)
    le = (("le", words.seconds(bound)),) if part == "_bucket" else ()
    if le and not page.fine and le[0][1] not in BUCKETS:
        return
    value = value / 1000 if part == "_sum" else value
    family = "inbound_http_request_duration_seconds"
    page.add(family, "histogram", (*labels, *le), value, part)


def connection(page: Page, groups: Sequence[str], value: float, ip: str) -> None:
    """Connections that were made, or ended; who let them in is known when they end."""
    if len(groups) < 6:
        return
    opened, what, _flags, port, authz, *rest = groups
    door = _door(ip, port, _OPENED, opened)
    tls = words.tls(";".join(rest))
    before = (*door.target, *door.server)
    classic = (("direction", "inbound"), *door.target, *tls, *door.server)
    if what != ENDED:
        page.count("tcp_open", classic, value)
        return
    page.count("tcp_close", classic, value)
    allowed = words.authorization(authz, door.opened)
    if allowed is not None:
        page.count("inbound_tcp_authz_allow", (*before, *allowed, *tls), value)
    else:
        page.count("inbound_tcp_authz_deny", (*before, *tls), value)

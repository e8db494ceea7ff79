"""An Envoy's statistics as Linkerd's metrics: pure, text to text.

The Envoy counts with few labels, since each costs time on every request. What was known beforehand
is one label, `labels`, joined by bars; here it is taken apart again, `envoy_` goes, milliseconds
become seconds, and names become those that Linkerd's dashboards ask for. Lines that cannot be read
are left out: a proxy's own page must not break a scrape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

PREFIX: Final = "envoy_"
OURS: Final = "isthmus_"
MOST: Final = 200_000
"""Lines of one page."""

_LINE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(?P<key>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)",?')

_DNS: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")

_PARENT: Final = (
    "parent_group", "parent_kind", "parent_namespace", "parent_name", "parent_port",
    "parent_section_name", "route_group", "route_kind", "route_namespace", "route_name",
)  # fmt: skip
_SERVER: Final = (
    "srv_group", "srv_kind", "srv_name", "srv_port", "route_group", "route_kind", "route_name",
)  # fmt: skip

PACKED: Final[Mapping[str, tuple[str, ...]]] = {
    "isthmus_outbound_http": _PARENT,
    "isthmus_outbound_tcp": _PARENT[:6],
    "isthmus_inbound_http": _SERVER,
    "isthmus_inbound_tcp": _SERVER[:4],
}
"""What the parts of `labels` are called, by the counter."""

ERRORS: Final[Mapping[str, str]] = {
    "UF": "FAIL_FAST", "UH": "FAIL_FAST", "NC": "FAIL_FAST", "URX": "FAIL_FAST",
    "UT": "RESPONSE_HEADERS_TIMEOUT", "RL": "RATE_LIMITED", "UO": "UPSTREAM_OVERFLOW",
    "UC": "UPSTREAM_RESET", "UR": "UPSTREAM_RESET", "DC": "DOWNSTREAM_RESET",
}  # fmt: skip
"""Linkerd's words for Envoy's response flags."""


_GRPC_NAMES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
GRPC: Final = {str(number): name for number, name in enumerate(_GRPC_NAMES)}
"""Names of gRPC's status codes."""


class Sample(NamedTuple):
    """One line: a series and its value, as text."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: str


def read(page: str) -> Iterator[Sample]:
    """The series of a page of the Prometheus text format."""
    for line in page.splitlines()[:MOST]:
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        labels = tuple(
            (each["key"], each["value"]) for each in _LABEL.finditer(found["labels"] or "")
        )
        yield Sample(found["name"], labels, found["value"])


def export(page: str) -> str:
    """What port 4191 tells of a pod whose Envoy tells `page`."""
    families: dict[str, dict[tuple[tuple[str, str], ...], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    kinds: dict[str, str] = {}
    for sample in read(page):
        for family, kind, made in _translated(sample):
            try:
                value = float(made.value)
            except ValueError:
                continue
            kinds[family] = kind
            key = (("", made.name), *made.labels)
            families[family][key] += value
    return "".join(_written(families, kinds))


def _translated(sample: Sample) -> Iterator[tuple[str, str, Sample]]:
    """Family, kind and series of one of Envoy's, in Linkerd's words; of most there is none."""
    name = sample.name.removeprefix(PREFIX)
    counter, timing, part = name.partition("_ms")
    if counter not in PACKED:
        if not name.startswith(OURS):
            yield name, "untyped", Sample(name, sample.labels, sample.value)
        return
    labels = dict(sample.labels)
    known = tuple(zip(PACKED[counter], labels.pop("labels", "").split("|"), strict=False))
    if timing:
        yield from _duration(counter, part, known, labels, sample.value)
        return
    match counter:
        case "isthmus_outbound_http":
            yield _outbound(known, labels, sample.value)
        case "isthmus_inbound_http":
            yield from _inbound(known, labels, sample.value)
        case _:
            direction = "outbound" if counter == "isthmus_outbound_tcp" else "inbound"
            more = (("direction", direction), *_peer(labels))
            opened = Sample("tcp_open_total", (*known, *more), sample.value)
            yield "tcp_open_total", "counter", opened


def _outbound(
    known: tuple[tuple[str, str], ...], labels: Mapping[str, str], value: str
) -> tuple[str, str, Sample]:
    grpc = labels.get("grpc", "")
    error = _error(labels.get("flags", ""))
    hostname = ("hostname", _host(labels.get("hostname", "")))
    if _declared_grpc(dict(known)):
        name = "outbound_grpc_route_request_statuses_total"
        status = "UNKNOWN" if error else GRPC.get(grpc, "UNKNOWN")
        more = (hostname, ("grpc_status", status), ("error", error))
    else:
        name = "outbound_http_route_request_statuses_total"
        status = "" if error else _status(labels)
        more = (hostname, ("http_status", status), ("error", error))
    return name, "counter", Sample(name, (*known, *more), value)


def _declared_grpc(labels: Mapping[str, str]) -> bool:
    """Whether the routes are of a port that speaks gRPC: what else speaks it counts as HTTP."""
    name = labels.get("route_name", "")
    return labels.get("route_kind") == "GRPCRoute" or name.startswith("grpc-egress-")


def _status(labels: Mapping[str, str]) -> str:
    """A denial that was told to a gRPC client in its own words is one all the same."""
    if labels.get("details") == "direct_response" and labels.get("grpc") == "9":
        return "403"
    status = labels.get("status", "")
    return status if status.isdecimal() and status != "0" else ""


def _host(authority: str) -> str:
    """The name in it; of addresses, and of what no name is, nothing."""
    before, _, port = authority.lower().rpartition(":")
    name = (before if before and port.isdecimal() else authority.lower()).removesuffix(".")
    labels = name.split(".")
    return name if all(map(_DNS.fullmatch, labels)) and not labels[-1].isdecimal() else ""


def _inbound(
    known: tuple[tuple[str, str], ...], labels: Mapping[str, str], value: str
) -> Iterator[tuple[str, str, Sample]]:
    status, grpc = labels.get("status", ""), labels.get("grpc", "")
    failed = grpc not in ("", "0", "-") or status[:1] == "5" or status in ("", "0")
    direction = (("direction", "inbound"), *_peer(labels))
    told = (
        *known,
        *direction,
        ("status_code", status),
        ("grpc_status_code", grpc if grpc.isdecimal() else ""),
        ("classification", "failure" if failed else "success"),
    )
    yield "response_total", "counter", Sample("response_total", told, value)
    yield "request_total", "counter", Sample("request_total", (*known, *direction), value)


def _duration(
    counter: str,
    part: str,
    known: tuple[tuple[str, str], ...],
    labels: Mapping[str, str],
    value: str,
) -> Iterator[tuple[str, str, Sample]]:
    names = {
        "isthmus_outbound_http": "outbound_http_route_request_duration_seconds",
        "isthmus_inbound_http": "inbound_http_request_duration_seconds",
    }
    family = names.get(counter)
    if family is None:
        return
    more = dict(labels)
    if part == "_bucket":
        more["le"] = _seconds(more.get("le", "+Inf"))
    elif part == "_sum":
        value = _seconds(value)
    elif part != "_count":
        return
    yield family, "histogram", Sample(f"{family}{part}", (*known, *more.items()), value)


def _peer(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if "client" not in labels:
        return ()
    client = labels["client"]
    known = client not in ("", "-")
    return (("tls", "true" if known else "no_identity"), ("client_id", client if known else ""))


def _error(flags: str) -> str:
    for flag in flags.split(","):
        if flag in ERRORS:
            return ERRORS[flag]
    return ""


def _seconds(milliseconds: str) -> str:
    try:
        return repr(float(milliseconds) / 1000) if milliseconds != "+Inf" else milliseconds
    except ValueError:
        return milliseconds


def _written(
    families: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]], kinds: Mapping[str, str]
) -> Iterable[str]:
    for family in sorted(families):
        yield f"# TYPE {family} {kinds[family]}\n"
        for key, value in families[family].items():
            (_, name), *labels = key
            inner = ",".join(f'{label}="{text}"' for label, text in labels)
            number = int(value) if value == int(value) else value
            yield f"{name}{{{inner}}} {number}\n"

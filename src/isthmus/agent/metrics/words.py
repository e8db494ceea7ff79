"""Envoy's words in Linkerd's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isthmus.agent.metrics.page import Labels

PARENT: Final = (
    "parent_group", "parent_kind", "parent_namespace", "parent_name", "parent_port",
    "parent_section_name",
)  # fmt: skip
ROUTE: Final = ("route_group", "route_kind", "route_namespace", "route_name")
BACKEND: Final = (
    "backend_group", "backend_kind", "backend_namespace", "backend_name", "backend_port",
    "backend_section_name",
)  # fmt: skip
SERVER: Final = ("srv_group", "srv_kind", "srv_name", "srv_port")
SERVED: Final = ("route_group", "route_kind", "route_name")
LIMIT: Final = ("ratelimit_group", "ratelimit_kind", "ratelimit_name", "ratelimit_scope")
AUTHZ: Final = ("authz_group", "authz_kind", "authz_name")

_GRPC_NAMES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
GRPC: Final = {str(number): name for number, name in enumerate(_GRPC_NAMES)}
"""Names of gRPC's status codes."""

ERRORS: Final[Mapping[str, str]] = {
    "UF": "FAIL_FAST", "UH": "FAIL_FAST", "NC": "FAIL_FAST", "UMSDR": "REQUEST_TIMEOUT",
    "UT": "REQUEST_TIMEOUT", "DT": "REQUEST_TIMEOUT", "SI": "IDLE_TIMEOUT",
    "UO": "LOAD_SHED", "OM": "LOAD_SHED", "UC": "IO", "UR": "RESET", "LR": "RESET",
    "UPE": "UNKNOWN", "DPE": "UNKNOWN", "DC": "CANCEL", "DR": "CANCEL", "RL": "",
}  # fmt: skip
"""Linkerd's words for Envoy's response flags; those that are not here are no errors."""

FAULTS: Final[Mapping[str, str]] = {
    "FAIL_FAST": "failfast", "REQUEST_TIMEOUT": "response timeout", "LOAD_SHED": "loadshed",
    "IO": "i/o", "RESET": "i/o",
}  # fmt: skip
"""The coarser words of `outbound_http_errors_total`; "unexpected" for the rest."""

LOCAL: Final[Mapping[str, str]] = {
    "2": "500", "13": "500", "9": "403", "7": "403", "5": "404", "12": "404", "14": "503",
}  # fmt: skip
"""The status that an answer of the proxy's own stands for, where gRPC clients are told a code."""

_DNS: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_PLAIN: Final = re.compile(r'[^\s,="\\{}]*')
_POLICY: Final = "policy.linkerd.io"


def labelled(names: tuple[str, ...], packed: str) -> Labels:
    """The parts of a group under their names; those that are missing are empty."""
    parts = packed.split("|")[: len(names)]
    parts += [""] * (len(names) - len(parts))
    return tuple((name, plain(part)) for name, part in zip(names, parts, strict=True))


def plain(text: str) -> str:
    """The text, if a script that splits at commas and equals signs reads it right; else ""."""
    return text if _PLAIN.fullmatch(text) else ""


def error(flags: str) -> str:
    """What went wrong, by response flags; "" for nothing."""
    for flag in flags.split(","):
        if found := ERRORS.get(flag, ""):
            return found
    return ""


def host(authority: str) -> str:
    """The name in it; of addresses, and of what no name is, nothing."""
    before, _, port = authority.lower().rpartition(":")
    name = (before if before and port.isdecimal() else authority.lower()).removesuffix(".")
    labels = name.split(".")
    return name if all(map(_DNS.fullmatch, labels)) and not labels[-1].isdecimal() else ""


def status(code: str) -> str:
    """An HTTP status; "" where there was none."""
    return code if code.isdecimal() and code != "0" else ""


def tls(client: str) -> Labels:
    """How a client was known: the first of its names."""
    name = client.partition(",")[0]
    if name in ("", "-"):
        return (("tls", "no_identity"), ("no_tls_reason", "no_tls_from_remote"))
    return (("tls", "true"), ("client_id", plain(name)))


def authorization(rule: str, opened: tuple[str, str]) -> Labels | None:
    """Who let a client in: a rule, or who lets everybody in; None where nobody did."""
    kind, _, rest = rule.removeprefix("~").partition("/")
    name = rest.rpartition("/")[2]
    if not name:
        kind, name = opened
    if not name:
        return None
    group = "" if kind == "default" else _POLICY
    return tuple(zip(AUTHZ, (group, plain(kind), plain(name)), strict=True))


def seconds(milliseconds: str) -> str:
    """A bound of a bucket, as Linkerd writes it."""
    if milliseconds == "+Inf":
        return milliseconds
    try:
        return repr(float(milliseconds) / 1000)
    except ValueError:
        return ""

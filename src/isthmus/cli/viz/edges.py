"""`viz edges`: who calls whom, as the proxies of those that are called know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from isthmus.cli.viz.window import Change

HEADER: Final = ("SRC", "DST", "SRC_NS", "DST_NS", "SECURED")
WIDE: Final = ("SRC", "DST", "SRC_NS", "DST_NS", "CLIENT_ID", "SERVER_ID", "SECURED")
UNKNOWN: Final = "-"
PLAIN: Final = "Not Provided By Remote"
_ACCOUNT: Final = "serviceaccount"
_COUNTED: Final = ("request_total", "tcp_open_total", "tcp_close_total")


class Member(NamedTuple):
    """A workload, and the ServiceAccount that it runs as."""

    namespace: str
    name: str
    account: str

    @property
    def identity(self) -> str:
        """Short: `account.namespace`."""
        return f"{self.account}.{self.namespace}"


class Edge(NamedTuple):
    """Somebody calls somebody."""

    source: str
    target: str
    source_namespace: str
    target_namespace: str
    client: str
    server: str
    reason: str
    """Why it is not secured; "" where it is."""

    @property
    def document(self) -> dict[str, str]:
        """For programs."""
        return {
            "src": self.source,
            "src_namespace": self.source_namespace,
            "dst": self.target,
            "dst_namespace": self.target_namespace,
            "client_id": self.client,
            "server_id": self.server,
            "no_tls_reason": self.reason,
        }


def sends(found: Iterable[Change]) -> bool:
    """Whether a workload called anybody."""
    return any(one.name.startswith("outbound_") for one in found)


def edges(target: Member, found: Iterable[Change], senders: Iterable[Member]) -> set[Edge]:
    """Who called a workload. Probes of its node are nobody's.

    A client is known by its identity: it is the workload that runs as that ServiceAccount, if
    of those that called anybody there is one alone; else it is called by the ServiceAccount.
    """
    names = _names(senders)
    return {
        _edge(target, one.labels, names)
        for one in found
        if one.name in _COUNTED
        and one.labels.get("direction") == "inbound"
        and one.labels.get("route_name") != "probe"
    }


def _names(members: Iterable[Member]) -> dict[str, str]:
    by_identity: dict[str, set[str]] = {}
    for each in members:
        by_identity.setdefault(each.identity, set()).add(each.name)
    return {identity: next(iter(some)) for identity, some in by_identity.items() if len(some) == 1}


def _edge(target: Member, labels: Mapping[str, str], names: Mapping[str, str]) -> Edge:
    identity = labels.get("client_id", "")
    client = short(identity)
    account, _, namespace = client.partition(".")
    return Edge(
        names.get(client, account) or UNKNOWN,
        target.name,
        namespace or UNKNOWN,
        target.namespace,
        client,
        target.identity if identity else "",
        "" if identity else PLAIN,
    )


def short(identity: str) -> str:
    """`sa.ns` of a Kubernetes identity; of others, all of it."""
    account, namespace, kind, *_ = [*identity.split("."), "", "", ""]
    return f"{account}.{namespace}" if kind == _ACCOUNT else identity


def rows(found: Iterable[Edge], *, wide: bool) -> list[tuple[str, ...]]:
    """Rows of a table, sorted."""
    made = []
    for one in sorted(found):
        ids = (one.client or UNKNOWN, one.server or UNKNOWN) if wide else ()
        made.append((*one[:4], *ids, one.reason or "√"))
    return made


def documents(found: Iterable[Edge]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [one.document for one in sorted(found)]

"""Address translation by nf_tables, spoken directly.

A cluster's pods leave their network with their node's address: other networks do not know the
pods' addresses and could not answer them.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Any

from pyroute2.nftables.expressions import ipv4addr, masq, verdict
from pyroute2.nftables.main import NFTables

from isthmus.lab.network.namespace import Namespace

IPV4 = 2
SOURCE_NAT = 100
"""The priority of source translation (linux/netfilter_ipv4.h)."""

ACCEPT = 1

TABLE = "isthmus"
CHAIN = "leaving"

Expressions = tuple[list[dict[str, Any]], ...]


def masquerade(namespace: Namespace, pods: IPv4Network, known: Iterable[IPv4Network]) -> None:
    """Translate what comes from `pods`, unless it goes to one of the `known` networks."""
    with namespace.entered():
        tables = NFTables(nfgen_family=IPV4)
    try:
        tables.begin()
        tables.table("add", name=TABLE)
        tables.chain(
            "add",
            table=TABLE,
            name=CHAIN,
            hook="postrouting",
            type="nat",
            priority=SOURCE_NAT,
            policy=ACCEPT,
        )
        for network in (pods, *known):
            _rule(tables, (ipv4addr(dst=str(network)), verdict(ACCEPT)))
        _rule(tables, (ipv4addr(src=str(pods)), masq()))
        tables.commit()
    finally:
        tables.close()


def _rule(tables: NFTables, expressions: Expressions) -> None:
    tables.rule("add", table=TABLE, chain=CHAIN, expressions=expressions)

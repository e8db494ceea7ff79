"""Redirection: a workload's TCP through its proxy, by nf_tables, spoken directly (decision 10).

One table in the workload's own network namespace, made in one transaction before the proxy starts
and taken away in one after it has ended. Linkerd's port numbers and its order of rules. The proxy
is known by its user; where there is but one user (rootless), by the mark of its connections.

    prerouting  tcp to 4143, 4190, 4191 or a skipped port: as it is; other tcp: to 4143
    output      what the proxy hands to the app (from 127.0.0.6, over lo): as it is
                the proxy to its own address over lo: to 4143 (a call to itself through its Service)
                the proxy's own, loopback, skipped ports and networks: as it is; other tcp: to 4140
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Final, NamedTuple

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.nftables.expressions import genex, verdict
from pyroute2.nftables.main import NFTables

from isthmus.errors import Unavailable, UserFault

TABLE: Final = "isthmus_agent"
INBOUND: Final = 4143
OUTBOUND: Final = 4140
OWN: Final = ((4143, 4143), (4190, 4191))
"""Ports of the proxy itself."""

_IPV4: Final = 2
_ACCEPT: Final = 1
_DESTINATION_NAT: Final = -100
_LO: Final = 1
"""The loopback's index in every namespace."""

# Keys of `meta` (linux/netfilter/nf_tables.h).
_MARK, _OIF, _UID, _PROTOCOL = 3, 5, 10, 16
_EQUAL, _UNEQUAL, _LESS_OR_EQUAL, _GREATER_OR_EQUAL = 0, 1, 3, 5
_NETWORK, _TRANSPORT = 1, 2
_SOURCE, _DESTINATION = 12, 16
"""Offsets of the addresses in an IPv4 header."""

Expression = list[dict[str, Any]]
Ports = tuple[tuple[int, int], ...]


class Rules(NamedTuple):
    """What leads through the proxy. `uid` or `mark` tells the proxy's own connections."""

    uid: int | None
    mark: int | None
    skip_inbound: Ports = ()
    skip_outbound: Ports = ()
    skip_subnets: tuple[str, ...] = ()


def install(rules: Rules) -> None:
    """Make the table, in the calling thread's namespace; one that was left there is replaced.

    Raises:
        Unavailable: the kernel refuses: no right, or no nf_tables.
    """
    subnets = _subnets(rules.skip_subnets)
    _replace(
        {
            "in": ("prerouting", _inbound(rules)),
            "out": ("output", _outbound(rules, subnets)),
        }
    )


def _replace(chains: Mapping[str, tuple[str, list[tuple[Expression, ...]]]]) -> None:
    """The table anew, with these chains: name to hook and rules."""
    remove()
    try:
        tables = NFTables(nfgen_family=_IPV4)
        try:
            tables.begin()
            tables.table("add", name=TABLE)
            for name, (hook, _) in chains.items():
                _chain(tables, name, hook)
            for name, (_, rules) in chains.items():
                for expressions in rules:
                    _rule(tables, name, expressions)
            tables.commit()
        finally:
            tables.close()
    except (OSError, NetlinkError) as fault:
        raise Unavailable(f"the kernel takes no redirect rules: {fault}") from fault


class Lead(NamedTuple):
    """What leads others through the proxy of their node: all TCP to `networks`, but to `spared`."""

    networks: tuple[str, ...]
    spared: tuple[str, ...] = ()


def lead(rules: Lead) -> None:
    """Make the table of a node; see `install`."""
    spared, networks = _subnets(rules.spared), _subnets(rules.networks)
    passing = [(*_address(_DESTINATION, each), _accept()) for each in spared]
    led = [(*_tcp(), *_address(_DESTINATION, each), *_redirect(OUTBOUND)) for each in networks]
    _replace({"in": ("prerouting", [*passing, *led])})


def remove() -> None:
    """Take the table away, in the calling thread's namespace; harmless if there is none."""
    tables = NFTables(nfgen_family=_IPV4)
    try:
        if TABLE not in tables_here(tables):
            return
        tables.begin()
        tables.table("del", name=TABLE)
        tables.commit()
    finally:
        tables.close()


def tables_here(tables: NFTables) -> list[str]:
    """Names of the IPv4 tables."""
    return [str(each.get_attr("NFTA_TABLE_NAME")) for each in tables.get_tables()]


def _inbound(rules: Rules) -> list[tuple[Expression, ...]]:
    own = [(*_tcp_to(ports), _accept()) for ports in (*OWN, *rules.skip_inbound)]
    return [*own, (*_tcp(), *_redirect(INBOUND))]


def _outbound(rules: Rules, subnets: Sequence[IPv4Network]) -> list[tuple[Expression, ...]]:
    proxy = _proxy(rules)
    local = IPv4Network("127.0.0.0/8")
    return [
        (*_over_lo(), *_address(_SOURCE, IPv4Network("127.0.0.6/32")), _accept()),
        (
            *_tcp(), *_over_lo(), *_address(_DESTINATION, local, _UNEQUAL), *proxy,
            *_redirect(INBOUND),
        ),
        (*proxy, _accept()),
        (*_address(_DESTINATION, local), _accept()),
        *((*_tcp_to(ports), _accept()) for ports in rules.skip_outbound),
        *((*_address(_DESTINATION, each), _accept()) for each in subnets),
        (*_tcp(), *_redirect(OUTBOUND)),
    ]  # fmt: skip


def _proxy(rules: Rules) -> tuple[Expression, ...]:
    key, value = (_MARK, rules.mark) if rules.uid is None else (_UID, rules.uid)
    if value is None:
        raise ValueError("rules without a mark and a user would lead the proxy into itself")
    return (_meta(key), _compare(struct.pack("=I", value)))


def _tcp() -> tuple[Expression, ...]:
    return (_meta(_PROTOCOL), _compare(b"\x06"))


def _tcp_to(ports: tuple[int, int]) -> tuple[Expression, ...]:
    first, last = (struct.pack("!H", each) for each in ports)
    load = _payload(_TRANSPORT, 2, 2)
    return (*_tcp(), load, _compare(first, _GREATER_OR_EQUAL), _compare(last, _LESS_OR_EQUAL))


def _over_lo() -> tuple[Expression, ...]:
    return (_meta(_OIF), _compare(struct.pack("=I", _LO)))


def _address(offset: int, network: IPv4Network, how: int = _EQUAL) -> tuple[Expression, ...]:
    mask = genex(
        "bitwise",
        {
            "SREG": 1,
            "DREG": 1,
            "LEN": 4,
            "MASK": _data(network.netmask.packed),
            "XOR": _data(bytes(4)),
        },
    )
    return (
        _payload(_NETWORK, offset, 4), [mask], _compare(network.network_address.packed, how),
    )  # fmt: skip


def _redirect(port: int) -> tuple[Expression, ...]:
    load = genex("immediate", {"DREG": 1, "DATA": _data(struct.pack("!H", port))})
    return ([load], [genex("redir", {"REG_PROTO_MIN": 1})])


def _meta(key: int) -> Expression:
    return [genex("meta", {"KEY": key, "DREG": 1})]


def _payload(base: int, offset: int, length: int) -> Expression:
    return [genex("payload", {"DREG": 1, "BASE": base, "OFFSET": offset, "LEN": length})]


def _compare(value: bytes, how: int = _EQUAL) -> Expression:
    return [genex("cmp", {"SREG": 1, "OP": how, "DATA": _data(value)})]


def _data(value: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", value)]}


def _accept() -> Expression:
    found: Expression = verdict(_ACCEPT)
    return found


def _chain(tables: NFTables, name: str, hook: str) -> None:
    tables.chain(
        "add",
        table=TABLE,
        name=name,
        hook=hook,
        type="nat",
        priority=_DESTINATION_NAT,
        policy=_ACCEPT,
    )


def _rule(tables: NFTables, chain: str, expressions: tuple[Expression, ...]) -> None:
    tables.rule("add", table=TABLE, chain=chain, expressions=expressions)


def _subnets(texts: Sequence[str]) -> list[IPv4Network]:
    try:
        return [IPv4Network(each, strict=False) for each in texts]
    except ValueError as fault:
        raise UserFault(f"a network that is to be skipped cannot be read: {fault}") from fault

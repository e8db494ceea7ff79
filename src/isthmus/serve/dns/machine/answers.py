"""Finished answers: what a name has of a type, as bytes. Made once, and again when it changed.

An answer is a query of the engine like any other: it follows the mesh, is shared by all who ask,
and goes when it was not asked for in a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from dns import rdatatype
from dns.rdatatype import AAAA, ANY, CNAME, PTR, SOA, SRV, TXT, A

from isthmus.engine import View, query
from isthmus.mesh.dns import Foreign, Missing, Node, resolve
from isthmus.serve.dns.machine import records
from isthmus.serve.dns.machine.records import ASKED
from isthmus.serve.dns.machine.wire import Rcode

_IPV6: Final = ":"


class Finished(msgspec.Struct, frozen=True):
    """The three sections after the question. `body` is all of them."""

    rcode: Rcode
    ours: bool
    answer: tuple[bytes, ...] = ()
    authority: tuple[bytes, ...] = ()
    additional: tuple[bytes, ...] = ()
    body: bytes = b""


def _finish(
    rcode: Rcode,
    answer: Sequence[bytes],
    authority: Sequence[bytes] = (),
    additional: Sequence[bytes] = (),
    *,
    ours: bool = True,
) -> Finished:
    parts = tuple(answer), tuple(authority), tuple(additional)
    return Finished(rcode, ours, *parts, b"".join(map(b"".join, parts)))


FOREIGN: Final = _finish(Rcode.REFUSED, (), ours=False)
NOBODY: Final = _finish(Rcode.NXDOMAIN, (), ours=False)
FAILED: Final = _finish(Rcode.SERVFAIL, (), ours=False)
"""The answer to a question whose evaluation failed: a bug of ours."""


@query
def finished(db: View, name: str, rdtype: int) -> Finished:
    """The answer to a question of class IN."""
    resolution = resolve(db, name)
    owner, chain = ASKED, []
    for each in resolution.aliases if rdtype != CNAME else resolution.aliases[:1]:
        chain.append(records.alias(owner, each))
        owner = records.name(each)
    if chain and rdtype in (CNAME, ANY):
        return _finish(Rcode.NOERROR, chain)
    match resolution.found:
        case Foreign():
            return _finish(Rcode.NOERROR, chain) if chain else FOREIGN
        case Missing(zone):
            if not zone and not chain:
                return NOBODY
            told = [_authority(zone)] if zone else []
            return _finish(Rcode.NXDOMAIN, chain, told)
        case Node() as node:
            apex = node.zone == (resolution.aliases[-1] if chain else name)
            return _of_node(node, owner, rdtype, chain, apex=apex)


def _authority(zone: str) -> bytes:
    return records.authority(records.name(zone), zone)


def _of_node(
    node: Node, owner: bytes, rdtype: int, chain: Sequence[bytes], *, apex: bool
) -> Finished:
    found = _records(node, owner, rdtype, apex=apex)
    if rdtype == ANY:
        # Any one set of records will do (RFC 8482), so that nobody is flooded by our answers.
        usual = (A, AAAA, SRV, PTR, TXT, SOA)
        found = next(filter(None, (_records(node, owner, one, apex=apex) for one in usual)), ())
    if not found:
        return _finish(Rcode.NOERROR, chain, [_authority(node.zone)])
    return _finish(Rcode.NOERROR, [*chain, *found], additional=_glue(node, rdtype))


def _records(node: Node, owner: bytes, rdtype: int, *, apex: bool) -> Sequence[bytes]:
    """What the name has of one type."""
    match rdtype:
        case rdatatype.A:
            return [records.address(owner, ip) for ip in node.ips if _IPV6 not in ip]
        case rdatatype.AAAA:
            return [records.address(owner, ip) for ip in node.ips if _IPV6 in ip]
        case rdatatype.SRV:
            return [records.server(owner, one.port, one.target) for one in node.servers]
        case rdatatype.PTR:
            return [records.pointer(owner, each) for each in node.pointers]
        case rdatatype.TXT:
            return [records.text(owner, each) for each in node.texts]
        case rdatatype.SOA if apex:
            return [records.authority(owner, node.zone)]
        case rdatatype.NS if apex:
            return [records.name_server(owner, node.zone)]
    return ()


def _glue(node: Node, rdtype: int) -> Sequence[bytes]:
    """The addresses of servers, which is what clients ask for next (RFC 2782)."""
    if rdtype != SRV:
        return ()
    targets = {one.target: one.ips for one in node.servers}
    return [
        records.address(records.name(target), ip) for target, ips in targets.items() for ip in ips
    ]

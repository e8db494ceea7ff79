"""Objects that a proxy rejects say so until it takes them (`isthmus.dev/ProxyRejected`).

The proxy keeps what it took before; what is guilty stands in the message, in the proxy's words. No
object has the condition before something of it was rejected.
"""

from __future__ import annotations

from typing import Final

from isthmus.controllers.steps import Plan, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import CENSUS, PROXY_REJECTED, REJECTED, CensusKey, Place
from isthmus.mesh.rejections import REJECTIONS, Rejection

SHOWN: Final = 4
"""Resources that a message names, and proxies of each; it tells how many more there are."""


@query
def keys(db: View, where: Place) -> tuple[CensusKey, ...]:
    """Every object of a namespace that is rejected, or says so."""
    return tuple(sorted({*REJECTIONS.names(db, where), *REJECTED.get(db, where)}))


@query
def plan(db: View, key: CensusKey) -> Plan:
    """Say what is not said yet."""
    row = CENSUS.get(db, key)
    if row is None or row.metadata.deletion_timestamp:
        return ()
    found, said = REJECTIONS.get(db, key) or (), row.rejected
    wanted = _wanted(found)
    if said is None and not found:
        return ()
    if said is not None and (said.status, said.reason, said.message) == wanted:
        return ()
    status, reason, message = wanted
    one = {"type": PROXY_REJECTED, "status": status, "reason": reason, "message": message}
    merge = canonical({"status": {"conditions": [one]}})
    return (Update(key.resource, key.namespace, key.name, row.metadata.uid, merge, "status"),)


def _wanted(found: tuple[Rejection, ...]) -> tuple[str, str, str]:
    if not found:
        return "False", "Accepted", "proxies take all of it"
    told = "; ".join(_told(each) for each in found[:SHOWN])
    return "True", "Rejected", f"{told}{_more(len(found))}; the version before stays in use"


def _told(one: Rejection) -> str:
    proxies = ", ".join(one.proxies[:SHOWN])
    return f"{one.type} {one.name}: {one.message} (proxy {proxies}{_more(len(one.proxies))})"


def _more(count: int) -> str:
    return f" and {count - SHOWN} more" if count > SHOWN else ""

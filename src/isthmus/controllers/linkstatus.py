"""The status of Links: what became of each Service, and how the other cluster is reached.

Reachable         its API answers
CredentialsValid  it knows us, and we may read what mirroring needs
Stale             what we know of it may be old
GatewayAlive      its gateway answers probes; only of a Link with a gateway
Accepted          False names what means nothing, or why the Link leads nowhere
Listed            False if there are more Services than a status holds

While a cluster was not heard of since the start, what was reported of its Services stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from isthmus.controllers.conditions import Says, news
from isthmus.controllers.names import suffix
from isthmus.controllers.reports import MOST, Listing, Which, failures, listing
from isthmus.controllers.steps import JSON, Create, Delete, Plan, Update, canonical
from isthmus.engine import View, query
from isthmus.mesh.census import BY_OWNER, CENSUS, CensusKey, Place
from isthmus.mesh.exports import synced
from isthmus.mesh.linked import refusal, staleness_problem
from isthmus.mesh.links import LINK_HEALTH, LINK_STATUS, LINKS, LinkHealth, Reached
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import GROUP, LINK, Link, LinkStatus, Report

REST: Final = 1.0
"""Seconds between two writes of one status: it may list many Services."""
EVENTS: Final = 16
"""Events of one Link."""
SKIPPED: Final = "ServiceMirroringSkipped"
OURS: Final = ("Accepted", "CredentialsValid", "Reachable", "Stale", "GatewayAlive", "Listed")


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every Link of a namespace."""
    return LINKS.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """What the status does not say yet, and the events of what is skipped."""
    row, said = LINKS.get(db, key), LINK_STATUS.get(db, key)
    if row is None or said is None or row.metadata.deletion_timestamp:
        return ()
    status: dict[str, JSON] = {}
    found = conditions(db, key)
    if some := news(said.status.conditions, found, OURS, said.metadata.generation):
        status["conditions"] = some
    status |= _lists(db, key, row, said.status)
    steps = _events(db, key, row)
    if not status:
        return steps
    merge, uid = canonical({"status": status}), row.metadata.uid
    return (Update(LINK.resource, key.namespace, key.name, uid, merge, "status"), *steps)


# ------------------------------------------------------------------------------------ lists


def _lists(db: View, key: ObjectKey, row: Link, said: LinkStatus) -> dict[str, JSON]:
    """The lists that differ: written whole, and empty ones explicitly."""
    waiting = refusal(db, key) is None and not synced(db, row.spec.target_cluster_name)
    held = {
        "mirrorServices": (said.mirror_services, Which.MIRROR),
        "federatedServices": (said.federated_services, Which.FEDERATED),
    }
    found: dict[str, JSON] = {}
    for name, (now, which) in held.items():
        if waiting and now is not None:
            continue
        wanted = () if waiting else reported(db, key, which).reports
        if now is None or tuple(map(_timeless, now)) != wanted:
            found[name] = [_document(one) for one in wanted]
    return found


@query
def reported(db: View, key: ObjectKey, which: Which) -> Listing:
    """What a Link has to report; nothing if it leads nowhere."""
    return listing(db, key, which) if refusal(db, key) is None else Listing(())


def _timeless(report: Report) -> Report:
    said = tuple(
        msgspec.structs.replace(one, last_transition_time="", last_update_time="")
        for one in report.conditions
    )
    return msgspec.structs.replace(report, conditions=said)


def _document(report: Report) -> JSON:
    return {
        "controllerName": report.controller_name,
        "remoteRef": _ref(report.remote_ref),
        "conditions": [
            {
                "type": one.type,
                "status": one.status,
                "reason": one.reason,
                "message": one.message,
                **({"localRef": _ref(one.local_ref)} if one.local_ref is not None else {}),
            }
            for one in report.conditions
        ],
    }


def _ref(ref: Any) -> JSON:  # noqa: ANN401 - a ServiceRef
    return {"group": ref.group, "kind": ref.kind, "name": ref.name, "namespace": ref.namespace}


# ------------------------------------------------------------------------------- conditions


@query
def conditions(db: View, key: ObjectKey) -> tuple[Says, ...]:
    """What a Link says of itself."""
    row, health = LINKS.get(db, key), LINK_HEALTH.get(db, key)
    if row is None:
        return ()
    found = [_accepted(db, key), *_connection(db, key, health)]
    if row.spec.gateway_address:
        found.append(_gateway(health))
    if more := sum(reported(db, key, which).more for which in Which):
        text = f"each list names {MOST} Services, what failed first; {more} are left out"
        found.append(Says("Listed", False, "TooMany", text))
    return tuple(found)


def _accepted(db: View, key: ObjectKey) -> Says:
    refused, problem = refusal(db, key), staleness_problem(db, key)
    if refused is not None:
        return Says("Accepted", False, refused.reason, refused.message)
    if problem is not None:
        return Says("Accepted", False, "Invalid", problem.warning)
    return Says("Accepted", True, "Accepted", "the Link counts")


def _connection(db: View, key: ObjectKey, health: LinkHealth | None) -> Iterable[Says]:
    if refusal(db, key) is not None or health is None:
        reason = "Pending" if refusal(db, key) is None else "NotAccepted"
        text = "nobody has tried yet" if reason == "Pending" else "the Link does not count"
        holds: tuple[bool | None, ...] = (None, None, None)
    else:
        holds, reason = _STATES[health.state], health.reason or _WORDS[health.state]
        text = health.message or _SAYS[health.state]
    names = ("CredentialsValid", "Reachable", "Stale")
    return [Says(name, each, reason, text) for name, each in zip(names, holds, strict=True)]


_STATES: Final[dict[Reached, tuple[bool | None, bool | None, bool | None]]] = {
    Reached.REFUSED: (False, None, None),
    Reached.CONNECTING: (None, False, None),
    Reached.SYNCED: (True, True, False),
    Reached.STALE: (None, False, True),
    Reached.DEAD: (None, False, True),
}
"""CredentialsValid, Reachable, Stale."""
_WORDS: Final = {
    Reached.REFUSED: "Refused",
    Reached.CONNECTING: "Connecting",
    Reached.SYNCED: "Synced",
    Reached.STALE: "Silent",
    Reached.DEAD: "Dead",
}
_SAYS: Final = {
    Reached.REFUSED: "the credentials do not do",
    Reached.CONNECTING: "the first answer is awaited",
    Reached.SYNCED: "everything is known and up to date",
    Reached.STALE: "the API is silent; what was known stays",
    Reached.DEAD: "neither the API nor anything behind it answers; its endpoints are left out",
}


def _gateway(health: LinkHealth | None) -> Says:
    alive = health.gateway_alive if health is not None else None
    if alive is None:
        return Says("GatewayAlive", None, "NotProbed", "no probe was answered or missed yet")
    if alive:
        return Says("GatewayAlive", True, "Alive", "the gateway answers probes")
    return Says("GatewayAlive", False, "Dead", "the gateway does not answer probes")


# ----------------------------------------------------------------------------------- events


def _events(db: View, key: ObjectKey, row: Link) -> Plan:
    """One event for each Service that is skipped, as long as it is; EVENTS of them at most."""
    wanted = dict(_event(key, row, one) for one in list(failures(db, key))[:EVENTS])
    if refusal(db, key) is not None:
        wanted = {}
    held = {
        at.name: at
        for at in BY_OWNER.get(db, row.metadata.uid)
        if (at.cluster, at.resource, at.namespace) == (key.cluster, "events", key.namespace)
    }
    new = [
        Create("events", key.namespace, name, text)
        for name, text in wanted.items()
        if name not in held
    ]
    gone = [at for name, at in held.items() if name not in wanted]
    return (*new, *(step for at in gone for step in _forget(db, at)))


def _forget(db: View, at: CensusKey) -> Plan:
    row = CENSUS.get(db, at)
    if row is None:
        return ()
    return (Delete("events", at.namespace, at.name, row.metadata.uid),)


def _event(key: ObjectKey, row: Link, report: Report) -> tuple[str, bytes]:
    said, about = report.conditions[0], report.remote_ref
    text = f"Skipped mirroring service {about.namespace}/{about.name}: {said.message}"
    name = f"{key.name[:200]}.{suffix(row.metadata.uid, said.reason, text, length=12)}"
    link = {"kind": "Link", "apiVersion": f"{GROUP}/v1alpha3", "name": key.name}
    link["uid"] = row.metadata.uid
    metadata = {"name": name, "namespace": key.namespace, "ownerReferences": [link]}
    document = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": {**link, "namespace": key.namespace},
        "reason": SKIPPED,
        "message": text,
        "type": "Warning",
        "count": 1,
        "source": {"component": "isthmus-service-mirror"},
        "reportingComponent": "isthmus-service-mirror",
    }
    return name, canonical(document)

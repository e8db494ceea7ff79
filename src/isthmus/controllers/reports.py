"""What became of each Service that a Link selects: the lists of its status, as queries.

A Link may select 10,000 Services. Reports are kept in shards, so that a change of one costs what
its shard holds; and lists are bounded, since an object is: those that failed come first then.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from isthmus.controllers import federated, mirror
from isthmus.controllers.trouble import TROUBLE
from isthmus.engine import View, query
from isthmus.mesh.exports import (
    Claim,
    Mode,
    Target,
    is_federated,
    is_mirror,
    members_in,
    mirror_name,
    mirrored_in,
    mode,
    namespaces_of,
)
from isthmus.mesh.gateways import EXPORTED, has_no_name
from isthmus.mesh.members import cannot_join, federated_key
from isthmus.mesh.tables import NAMESPACES, SERVICES
from isthmus.model.core import Service
from isthmus.model.key import ObjectKey
from isthmus.model.multicluster import MirroredCondition, Report, ServiceRef

MOST: Final = 500
"""Reports in each list: the document of a status is checked as a whole, at every write."""
NAMED: Final = "linkerd.io/service-mirror"
MIRRORS: Final = "mirrors"
FEDERATED: Final = "federated-services"
"""The controllers whose trouble is told here."""
CLOSED: Final = f'the gateway lets nobody in to Services without the label {EXPORTED}: "true"'
_SHARDS: Final = 64
_SMALL: Final = 128


class Which(StrEnum):
    """The two lists of a Link's status."""

    MIRROR = "mirror"
    FEDERATED = "federated"

    __hash__ = str.__hash__  # members of keys: an enum's own is a Python function


class Outcome(NamedTuple):
    """What became of one Service."""

    reason: str
    message: str
    local: ObjectKey | None

    @property
    def good(self) -> bool:
        """Whether it stands here."""
        return self.local is not None


class Listing(msgspec.Struct, frozen=True):
    """A list of a status. `more` is how many reports it leaves out."""

    reports: tuple[Report, ...]
    more: int = 0


# ----------------------------------------------------------------------------------- shards


def _names(db: View, link: ObjectKey, which: Which, namespace: str) -> tuple[ObjectKey, ...]:
    pick = mirrored_in if which is Which.MIRROR else members_in
    return pick(db, link, namespace)


@query
def shards(
    db: View, link: ObjectKey, which: Which, namespace: str
) -> tuple[tuple[ObjectKey, ...], ...]:
    """The Services of one namespace that a Link selects, in heaps of a size to look through."""
    found = _names(db, link, which, namespace)
    if len(found) <= _SMALL:
        return (found,) if found else ()
    heaps: list[list[ObjectKey]] = [[] for _ in range(_SHARDS)]
    for each in found:
        heaps[crc32(each.name.encode()) % _SHARDS].append(each)
    return tuple(tuple(heap) for heap in heaps)


@query
def shard(
    db: View, link: ObjectKey, which: Which, namespace: str, at: int
) -> tuple[ObjectKey, ...]:
    """One of the heaps; a change of another is none of this."""
    found = shards(db, link, which, namespace)
    return found[at] if at < len(found) else ()


class Heap(NamedTuple):
    """The reports of one heap."""

    bad: tuple[Report, ...]
    good: tuple[Report, ...]


@query
def reports_of(db: View, link: ObjectKey, which: Which, namespace: str, at: int) -> Heap:
    """The reports of one heap."""
    outcome = mirror_outcome if which is Which.MIRROR else member_outcome
    found = ((each, outcome(db, link, each)) for each in shard(db, link, which, namespace, at))
    told = [(what.good, _report(each, what)) for each, what in found if what is not None]
    bad = tuple(report for good, report in told if not good)
    return Heap(bad, tuple(report for good, report in told if good))


@query
def listing(db: View, link: ObjectKey, which: Which) -> Listing:
    """The list of a Link's status, by namespace and name; where not all fit, what failed does."""
    heaps = [
        reports_of(db, link, which, namespace, at)
        for namespace in namespaces_of(db, link)
        for at in range(len(shards(db, link, which, namespace)))
    ]
    bad = chain.from_iterable(heap.bad for heap in heaps)
    kept = list(islice(chain(bad, *(heap.good for heap in heaps)), MOST))
    more = sum(len(heap.bad) + len(heap.good) for heap in heaps) - len(kept)
    return Listing(tuple(sorted(kept, key=_order)), more)


def _order(one: Report) -> tuple[str, str]:
    return one.remote_ref.namespace, one.remote_ref.name


def failures(db: View, link: ObjectKey) -> Iterator[Report]:
    """Reports of what does not stand here, those of mirrors first."""
    for which in Which:
        for one in listing(db, link, which).reports:
            if one.conditions[0].status != "True":
                yield one


def _report(remote: ObjectKey, what: Outcome) -> Report:
    status = "True" if what.good else "False"
    local = what.local
    ref = ServiceRef(name=local.name, namespace=local.namespace) if local is not None else None
    said = MirroredCondition(
        type="Mirrored",
        status=status,
        reason=what.reason,
        message=what.message,
        local_ref=ref,
    )
    about = ServiceRef(name=remote.name, namespace=remote.namespace)
    return Report(NAMED, about, (said,))


# --------------------------------------------------------------------------------- outcomes


@query
def mirror_outcome(db: View, link: ObjectKey, remote: ObjectKey) -> Outcome | None:
    """What became of an export; None while it is on its way."""
    how = mode(db, link, remote)
    if how is None:
        return None
    claim = Claim(Target(remote.cluster, link), remote, how)
    key = ObjectKey(link.cluster, remote.namespace, mirror_name(remote))
    if refused := mirror.refusal(db, claim):
        return Outcome(refused.reason, refused.message, None)
    if missing := _missing(db, key):
        return missing
    winner, held = mirror.accepted(db, key), SERVICES.get(db, key)
    if winner is not None and winner != claim:
        taken = f"{winner.remote.name} of cluster {winner.target.cluster}"
        return Outcome("Error", f"{key.name} is the mirror of {taken}, whose Link is older", None)
    if held is not None and not is_mirror(held):
        return _foreign(key)
    found = _written(db, MIRRORS, key, held)
    closed = how is Mode.GATEWAY and has_no_name(db, remote)
    return found._replace(message=CLOSED) if found and found.good and closed else found


@query
def member_outcome(db: View, link: ObjectKey, remote: ObjectKey) -> Outcome | None:
    """What became of a Service that asks to be a member; None while it is on its way."""
    row, key = SERVICES.get(db, remote), federated_key(link.cluster, remote)
    if row is not None and (why := cannot_join(row)):
        return Outcome("InvalidService", why, None)
    if missing := _missing(db, key):
        return missing
    held = SERVICES.get(db, key)
    if held is not None and not is_federated(held):
        return _foreign(key)
    found = _written(db, FEDERATED, key, held)
    if found is None or not found.good:
        return found
    gaps = [each.why for each in federated.disagreements(db, key) if each.service == remote]
    return found._replace(message=f"ports differ: {gaps[0]}") if gaps else found


def _missing(db: View, key: ObjectKey) -> Outcome | None:
    row = NAMESPACES.get(db, ObjectKey(key.cluster, "", key.namespace))
    if row is None:
        return Outcome("MissingNamespace", f"namespace does not exist: {key.namespace}", None)
    if row.metadata.deletion_timestamp:
        return Outcome("MissingNamespace", f"namespace is being deleted: {key.namespace}", None)
    return None


def _foreign(key: ObjectKey) -> Outcome:
    text = f"a Service {key.namespace}/{key.name} is here already; it is not ours and stays"
    return Outcome("Error", text, None)


def _written(db: View, controller: str, key: ObjectKey, held: Service | None) -> Outcome | None:
    trouble = TROUBLE.get(db, (controller, key))
    if trouble is not None:
        return Outcome("Error", trouble, None)
    return Outcome("Mirrored", "", key) if held is not None else None

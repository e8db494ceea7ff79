"""Federated Services: what share of the requests each member has.

Without annotations all members are one set, and endpoints count alike. With them (see
docs/multicluster-shares.md) members stand in groups by priority; the first group that has somebody
gets the requests, each member by its weight if any member of the group has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from isthmus.engine import View, query
from isthmus.mesh.services import Federated, discovery
from isthmus.mesh.settings import settings
from isthmus.mesh.tables import SERVICES
from isthmus.model.annotations import LOCAL, Problem, Share
from isthmus.model.annotations import shares as parse_shares
from isthmus.model.annotations.keys import MEMBER
from isthmus.model.key import ObjectKey

_DEFAULT: Final = Share()


class Portion(NamedTuple):
    """Members that are one target, and its weight within the group.

    `subset` is its name in the target's: `member-east`, `priority-1`.
    """

    subset: str
    members: tuple[ObjectKey, ...]
    weight: int = 1


Group = tuple[Portion, ...]
"""Portions of one priority, the heaviest first."""


class Shares(msgspec.Struct, frozen=True):
    """What the annotations say: `groups` by priority, () where nothing is to be kept apart.

    `problems` are for the status of the Service; what they are about has no effect.
    """

    groups: tuple[Group, ...] = ()
    problems: tuple[Problem, ...] = ()


_NOTHING: Final = Shares()


def portions(db: View, service: ObjectKey) -> tuple[Group, ...]:
    """The groups of a federated Service in the order in which they are used; () without shares."""
    federated = isinstance(discovery(db, service), Federated)
    return shares(db, service).groups if federated else ()


@query
def share_problems(db: View, service: ObjectKey) -> tuple[Problem, ...]:
    """What is wrong with the annotations that give members shares."""
    return shares(db, service).problems


def named(db: View, service: ObjectKey, subset: str) -> tuple[ObjectKey, ...] | None:
    """The members of a portion; None where there is no such portion."""
    for group in portions(db, service):
        for portion in group:
            if portion.subset == subset:
                return portion.members
    return None


@query
def shares(db: View, service: ObjectKey) -> Shares:
    """The shares of a Service's members; nothing for one that is not federated."""
    row, found = SERVICES.get(db, service), discovery(db, service)
    if row is None or not isinstance(found, Federated):
        return _NOTHING
    said = parse_shares(row.metadata.annotations)
    if not said:
        return _NOTHING
    local = settings(db).cluster
    problems = tuple(_problems(found.members, said, local))
    given = [(one, _given(said, one.cluster, local)) for one in found.members]
    kept = [(one, share) for one, share in given if not share.drain]
    if given and not kept:
        problems = (*problems, _drained(given, said, local))
    return Shares(_apart(kept or given, len(given)), problems)


def _given(said: dict[str, Share | Problem], cluster: str, local: str) -> Share:
    """A member's share: by its cluster's name, the local one's also as `local`."""
    found = said.get(cluster)
    if found is None and cluster == local:
        found = said.get(LOCAL)
    return found if isinstance(found, Share) else _DEFAULT


def _problems(
    members: Sequence[ObjectKey], said: dict[str, Share | Problem], local: str
) -> Iterator[Problem]:
    clusters = {one.cluster for one in members}
    for name, share in said.items():
        if isinstance(share, Problem):
            yield share
        elif name == LOCAL and local in said and local != LOCAL:
            yield Problem(f"{MEMBER}{name}", "", f"the local member is spoken of as {local} too")
        elif name not in clusters and not (name == LOCAL and local in clusters):
            yield Problem(f"{MEMBER}{name}", "", f"no member is of a cluster {name}")


def _drained(
    given: Sequence[tuple[ObjectKey, Share]], said: dict[str, Share | Problem], local: str
) -> Problem:
    first = given[0][0].cluster
    name = first if first in said or first != local else LOCAL
    return Problem(f"{MEMBER}{name}", "drain", "every member drains, so none does")


# -------------------------------------------------------------------------------- groups


def _apart(given: Sequence[tuple[ObjectKey, Share]], members: int) -> tuple[Group, ...]:
    """Groups by priority; none if all members are left and alike."""
    ranked = sorted(given, key=lambda one: one[1].priority)
    groups = tuple(
        _group(priority, list(some))
        for priority, some in groupby(ranked, key=lambda one: one[1].priority)
    )
    alike = len(groups) == 1 and len(groups[0]) == 1 and len(groups[0][0].members) == members
    return () if alike else groups


def _group(priority: int, given: Sequence[tuple[ObjectKey, Share]]) -> Group:
    weighted = any(share.weight is not None for _, share in given)
    if not weighted and len(given) > 1:
        return (Portion(f"priority-{priority}", tuple(one for one, _ in given)),)
    found: dict[str, Portion] = {}
    for one, share in given:
        label = _label(one.cluster)
        before = found[label].members if label in found else ()
        found[label] = Portion(label, (*before, one), share.weight or 1)
    return tuple(sorted(found.values(), key=lambda one: -one.weight))


def _label(cluster: str) -> str:
    """A member as one label of a name."""
    return f"member-{cluster.replace('.', '--')}"

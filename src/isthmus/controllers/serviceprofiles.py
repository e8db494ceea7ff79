"""ServiceProfiles: what became of each, in its status (decision 25).

Accepted      False names every part that means nothing and is left out; the rest is served
ResolvedRefs  whether the Service of its name, and those it sends traffic to, are there
Supported     False names what proxies will not do as it is written
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from isthmus.controllers.pods import condition
from isthmus.controllers.settings import SETTINGS
from isthmus.controllers.steps import Plan, Update, canonical
from isthmus.engine import View, query
from isthmus.ir.names import Origin, Ref
from isthmus.mesh.asked import ProfileKey, ServiceHost
from isthmus.mesh.census import Place
from isthmus.mesh.clusters import cluster
from isthmus.mesh.names import Authority, ServiceName, parse_authority
from isthmus.mesh.policy_tables import SERVICE_PROFILES
from isthmus.mesh.serviceprofile import meaning
from isthmus.mesh.services import first_port
from isthmus.model.key import ObjectKey
from isthmus.model.meta import CountedCondition
from isthmus.model.serviceprofile import GROUP, SERVICE_PROFILE, ServiceProfile, in_route

SHOWN = 16
"""Faults that a message names; it tells how many more there are."""


class Says(NamedTuple):
    """A condition, without its times."""

    type: str
    holds: bool
    reason: str
    message: str


@query
def keys(db: View, where: Place) -> tuple[ObjectKey, ...]:
    """Every ServiceProfile of a namespace."""
    return SERVICE_PROFILES.names(db, where)


@query
def plan(db: View, key: ObjectKey) -> Plan:
    """Say what is not said yet, of the generation that is there."""
    row = SERVICE_PROFILES.get(db, key)
    if row is None or row.profile.metadata.deletion_timestamp:
        return ()
    profile = row.profile
    wanted = (_accepted(db, key, profile), _resolved(db, key), _supported(db, key))
    generation = profile.metadata.generation
    news = list(_news(profile.status.conditions, wanted, generation))
    if not news:
        return ()
    merge = canonical({"status": {"conditions": news}})
    resource, uid = SERVICE_PROFILE.resource, profile.metadata.uid
    return (Update(resource, key.namespace, key.name, uid, merge, "status"),)


def _news(
    said: tuple[CountedCondition, ...], wanted: Iterable[Says], generation: int
) -> Iterator[dict[str, Any]]:
    for each in wanted:
        now = condition(said, each.type)
        status = "True" if each.holds else "False"
        new = CountedCondition(
            each.type, status, each.reason, each.message, observed_generation=generation
        )
        if not isinstance(now, CountedCondition) or _content(now) != _content(new):
            yield {
                "type": each.type,
                "status": status,
                "reason": each.reason,
                "message": each.message,
                "observedGeneration": generation,
            }


def _content(one: CountedCondition) -> tuple[object, ...]:
    return one.status, one.reason, one.message, one.observed_generation


def _accepted(db: View, key: ObjectKey, profile: ServiceProfile) -> Says:
    said = meaning(db, key)
    faults = said.faults if said is not None else ()
    if not faults:
        return Says("Accepted", True, "Accepted", "everything is served")
    told = [f"{each.path}{_route_name(profile, each.path)}: {each.why}" for each in faults]
    return Says("Accepted", False, "Invalid", f"{_listed(told)}; the rest is served")


def _route_name(profile: ServiceProfile, path: str) -> str:
    """Which route a path leads into, as its writer calls it."""
    at = in_route(path)
    routes = profile.spec.routes
    return f" (route {routes[at].name!r})" if at is not None and at < len(routes) else ""


def _listed(told: list[str]) -> str:
    more = f" and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "; ".join(told[:SHOWN]) + more


# ---------------------------------------------------------------------------- references


def _resolved(db: View, key: ObjectKey) -> Says:
    service = _named(db, key.cluster, key.name)
    if service is None:
        text = f"{key.name} is not SERVICE.NAMESPACE.svc.{_domain(db, key.cluster)}"
        return Says("ResolvedRefs", False, "InvalidName", f"{text}: nothing reads this profile")
    if first_port(db, service) is None:
        text = f"Service {service.namespace}/{service.name} is not there, or has no port"
        return Says("ResolvedRefs", False, "ServiceNotFound", text)
    said = meaning(db, key)
    shares = said.shares if said is not None else ()
    missing = [each.authority for each in shares if not _there(db, key.cluster, each.authority)]
    if missing:
        text = f"spec.dstOverrides: {_listed(missing)}: no such Service"
        return Says("ResolvedRefs", False, "BackendNotFound", text)
    return Says("ResolvedRefs", True, "ResolvedRefs", "all references are resolved")


def _named(db: View, where: str, text: str) -> ObjectKey | None:
    """The Service of a name, with or without a port; None if it names none of this cluster."""
    found = parse_authority(text, _domain(db, where))
    match found:
        case Authority(ServiceName(namespace, service)):
            return ObjectKey(where, namespace, service)
        case _:
            return None


def _there(db: View, where: str, authority: str) -> bool:
    """Whether an authority leads somewhere, as far as we can know."""
    host, colon, port = authority.partition(":")
    service = _named(db, where, host.removesuffix(".") + colon + port)
    return service is None or first_port(db, service) is not None


def _domain(db: View, name: str) -> str:
    home = cluster(db, name)
    return home.cluster_domain if home is not None else ""


# ------------------------------------------------------------------------------- proxies


def _supported(db: View, key: ObjectKey) -> Says:
    service = _named(db, key.cluster, key.name)
    port = first_port(db, service) if service is not None else None
    settings = SETTINGS.get(db, key.cluster)
    told: list[str] = []
    features: list[str] = []
    if service is not None and port is not None and settings is not None:
        asked = ProfileKey(ServiceHost(service), port, key.namespace)
        mine = Origin(Ref(key.cluster, GROUP, "ServiceProfile", key.namespace, key.name))
        for faults in settings.unsupported:
            found = [each for each in faults(db, asked) if each.origin == mine]
            told += [f"{each.dialect}: {each.detail}" for each in found]
            features += [each.feature for each in found]
    if not told:
        return Says("Supported", True, "Supported", "proxies do what it says")
    return Says("Supported", False, features[0], _listed(told))

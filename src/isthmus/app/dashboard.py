"""What the dashboard shows: the cluster, its links, its proxies, and objects without effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from isthmus import __version__
from isthmus.errors import IsthmusError
from isthmus.model.conditions import is_well
from isthmus.serve.admin import Page
from isthmus.store import Store

SHOWN: Final = 100
"""Conditions that are told."""
READ: Final = 500
"""Objects of one kind that are looked at."""

RESOURCES: Final = (
    "httproutes.gateway.networking.k8s.io",
    "grpcroutes.gateway.networking.k8s.io",
    "tlsroutes.gateway.networking.k8s.io",
    "tcproutes.gateway.networking.k8s.io",
    "httproutes.policy.linkerd.io",
    "servers.policy.linkerd.io",
    "serverauthorizations.policy.linkerd.io",
    "authorizationpolicies.policy.linkerd.io",
    "meshtlsauthentications.policy.linkerd.io",
    "networkauthentications.policy.linkerd.io",
    "httplocalratelimitpolicies.policy.linkerd.io",
    "egressnetworks.policy.linkerd.io",
    "serviceprofiles.linkerd.io",
    "services",
)
"""Whose conditions are looked at."""


class Condition(msgspec.Struct, frozen=True):
    """A condition as stored."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Conditions(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    parents: tuple[_Conditions, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_DECODER: Final = msgspec.json.Decoder(_Object)


class Trouble(msgspec.Struct, frozen=True):
    """A condition of an object that says that it has no effect as it is written."""

    resource: str
    namespace: str
    name: str
    type: str
    status: str
    reason: str
    message: str


def overview(
    cluster: str,
    store: Store,
    reasons: Callable[[], Mapping[str, str]],
    pages: Mapping[str, Page],
) -> Callable[[Mapping[str, str]], Awaitable[object]]:
    """The page /overview. `pages` are those of links and proxies, as far as they are served."""

    def told(path: str) -> Any:  # noqa: ANN401  # a page's value
        return pages[path]({}) if path in pages else None

    async def page(_query: Mapping[str, str]) -> object:
        proxies = told("/proxies")
        return {
            "cluster": cluster,
            "version": __version__,
            "reasons": dict(reasons()),
            "links": told("/links") or [],
            "proxies": proxies.proxies if proxies is not None else [],
            "troubles": [each async for each in _troubles(store)],
        }

    return page


async def _troubles(store: Store) -> AsyncIterator[Trouble]:
    count = 0
    for resource in RESOURCES:
        try:
            page = await store.list(resource, limit=READ)
        except IsthmusError:  # what cannot be read now is not shown now
            continue
        for record in page.records:
            for each in not_well(record.value):
                if count == SHOWN:
                    return
                count += 1
                name = (resource, record.key.namespace, record.key.name)
                yield Trouble(*name, each.type, each.status, each.reason, each.message)


def not_well(stored: bytes) -> Iterator[Condition]:
    """The conditions of a stored object that are not as they should be."""
    try:
        status = _DECODER.decode(stored).status
    except msgspec.MsgspecError:  # somebody else's idea of a status
        return
    yield from _not_well(status.conditions)
    for parent in status.parents:
        yield from _not_well(parent.conditions)


def _not_well(conditions: Iterable[Condition]) -> Iterator[Condition]:
    return (each for each in conditions if not is_well(each.type, each.status))

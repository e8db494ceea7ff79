"""The seam for what stands beside a pod's applications: a proxy, run by the host's agent.

The lab calls it at four moments of a pod's life and knows nothing more. Without one, pods run bare.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Protocol

import msgspec

from isthmus.errors import Unavailable
from isthmus.lab.network.namespace import Namespace
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.mounts import Mount
from isthmus.lab.pods.process import Launch, Process
from isthmus.lab.pods.states import Record, Waiting
from isthmus.model.document import items, text


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod lives, for those who stand beside it."""

    cluster: str
    document: Document
    node: str
    host_ip: str
    ip: IPv4Address
    namespace: Namespace
    folder: Path
    """In memory, of this pod alone, gone with it."""
    logs: Path
    """Where output goes that people may want to read."""
    start: Callable[[Launch], Awaitable[Process]]
    """Starts a process in the pod's namespaces."""
    token: Callable[[str, int], Awaitable[str]]
    """A ServiceAccount token of the pod, for an audience and so many seconds."""
    changed: Callable[[], None]
    """To be called when `Sidecar.records` has changed."""


class Sidecar(Protocol):
    """One pod's. Its methods are called in this order, each once."""

    @property
    def names(self) -> frozenset[str]:
        """Containers of the pod's spec that it plays: the lab does not run them."""
        ...

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What the pod's containers find of it, once it has started."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Variables of the pod's containers; their own ones win."""
        ...

    def records(self) -> Mapping[str, Record]:
        """What the pod's status tells of those containers."""
        ...

    async def start(self) -> None:
        """Before the pod's first container: rules, then processes. Returns when it carries traffic.

        Raises:
            IsthmusError, OSError: it cannot; the pod waits and it is tried again.
        """
        ...

    async def drain(self, grace: float) -> None:
        """The pod is going: let peers find other ones first; `grace` seconds at most."""
        ...

    async def stop(self) -> None:
        """The pod's containers have ended."""
        ...


class Sidecars(Protocol):
    """Says which pods get one."""

    def beside(self, place: Place) -> Sidecar | None:
        """The sidecar of a pod that was injected; None for others."""
        ...


PROXY = "linkerd-proxy"
"""The container of an injected pod that a sidecar plays (decision 21)."""


def injected(document: Document) -> bool:
    """Whether a pod is to have a proxy beside it."""
    return any(text(each, "name") == PROXY for each in items(document, "spec.containers"))


class Missing:
    """The proxy of an injected pod where there can be none: the pod waits, and says why."""

    def __init__(self, document: Document, why: str) -> None:
        listed = items(document, "spec.containers")
        image = next((text(each, "image") for each in listed if text(each, "name") == PROXY), "")
        self._why = why
        self._record = Record(name=PROXY, image=image, state=Waiting(message=why))

    @property
    def names(self) -> frozenset[str]:
        return frozenset({PROXY})

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return ()

    @property
    def env(self) -> Mapping[str, str]:
        return {}

    def records(self) -> Mapping[str, Record]:
        return {PROXY: self._record}

    async def start(self) -> None:
        raise Unavailable(self._why)

    async def drain(self, grace: float) -> None:
        return

    async def stop(self) -> None:
        return


class Bare:
    """Where no agent is: pods run bare, and those that asked for a proxy do not run."""

    def __init__(self, why: str) -> None:
        self._why = why

    def beside(self, place: Place) -> Sidecar | None:
        return Missing(place.document, self._why) if injected(place.document) else None

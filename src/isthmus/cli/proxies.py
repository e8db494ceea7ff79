"""What the proxies of pods tell at their own port, through the cluster's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from isthmus.cli.cluster import Cluster
from isthmus.cli.kubeconfig import Access
from isthmus.errors import IsthmusError, UserFault

Json = Mapping[str, Any]

PORT_NAME: Final = "linkerd-admin"
PORT: Final = 4191
LARGEST: Final = 64 << 20
"""Bytes of a page."""

ABREAST: Final = 8
"""Pods that are asked at a time."""


def port(pod: Json) -> int:
    """Where a pod's proxy tells of itself.

    Raises:
        UserFault: it has none.
    """
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for each in container.get("ports") or ():
            if each.get("name") == PORT_NAME:
                return int(each.get("containerPort") or PORT)
    name = pod["metadata"]["name"]
    raise UserFault(f"the pod {name} has no proxy (no port named {PORT_NAME})")


def path(pod: Json, page: str) -> str:
    """The API's path of a page of a pod's proxy. UserFault if it has none."""
    meta = pod["metadata"]
    at = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
    return f"{at}:{port(pod)}/proxy/{page}"


def pages(access: Access, pods: Sequence[Json], names: Sequence[str]) -> list[str | IsthmusError]:
    """A page of each pod, as text, or why there is none; several are asked at a time."""

    def ask(pod: Json, page: str) -> str | IsthmusError:
        try:
            return Cluster(access).text(path(pod, page), LARGEST)
        except IsthmusError as fault:
            return fault

    with ThreadPoolExecutor(ABREAST) as pool:
        return list(pool.map(ask, pods, names))

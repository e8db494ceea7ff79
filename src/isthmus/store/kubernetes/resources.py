"""Which kinds are taken from other clusters, and under which paths their APIs have them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from isthmus.model.kind import Kind
from isthmus.model.registry import BUILT_IN


class Need(Enum):
    """What a view is worth without a resource.

    NEEDED: nothing, it would mislead. USUAL: less, and somebody is told. EXTRA: Linkerd's own
    accounts may not read it, so nobody misses it.
    """

    NEEDED = auto()
    USUAL = auto()
    EXTRA = auto()


class Resource(NamedTuple):
    """`kind` is ours; the API may serve any version that we know."""

    kind: Kind
    need: Need

    @property
    def name(self) -> str:
        """The resource part of store keys."""
        return self.kind.resource

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions to ask for, the one we keep first."""
        names = [each.name for each in self.kind.versions if each.served]
        return tuple(dict.fromkeys([self.kind.stored, *names]))

    def path(self, version: str) -> str:
        """Of the list over all namespaces."""
        group = self.kind.group
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}/{self.kind.plural}"


def _resource(name: str, need: Need) -> Resource:
    kind = BUILT_IN.by_key_resource(name)
    if kind is None:
        raise LookupError(f"the kind of {name} is not registered")
    return Resource(kind, need)


MIRRORED: Final[tuple[Resource, ...]] = (
    _resource("services", Need.NEEDED),
    _resource("endpointslices.discovery.k8s.io", Need.NEEDED),
    _resource("pods", Need.NEEDED),
    _resource("endpoints", Need.USUAL),
    _resource("replicasets.apps", Need.USUAL),
    _resource("jobs.batch", Need.USUAL),
    _resource("servers.policy.linkerd.io", Need.USUAL),
    _resource("externalworkloads.workload.linkerd.io", Need.EXTRA),
    _resource("namespaces", Need.EXTRA),
    _resource("authorizationpolicies.policy.linkerd.io", Need.EXTRA),
    _resource("meshtlsauthentications.policy.linkerd.io", Need.EXTRA),
    _resource("networkauthentications.policy.linkerd.io", Need.EXTRA),
)
"""All that mirroring reads. A link's account may list the first seven (Linkerd grants it those);
the others add what they can where they are allowed: the last three are for carried policies."""

BY_NAME: Final[Mapping[str, Resource]] = {each.name: each for each in MIRRORED}

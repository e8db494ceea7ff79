"""Which kinds there are: every look-up from a name of the API to a Kind record.

To add a kind, write its record in the module of its API group; to add a group, add its module here.
The order of modules is the order of discovery.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from isthmus.model import (
    apiextensions,
    apps,
    batch,
    coordination,
    core,
    discovery,
    gateway,
    multicluster,
    policy,
    rbac,
    reviews,
    serviceprofile,
    trafficsplit,
    workload,
)
from isthmus.model.kind import Kind


class Kinds(Protocol):
    """Where the present registry is had: it changes as kinds are defined."""

    @property
    def now(self) -> Registry:
        """Every kind at this moment."""
        ...


class Registry:
    """Kinds by every name they have. Immutable; `extended` makes a larger one."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """`kinds` in discovery order. ValueError if two share a name in one group."""
        self.kinds: tuple[Kind, ...] = tuple(kinds)
        self._by_resource: dict[tuple[str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        for kind in self.kinds:
            if (kind.group, kind.plural) in self._by_resource:
                raise ValueError(f"two kinds are called {kind.resource}")
            if (kind.group, kind.name) in self._by_kind:
                raise ValueError(f"two kinds are called {kind.name} in group {kind.group!r}")
            self._by_resource[kind.group, kind.plural] = kind
            self._by_kind[kind.group, kind.name] = kind

    @property
    def now(self) -> Registry:
        """Itself: who follows a registry that changes asks `now`, and may be given a fixed one."""
        return self

    def by_resource(self, group: str, plural: str) -> Kind | None:
        """The kind of a resource path: `by_resource("apps", "deployments")`."""
        return self._by_resource.get((group, plural))

    def by_kind(self, group: str, kind: str) -> Kind | None:
        """The kind a document names: `by_kind("apps", "Deployment")`."""
        return self._by_kind.get((group, kind))

    def by_api_version(self, api_version: str, kind: str) -> Kind | None:
        """The kind of a document's `apiVersion` and `kind`, if that version is served."""
        group, version = split_api_version(api_version)
        found = self.by_kind(group, kind)
        return found if found is not None and found.version(version) is not None else None

    def by_key_resource(self, resource: str) -> Kind | None:
        """The kind of a store key: `services`, `servers.policy.linkerd.io`."""
        plural, _, group = resource.partition(".")
        return self.by_resource(group, plural)

    def groups(self) -> tuple[str, ...]:
        """Every API group once, in discovery order; "" is the core group."""
        return tuple(dict.fromkeys(kind.group for kind in self.kinds))

    def versions(self, group: str) -> tuple[str, ...]:
        """The served versions of a group, the preferred one (most stable, newest) first."""
        names = {v.name for k in self.kinds if k.group == group for v in k.versions if v.served}
        return tuple(sorted(names, key=version_rank, reverse=True))

    def of_version(self, group: str, version: str) -> tuple[Kind, ...]:
        """The kinds that a group serves in a version."""
        return tuple(k for k in self.kinds if k.group == group and k.version(version) is not None)

    def extended(self, kinds: Iterable[Kind]) -> Registry:
        """This registry and `kinds` after it."""
        return Registry((*self.kinds, *kinds))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.kinds)


def split_api_version(api_version: str) -> tuple[str, str]:
    """`("", "v1")` of `v1`, `("apps", "v1")` of `apps/v1`."""
    group, _, version = api_version.rpartition("/")
    return group, version


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else."""
    digits, stage, number = _split_version(version)
    if digits < 0:
        return (0, 0, 0, version)
    return ({"": 3, "beta": 2, "alpha": 1}[stage], digits, number, "")


def _split_version(version: str) -> tuple[int, str, int]:
    rest = version.removeprefix("v")
    for stage in ("alpha", "beta"):
        major, found, minor = rest.partition(stage)
        if found and major.isdecimal() and minor.isdecimal():
            return int(major), stage, int(minor)
    return (int(rest), "", 0) if rest.isdecimal() and rest != version else (-1, "", 0)


KINDS: tuple[Kind, ...] = (
    *core.KINDS,
    *apps.KINDS,
    *batch.KINDS,
    *discovery.KINDS,
    *coordination.KINDS,
    *rbac.KINDS,
    *reviews.KINDS,
    *apiextensions.KINDS,
    *gateway.KINDS,
    *policy.KINDS,
    *workload.KINDS,
    *multicluster.KINDS,
    *serviceprofile.KINDS,
    *trafficsplit.KINDS,
)

BUILT_IN = Registry(KINDS)
"""Every kind that Isthmus itself knows."""

by_resource = BUILT_IN.by_resource
by_kind = BUILT_IN.by_kind
by_api_version = BUILT_IN.by_api_version
by_key_resource = BUILT_IN.by_key_resource
groups = BUILT_IN.groups
versions = BUILT_IN.versions
of_version = BUILT_IN.of_version

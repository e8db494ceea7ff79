"""How objects are named, in the store and in the mesh's tables."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One object in one cluster's store.

    `resource` is the plural with its group, `services` or `servers.policy.linkerd.io`; `namespace`
    is empty for what is cluster-scoped. Keys sort as Kubernetes lists do: namespace, then name.
    """

    resource: str
    namespace: str
    name: str


class ObjectKey(NamedTuple):
    """One object of one kind in a table that spans clusters; the table says the kind."""

    cluster: str
    namespace: str
    name: str

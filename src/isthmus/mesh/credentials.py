"""Secrets that hold a kubeconfig of a linked cluster, as far as they are nobody's secret.

A Link names one in its own namespace. Those in the control plane's namespace that are labelled with
a cluster's name link that cluster for discovery even without a Link, and tell its trust domain and
its DNS domain. Of the kubeconfig itself only a digest is here: that it changed is all one must know
to read it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from isthmus.engine import Index, Table
from isthmus.mesh.census import Place
from isthmus.mesh.tables import Source, place
from isthmus.model.core import Secret
from isthmus.model.key import ObjectKey

TYPE: Final = "mirror.linkerd.io/remote-kubeconfig"
KUBECONFIG: Final = "kubeconfig"
"""The key of a Secret's data."""
CLUSTER_NAME: Final = "multicluster.linkerd.io/cluster-name"
TRUST_DOMAIN: Final = "multicluster.linkerd.io/trust-domain"
CLUSTER_DOMAIN: Final = "multicluster.linkerd.io/cluster-domain"


class Credentials(msgspec.Struct, frozen=True):
    """`digest` is of the kubeconfig, "" if there is none. `cluster` is what the label says."""

    digest: str
    cluster: str = ""
    trust_domain: str = ""
    cluster_domain: str = ""
    created: str = ""


CREDENTIALS: Table[ObjectKey, Credentials] = Table("credentials")

_SECRET: Final = msgspec.json.Decoder(Secret)


def credentials(value: bytes) -> Credentials | None:
    """The row of stored bytes; None for Secrets that neither are nor hold what links need.

    Raises:
        msgspec.MsgspecError: it cannot be read.
    """
    row = _SECRET.decode(value)
    held = row.data.get(KUBECONFIG, "")
    if row.type != TYPE and not held:
        return None
    meta = row.metadata
    return Credentials(
        digest=sha256(held.encode()).hexdigest() if held else "",
        cluster=meta.labels.get(CLUSTER_NAME, "") if row.type == TYPE else "",
        trust_domain=meta.annotations.get(TRUST_DOMAIN, ""),
        cluster_domain=meta.annotations.get(CLUSTER_DOMAIN, ""),
        created=meta.creation_timestamp,
    )


def _named(key: ObjectKey, row: Credentials) -> Iterable[Place]:
    return (place(key),) if row.cluster else ()


NAMED_CREDENTIALS: Index[ObjectKey, Credentials, Place] = Index(
    "named_credentials", CREDENTIALS, _named
)
"""Those that are labelled with a cluster's name, by namespace."""

CREDENTIAL_SOURCES: Final[Mapping[str, Source]] = {"secrets": Source(CREDENTIALS, credentials)}
"""By the resource part of store keys."""

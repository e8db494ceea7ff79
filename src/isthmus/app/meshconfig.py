"""What a cluster tells of its mesh: the ConfigMap `linkerd-config`, kept true.

Whoever holds a kubeconfig can read there what the cluster calls itself and whom its mesh trusts:
`isthmus check` does, other clusters' `multicluster check` and `multicluster link` do, and so do
Linkerd's own tools (facts in `values` stand under Linkerd's names; `clusterName` and
`identityIssuerPEM` are ours). A ConfigMap of that name that somebody else wrote is left alone.
"""

from __future__ import annotations

from typing import Final

import yaml

from isthmus import __version__
from isthmus.aio import Latest
from isthmus.app.announce import create_if_absent, kind
from isthmus.ca import Trust, chains
from isthmus.config import ServerConfig
from isthmus.model.kind import Document
from isthmus.store.objects import Writer

NAME: Final = "linkerd-config"
VALUES: Final = "values"
OURS: Final = {"app.kubernetes.io/managed-by": "isthmus"}


async def follow(objects: Writer, config: ServerConfig, trust: Latest[Trust | None]) -> None:
    """Write it, and again whenever the trust changes, until cancelled."""
    with trust.watch() as watch:
        while True:
            await write(objects, config, await watch.next())


async def write(objects: Writer, config: ServerConfig, trust: Trust | None) -> None:
    """Make the ConfigMap say what holds now. Its namespace is there (see `announce.publish`)."""
    namespace = config.control_plane_namespace
    wanted: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace, "labels": OURS},
        "data": {VALUES: values(config, trust)},
    }
    if not await create_if_absent(objects, kind("ConfigMap"), wanted):
        await objects.update(
            kind("ConfigMap"), namespace, NAME, lambda present: _updated(present, wanted)
        )


def values(config: ServerConfig, trust: Trust | None) -> str:
    """The facts as YAML; without trust yet, those about it are empty."""
    issuer = chains.write_pem(trust.way[:1]).decode() if trust is not None else ""
    facts = {
        "clusterName": config.cluster,
        "clusterDomain": config.cluster_domain,
        "clusterNetworks": ",".join(map(str, config.cluster_networks)),
        "linkerdVersion": __version__,
        "identityTrustDomain": config.trust_domain,
        "identityTrustAnchorsPEM": trust.bundle.decode() if trust is not None else "",
        "identityIssuerPEM": issuer,
    }
    return str(yaml.dump(facts, Dumper=_Readable, sort_keys=False))


class _Readable(yaml.SafeDumper):
    """PEM texts as blocks of lines: people read them too."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Readable.add_representer(str, _text)


def _updated(present: Document, wanted: Document) -> Document:
    metadata = present.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    ours = isinstance(labels, dict) and OURS.items() <= labels.items()
    return {**present, "data": wanted["data"]} if ours else present

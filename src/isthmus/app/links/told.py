"""What a cluster says of itself in its ConfigMap `linkerd-config`, if we may read that."""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.errors import IsthmusError, Unauthenticated
from isthmus.model.document import read_json, text
from isthmus.model.names import subdomain_problems
from isthmus.serve.kube.yaml_body import strict_yaml
from isthmus.store.kubernetes import Client

SECONDS: Final = 5.0
LARGEST: Final = 256 * 1024


class Told(NamedTuple):
    """Names; "" where it does not say."""

    cluster: str = ""
    trust_domain: str = ""
    cluster_domain: str = ""


async def told_by(client: Client, namespace: str) -> Told:
    """Ask it; what cannot be read says nothing.

    Raises:
        Unauthenticated: it does not take the credentials.
    """
    path = f"/api/v1/namespaces/{namespace}/configmaps/linkerd-config"
    try:
        document = read_json(await client.ask(path, seconds=SECONDS, most=LARGEST))
        values, _ = strict_yaml(text(document, "data.values").encode())
    except Unauthenticated:
        raise
    except IsthmusError:
        return Told()
    return Told(
        _name(text(values, "clusterName")),
        _name(text(values, "identityTrustDomain")),
        _name(text(values, "clusterDomain")),
    )


def _name(said: str) -> str:
    return "" if tuple(subdomain_problems(said)) else said

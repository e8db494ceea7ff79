"""The kubeconfig that a server leaves beside its data: one context, everything embedded."""

from __future__ import annotations

import base64

import yaml

from isthmus.ca.authority import Authority, Leaf

ADMIN = "isthmus-admin"
MASTERS = "system:masters"
"""The group that may do everything, in every Kubernetes."""


def kubeconfig(context: str, server: str, authority: Authority, client: Leaf) -> bytes:
    """The file's text. `context` names cluster and context; `server` is `https://host:port`.

    It holds a private key: write it with mode 0600.
    """
    user = f"{context}-admin"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": context,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": _base64(authority.bundle),
                },
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
        "contexts": [
            {
                "name": context,
                "context": {"cluster": context, "user": user, "namespace": "default"},
            }
        ],
        "current-context": context,
    }
    return yaml.safe_dump(document, sort_keys=False, width=2**20).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

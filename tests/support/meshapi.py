"""Objects in the compact notation, written through the HTTPS API of a real server.

What an API adds to the notation: the status is written on its own; who is to be deleted but still
there has a finalizer; owners must exist, or the collector takes what they own, so every namespace
has a ConfigMap that lends its uid to all of them; one of several ports has a name.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from itertools import count
from typing import Any

from tests.support.compact import Compact, Document, Name, document, name_in, name_of
from tests.support.server import ServerProcess

KEEP = "isthmus.test/keep"
ANCHOR = "anchor"
TOUCHED = "isthmus.test/touched"

_PREFIX = {
    "discovery.k8s.io": "/apis/discovery.k8s.io/v1",
    "apps": "/apis/apps/v1",
    "batch": "/apis/batch/v1",
    "linkerd.io": "/apis/linkerd.io/v1alpha2",
    "policy.linkerd.io": "/apis/policy.linkerd.io/v1beta3",
    "workload.linkerd.io": "/apis/workload.linkerd.io/v1beta1",
    "split.smi-spec.io": "/apis/split.smi-spec.io/v1alpha4",
    "gateway.networking.k8s.io": "/apis/gateway.networking.k8s.io/v1",
}
_OWN_VERSION = {
    "serverauthorizations": "v1beta1",
    "authorizationpolicies": "v1alpha1",
    "meshtlsauthentications": "v1alpha1",
    "networkauthentications": "v1alpha1",
    "httplocalratelimitpolicies": "v1alpha1",
    "egressnetworks": "v1alpha1",
    "tlsroutes": "v1alpha2",
}
WITH_STATUS = frozenset({"pods", "externalworkloads.workload.linkerd.io"})


class MeshApi:
    """Writes objects, remembers them, and takes them away again."""

    def __init__(self, server: ServerProcess, mesh: str) -> None:
        self._server = server
        self._connection = server.connect()
        self._mesh = mesh
        self._anchors: dict[str, str] = {}
        self._written: dict[Name, None] = {}
        self._numbers = count()

    def close(self) -> None:
        self._connection.close()

    # Verbs.

    def apply(self, *objects: Compact) -> None:
        """Create or replace objects, one after the other."""
        for each in objects:
            self._apply(name_of(each, self._mesh), document(each, self._mesh))

    def delete(self, *names: str) -> None:
        """Delete objects (`pod shop/cart-a`)."""
        for text in names:
            self._delete(name_in(text))

    def touch(self, *names: str) -> None:
        """Write objects such that who watches sees them again, with nothing new to the mesh."""
        for text in names:
            note = {"metadata": {"annotations": {TOUCHED: str(next(self._numbers))}}}
            self._ask("PATCH", self._path(name_in(text)), note, merge=True)

    def clear(self, *, but: str = "") -> None:
        """Take everything away that was written, outside the namespace `but`."""
        for name in reversed(list(self._written)):
            if name.namespace != but:
                self._delete(name)

    # Requests.

    def _apply(self, name: Name, wanted: Document) -> None:
        metadata = wanted["metadata"]
        self._adapt(metadata, name.namespace)
        if name.resource == "services":
            _name_ports(wanted["spec"]["ports"])
        going = bool(metadata.pop("deletionTimestamp", None))
        if going:
            metadata["finalizers"] = [KEEP]
        if name in self._written:
            made = self._ask("PUT", self._path(name), wanted)
        else:
            made = self._ask("POST", self._path(name, one=False), wanted)
        self._written[name] = None
        if name.resource in WITH_STATUS:
            whole = {**made, "status": wanted["status"]}
            self._ask("PUT", f"{self._path(name)}/status", whole)
        if going:
            self._ask("DELETE", self._path(name))

    def _adapt(self, metadata: Document, namespace: str) -> None:
        for gone in ("uid", "creationTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(gone, None)
        if namespace:
            anchor = self._anchor(namespace)
            for owner in metadata.get("ownerReferences", ()):
                owner["uid"] = anchor
                owner.pop("controller", None)

    def _anchor(self, namespace: str) -> str:
        """Make the namespace, if it is new; the uid that stands for owners in it."""
        if namespace not in self._anchors:
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self._ask("POST", "/api/v1/namespaces", place)
            kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ANCHOR}}
            made = self._ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", kind)
            self._anchors[namespace] = made["metadata"]["uid"]
        return self._anchors[namespace]

    def _delete(self, name: Name) -> None:
        self._written.pop(name, None)
        path = self._path(name)
        held = self._ask("GET", path, missing=True)
        if held.get("metadata", {}).get("finalizers"):
            self._ask("PATCH", path, {"metadata": {"finalizers": None}}, merge=True)
        self._ask("DELETE", f"{path}?gracePeriodSeconds=0", missing=True)

    def _path(self, name: Name, *, one: bool = True) -> str:
        plural, _, group = name.resource.partition(".")
        prefix = _PREFIX[group] if group else "/api/v1"
        if plural in _OWN_VERSION:
            prefix = f"/apis/{group}/{_OWN_VERSION[plural]}"
        where = f"/namespaces/{name.namespace}" if name.namespace else ""
        return f"{prefix}{where}/{plural}{f'/{name.name}' if one else ''}"

    def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        merge: bool = False,
        missing: bool = False,
    ) -> dict[str, Any]:
        kind = "application/merge-patch+json" if merge else "application/json"
        self._connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": kind}
        )
        answer = self._connection.getresponse()
        read: dict[str, Any] = json.loads(answer.read())
        if missing and answer.status == http.client.NOT_FOUND:
            return {}
        assert answer.status < http.client.BAD_REQUEST, f"{method} {path}: {read}\n{body}"
        return read


def _name_ports(ports: list[Document]) -> None:
    """One of several ports must have a name."""
    for port in ports if len(ports) > 1 else ():
        port.setdefault("name", f"p{port['port']}")


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 - YAML
    """One or several."""
    return value if isinstance(value, list) else [value]


def operations(done: Any) -> Iterable[tuple[str, list[Any]]]:  # noqa: ANN401 - YAML
    """Verbs of a step, in order, with what they are about."""
    for part in as_list(done):
        for verb, what in part.items():
            yield verb, as_list(what)

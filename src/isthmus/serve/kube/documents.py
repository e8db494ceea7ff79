"""What is served beside resources: discovery, OpenAPI, version, health."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping

import isthmus
from isthmus.errors import NotFound
from isthmus.model.registry import Kinds, Registry
from isthmus.serve.kube.answer import Answer, of_document
from isthmus.serve.kube.blob import Blob
from isthmus.serve.kube.discovery import Discovery, Subresource
from isthmus.serve.kube.negotiate import DISCOVERIES, accept, wants_protobuf
from isthmus.serve.kube.openapi import OpenApi
from isthmus.serve.kube.swagger import MEDIA as V2_MEDIA

KUBERNETES = "1.37"
"""The Kubernetes minor version whose API this is; kubectl warns of a server two minors away."""


_EXTRAS = {
    "serviceaccounts": (
        Subresource("token", ("create",), "authentication.k8s.io", "v1", "TokenRequest"),
    ),
    "namespaces": (Subresource("finalize", ("update",)),),
}

V2_ASKED = V2_MEDIA.replace("spec.v2.v1.0", "spec.v2@v1.0")
"""How client-go writes the media type when it asks."""


class Documents:
    """Answers GETs of paths that name no resource."""

    def __init__(self, kinds: Kinds, ready: Callable[[], bool]) -> None:
        self._kinds = kinds
        self._ready = ready
        self._renew(kinds.now)

    def _renew(self, registry: Registry, before: OpenApi | None = None) -> None:
        """Make the documents of another registry; what has not changed is taken over."""
        self._registry = registry
        self._discovery = Discovery(registry, _EXTRAS)
        self._openapi = OpenApi(registry, before)

    def answer(self, parts: tuple[str, ...], headers: Mapping[str, str]) -> Answer:
        """The document at a path, or NotFound. `headers` has lower-case names."""
        now = self._kinds.now
        if now is not self._registry:
            self._renew(now, self._openapi)
        match parts:
            case ("healthz" | "livez" | "readyz", *_):
                return self._health(parts[0])
            case ("version",):
                return of_document(version())
            case ():
                return of_document({"paths": self._paths()})
            case _:
                found = self._document(parts, headers.get("accept", ""))
                if found is None:
                    raise NotFound("the server could not find the requested resource")
                return _cached(found, headers.get("if-none-match"))

    def _document(self, parts: tuple[str, ...], accepts: str) -> Blob | None:
        form = accept(accepts, DISCOVERIES)
        match parts:
            case ("api",):
                return self._discovery.api(form)
            case ("apis",):
                return self._discovery.apis(form)
            case ("api", version):
                return self._discovery.version("", version)
            case ("apis", group):
                return self._discovery.group(group)
            case ("apis", group, version):
                return self._discovery.version(group, version)
            case ("openapi", "v2"):
                wanted = any(wants_protobuf(accepts, media) for media in (V2_MEDIA, V2_ASKED))
                return self._openapi.v2 if wanted else self._openapi.v2_json
            case ("openapi", "v3"):
                return self._openapi.index
            case ("openapi", "v3", "api", version):
                return self._openapi.document("", version)
            case ("openapi", "v3", "apis", group, version):
                return self._openapi.document(group, version)
            case _:
                return None

    def _health(self, which: str) -> Answer:
        """Alive is whoever answers; ready is another question."""
        fine = which == "livez" or self._ready()
        body = b"ok" if fine else f"{which} check failed".encode()
        return Answer(body, 200 if fine else 503, "text/plain; charset=utf-8")

    def _paths(self) -> list[str]:
        groups = [
            f"/apis/{group}/{version}"
            for group in self._registry.groups()
            if group
            for version in self._registry.versions(group)
        ]
        fixed = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3",
                 "/readyz", "/version"]  # fmt: skip
        return sorted([*fixed, *groups])


def _cached(found: Blob, if_none_match: str | None) -> Answer:
    """The bytes, or 304 for who has them. Clients must ask again each time, as CRDs may come."""
    headers = (("Etag", found.etag), ("Vary", "Accept"))
    if found.unchanged(if_none_match):
        return Answer(b"", 304, found.content_type, headers=headers)
    return Answer(found.body, 200, found.content_type, headers=headers)


def version() -> dict[str, str]:
    """What `kubectl version` shows of the server."""
    major, minor = KUBERNETES.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{KUBERNETES}.0+isthmus.{isthmus.__version__}",
        "gitTreeState": "clean",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
        "pythonVersion": platform.python_version(),
    }

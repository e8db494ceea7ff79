"""What a request is about: its path, read once, strictly.

Every segment is percent-decoded exactly once, and what decodes to a slash, a percent sign, a dot
segment or a control character is refused, as is an empty segment. So a path has one reading, and
the question put to the authorizer is about the same object that the handler touches. (Kubernetes
API conventions: "Resource URIs"; path segment names.)
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from isthmus.errors import BadRequest, MethodNotAllowed, NotFound

MAX_PATH = 4096
"""Longest path in bytes, as it arrives."""

MAX_SEGMENT = 512
"""Longest segment in characters; names are at most 253."""

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""After `/namespaces/NAME/`, these are parts of the namespace; everything else lives inside it."""


class Target(NamedTuple):
    """A resource path. Cluster-scoped: `namespace` is ""; a collection: `name` is ""."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Plain(NamedTuple):
    """A path that names no resource: discovery, OpenAPI, version, health."""

    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """As the authorizer is asked about it."""
        return "/" + "/".join(self.parts)


Route = Target | Plain

PROXY = re.compile(r"(?P<head>/api/v1/namespaces/[^/]+/pods/[^/]+/proxy)(?P<rest>/.*)?", re.DOTALL)
"""A request for a pod itself: what follows `/proxy` is the pod's business, not ours."""

PASSED_ON = frozenset({"log", "exec", "proxy"})
"""Subresources of pods that somebody else answers, if there is anybody."""

FOR_NODES = frozenset({"exec", "attach", "portforward", "proxy"})
"""Subresources of pods that last as long as the client likes."""


def parse(raw: str) -> Route:
    """The route of a raw (still percent-encoded) path without its query.

    Raises BadRequest for what cannot be a path of ours, NotFound for shapes that lead nowhere.
    """
    passed_on = PROXY.fullmatch(raw)
    parts = _segments(passed_on["head"] if passed_on is not None else raw)
    match parts:
        case ("api", version, *rest) if rest:
            return _target("", version, tuple(rest), raw)
        case ("apis", group, version, *rest) if rest:
            return _target(group, version, tuple(rest), raw)
        case _:
            return Plain(parts)


def _segments(raw: str) -> tuple[str, ...]:
    if len(raw) > MAX_PATH:
        raise BadRequest(f"the path is longer than {MAX_PATH} bytes")
    if not raw.startswith("/"):
        raise BadRequest("the path does not begin with a slash")
    trimmed = raw[1:].removesuffix("/")
    return tuple(_segment(part) for part in trimmed.split("/")) if trimmed else ()


def _segment(raw: str) -> str:
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as fault:
        raise BadRequest("a segment of the path is not UTF-8") from fault
    if not text:
        raise NotFound("the path has an empty segment")
    if len(text) > MAX_SEGMENT:
        raise BadRequest(f"a segment of the path is longer than {MAX_SEGMENT} characters")
    if text in {".", ".."} or "/" in text or "%" in text or not text.isprintable():
        raise BadRequest(f"no name can be written {text!r}")
    return text


def _target(group: str, version: str, rest: tuple[str, ...], raw: str) -> Target:
    """`rest` is what follows the version; never empty."""
    namespace, inner = "", rest
    if rest[0] == "namespaces" and len(rest) > 2:
        if group == "" and len(rest) == 3 and rest[2] in NAMESPACE_SUBRESOURCES:
            return Target(group, version, "namespaces", "", rest[1], rest[2])
        namespace, inner = rest[1], rest[2:]
    if len(inner) > 3:
        raise NotFound(f"nothing is served at {raw[:200]}")
    resource, name, subresource = (*inner, "", "")[:3]
    return Target(group, version, resource, namespace, name, subresource)


_ON_ONE = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_MANY = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_CREATED = frozenset({"token", "binding", "eviction"})
"""Subresources that are POSTed to."""
_ENTERED = frozenset({"exec", "attach", "portforward"})
"""Subresources that are entered, by GET (WebSocket) or POST (SPDY): to read is not enough."""


def verb(method: str, target: Target, *, watching: bool) -> str:
    """The verb of a request, in the words of RBAC; MethodNotAllowed where there is none."""
    if not target.name:
        found = _ON_MANY.get(method)
    elif target.subresource in _CREATED:
        found = "create" if method == "POST" else None
    elif target.subresource in _ENTERED:
        found = "create" if method in {"GET", "POST"} else None
    elif target.subresource == "proxy" and method == "POST":
        found = "create"
    else:
        found = _ON_ONE.get(method)
    if found is None:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return "watch" if watching and found in {"get", "list"} and not target.subresource else found

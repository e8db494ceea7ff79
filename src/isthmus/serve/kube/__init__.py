"""The Kubernetes API: the surface that kubectl, controllers and other clusters speak to.

What it is: HTTPS on aiohttp; discovery and OpenAPI, reads, watches, writes and reviews of every
kind of the registry, as the Kubernetes API conventions say. What it is not: what the objects mean
(`mesh`), who keeps them (`store`, through `store.objects` for every write), or what follows from
them (`controllers`).

Three layers, each ignorant of the one above: pure pieces (query strings, selectors, patches,
tables, statuses), handlers without sockets (`api`, `read`, `write`, `delete`, `watch`, `reviews`),
and one thin shell of aiohttp (`server`).

Its words:

- *asked*: a request whose path, verb, kind and user are known.
- *answer*, *stream*: what a handler returns; a stream is written piece by piece.
- *shape*: version and form in which somebody wants to see objects; equal shapes share bytes.
- *hub*, *ring*, *cursor*: one watch of the store for all watchers, the newest events, one's place.
- *verdict*: what became of a request; whoever audits or counts is given all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.serve.kube.accounts import AccountTokens
    from isthmus.serve.kube.api import Call, Dispatcher, Observe, Verdict
    from isthmus.serve.kube.auth import (
        Attributes,
        Authorizer,
        Bearer,
        Decision,
        NoTokens,
        TokenVerifier,
        User,
    )
    from isthmus.serve.kube.limits import DEFAULT_LIMITS, Limits
    from isthmus.serve.kube.rbac import Rbac
    from isthmus.serve.kube.server import KubeApi

__all__ = [
    "DEFAULT_LIMITS",
    "AccountTokens",
    "Attributes",
    "Authorizer",
    "Bearer",
    "Call",
    "Decision",
    "Dispatcher",
    "KubeApi",
    "Limits",
    "NoTokens",
    "Observe",
    "Rbac",
    "TokenVerifier",
    "User",
    "Verdict",
]

_HOMES = {
    "AccountTokens": "accounts",
    "Attributes": "auth",
    "Authorizer": "auth",
    "Bearer": "auth",
    "Call": "api",
    "DEFAULT_LIMITS": "limits",
    "Decision": "auth",
    "Dispatcher": "api",
    "KubeApi": "server",
    "Limits": "limits",
    "NoTokens": "auth",
    "Observe": "api",
    "Rbac": "rbac",
    "TokenVerifier": "auth",
    "User": "auth",
    "Verdict": "api",
}


def __getattr__(name: str) -> object:
    """Only when asked for: the command line reads YAML with a module of ours, and starts fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

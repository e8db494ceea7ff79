"""Annotations of workloads and namespaces: who may in, how, and the scope of upstreams."""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.model.annotations.grammar import Problem
from isthmus.model.annotations.keys import DEFAULT_INBOUND_POLICY, INBOUND_TLS, UPSTREAMS
from isthmus.model.names import label_problems, subdomain_problems

ACCESS_POLICIES: Final = (
    "all-authenticated",
    "all-unauthenticated",
    "audit",
    "cluster-authenticated",
    "cluster-unauthenticated",
    "deny",
)
"""Who may in when nothing else says so (Linkerd's six modes)."""

INBOUND_TLS_MODES: Final = ("permissive", "strict")
"""Whether a workload takes plaintext beside mesh TLS."""

_MOST_UPSTREAMS: Final = 1024


class Upstream(NamedTuple):
    """Services that a workload may reach; "*" stands for every namespace or every name."""

    namespace: str
    name: str

    def holds(self, namespace: str, name: str) -> bool:
        """Whether a service is meant."""
        return self.namespace in ("*", namespace) and self.name in ("*", name)


def default_inbound_policy(text: str) -> str | Problem:
    """The mode, which is case-sensitive."""
    if text in ACCESS_POLICIES:
        return text
    why = f"must be one of {', '.join(ACCESS_POLICIES)}"
    return Problem(DEFAULT_INBOUND_POLICY, text[:128], why)


def inbound_tls(text: str) -> str | Problem:
    """The mode: `permissive` (the default) takes plaintext too, `strict` mesh TLS only."""
    if text in INBOUND_TLS_MODES:
        return text
    why = f"must be one of {', '.join(INBOUND_TLS_MODES)}"
    return Problem(INBOUND_TLS, text[:128], why)


def upstreams(text: str) -> tuple[Upstream, ...] | Problem:
    """`ns/*,ns/name`, items trimmed; an empty list means no service at all (decision 17)."""
    items = [item.strip() for item in text.split(",", _MOST_UPSTREAMS) if item.strip()]
    if len(items) > _MOST_UPSTREAMS:
        return Problem(UPSTREAMS, text[:128], f"may not have more than {_MOST_UPSTREAMS} items")
    found: list[Upstream] = []
    for item in items:
        namespace, slash, name = item.partition("/")
        fits = (namespace == "*" or not label_problems(namespace)) and (
            name == "*" or not subdomain_problems(name)
        )
        if not slash or not fits:
            return Problem(UPSTREAMS, text[:128], f"{item[:64]!r} must be NAMESPACE/NAME or /*")
        found.append(Upstream(namespace, name))
    return tuple(found)

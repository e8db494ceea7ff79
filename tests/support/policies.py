"""Policies and requests by chance: small meshes in which much happens to little."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from tests.support.compact import Compact
from tests.support.inbound_envoy import ENDING, STRANGER

ACCOUNTS = tuple(
    f"{name}.{namespace}.{ENDING}" for name in ("face", "till") for namespace in ("shop", "pay")
)
SOURCES = (STRANGER, "127.0.99.1", "127.1.2.3")
PATHS = ("/", "/a", "/a/b", "/ab", "/a/", "/A", "/x", "/a/b/c", "/admin")
PATTERNS = ("/a.*", "/(a|x)", "/[a-z]+/b", "/.*", "/a/b")
HOSTS = ("a.example", "*.example", "b.a.example", "*.a.example")
TARGETS = (
    *PATHS, "/a//b", "/a/./b", "/a/../x", "/%61", "/a%2fb", "/a;x", "/x;/a", "/live", "/live/",
    "/adm%69n", "/a?q=1", "/a?q=2&q=1", "/x?q=1", "/a#b", "/x/%2e%2e;/a",
)  # fmt: skip
AUTHORITIES = (
    "a.example", "A.example.", "x.example", "b.a.example:80", "shop", "u@a.example",
    "c.b.a.example",
)  # fmt: skip
ACCESS = (
    "deny", "deny", "deny", "deny", "all-unauthenticated", "all-authenticated", "audit",
    "cluster-unauthenticated", "cluster-authenticated",
)  # fmt: skip
PROOFS: tuple[list[str], ...] = (
    [],
    ["MeshTLSAuthentication some"],
    ["MeshTLSAuthentication pay"],
    ["NetworkAuthentication nets"],
    ["MeshTLSAuthentication some", "NetworkAuthentication nets"],
    ["ServiceAccount pay/till"],
    ["MeshTLSAuthentication gone"],
)
NETWORKS = (
    "127.0.42.0/24",
    "127.0.99.1",
    "::/0",
    {"cidr": "127.0.0.0/8", "except": ["127.0.42.7"]},
)
CLIENTS: tuple[dict[str, Any], ...] = (
    {"unauthenticated": True, "networks": [{"cidr": "127.0.99.0/24"}]},
    {"meshTLS": {"unauthenticatedTLS": True}},
    {"meshTLS": {"identities": [ACCOUNTS[0]]}},
    {},
)
FILTERS: tuple[dict[str, Any], ...] = (
    {"type": "RequestRedirect", "requestRedirect": {"hostname": "o.example"}},
    {"type": "URLRewrite", "urlRewrite": {"hostname": "o.example"}},
    {"type": "ExtensionRef", "extensionRef": {"group": "g", "kind": "K", "name": "n"}},
)


class Asked(NamedTuple):
    """One request, and who makes it."""

    target: str
    host: str
    method: str
    headers: dict[str, str]
    source: str
    identity: str | None


def policies(chance: Random) -> list[Compact]:
    """Objects around pod `shop/me` and its port 8080."""
    return [_pod(chance), *_server(chance), *_routes(chance), *_grants(chance)]


def _pod(chance: Random) -> Compact:
    strict = {"config.isthmus.dev/inbound-tls": "strict"}
    return {
        "pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me",
        "labels": {"app": "me"}, "ports": [{"port": 8080, "name": "http"}],
        "probes": [{"port": 8080, "path": "/live"}],
        "annotations": strict if chance.random() < 0.15 else {},
    }  # fmt: skip


def _server(chance: Random) -> Iterator[Compact]:
    if chance.random() < 0.9:
        protocol = chance.choice(["unknown", "unknown", "unknown", "HTTP/1"])
        access = chance.choice(ACCESS)
        yield {"server": "shop/web", "pods": {"app": "me"}, "port": 8080,
               "access": access, "protocol": protocol}  # fmt: skip


def _routes(chance: Random) -> Iterator[Compact]:
    for number in range(chance.randint(0, 4)):
        hosts = chance.sample(HOSTS, chance.randint(1, 2)) if chance.random() < 0.4 else []
        yield {
            chance.choice(["hr", "phr"]): f"shop/r{number}",
            "for": "web",
            "hosts": hosts,
            "created": f"2026-01-0{chance.randint(1, 3)}T00:00:00Z",
            "rules": [_rule(chance) for _ in range(chance.randint(1, 2))],
        }


def _rule(chance: Random) -> dict[str, Any]:
    filters = [chance.choice(FILTERS)] if chance.random() < 0.3 else []
    return {"matches": [_match(chance) for _ in range(chance.randint(0, 2))], "filters": filters}


def _match(chance: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chance.random() < 0.8:
        kind = chance.choice(["PathPrefix", "Exact", "RegularExpression"])
        value = chance.choice(PATTERNS if kind == "RegularExpression" else PATHS)
        found["path"] = {"type": kind, "value": value}
    if chance.random() < 0.3:
        found["method"] = chance.choice(["GET", "POST"])
    if chance.random() < 0.3:
        kind = chance.choice(["Exact", "RegularExpression"])
        value = chance.choice(["1", "2", "a.*"])
        found["headers"] = [{"name": "X-A", "type": kind, "value": value}]
    if chance.random() < 0.2:
        found["queryParams"] = [{"name": "q", "value": chance.choice(["1", "2"])}]
    return found


def _grants(chance: Random) -> Iterator[Compact]:
    some = (*ACCOUNTS, "*", f"*.shop.{ENDING}", f"*.{ENDING}")
    yield {"mtls": "shop/some", "ids": chance.sample(some, chance.randint(1, 2))}
    yield {"mtls": "shop/pay", "refs": [["Namespace", "pay"]]}
    yield {"nets": "shop/nets", "networks": chance.sample(NETWORKS, chance.randint(1, 2))}
    for number in range(chance.randint(0, 4)):
        route = f"r{chance.randint(0, 3)}"
        groups = ("policy.linkerd.io", "gateway.networking.k8s.io")
        targets = [
            "web",
            "web",
            ["Namespace", "shop"],
            *([f"HTTPRoute.{g}", route] for g in groups),
        ]
        yield {"az": f"shop/p{number}", "for": chance.choice(targets),
               "needs": chance.choice(PROOFS)}  # fmt: skip
    if chance.random() < 0.4:
        yield {"saz": "shop/s", "servers": {}, "client": chance.choice(CLIENTS)}


def request(chance: Random) -> Asked:
    """A request, often a crooked one."""
    method = chance.choice(["GET", "GET", "POST", "PUT"])
    headers = {"X-A": chance.choice(["1", "2", "abc"])} if chance.random() < 0.5 else {}
    if method != "GET":
        headers["content-length"] = "0"
    return Asked(
        chance.choice(TARGETS), chance.choice(AUTHORITIES), method, headers,
        chance.choice(SOURCES), chance.choice([None, None, *ACCOUNTS]),
    )  # fmt: skip

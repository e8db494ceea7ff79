"""Outbound policy of a Service with a thousand routes: from nothing, after an edit, on the wire."""

from __future__ import annotations

import statistics
import time
from typing import Any

import msgspec

from bench.table import Figure
from isthmus.dialects.envoy.outbound import service_routes
from isthmus.engine import Change, Database, Put, Watch
from isthmus.ir.proxy import OutboundName
from isthmus.mesh import SOURCES
from isthmus.mesh.outbound import outbound, parent_ref
from isthmus.mesh.settings import SETTINGS, WHOLE, MeshSettings
from isthmus.model.key import ObjectKey

HERE = "bench"
MANY = 1_000
EDITS = 30
ROUTES = "httproutes.gateway.networking.k8s.io"
CART = ObjectKey(HERE, "shop", "cart")
NAME = OutboundName(parent_ref(CART), 80, "")


def put(resource: str, name: str, document: dict[str, Any]) -> Change:
    """The row of an object of namespace `shop`."""
    source = SOURCES[resource]
    written = {"metadata": {"name": name, "namespace": "shop"}, **document}
    return Put(
        source.table, ObjectKey(HERE, "shop", name), source.row(msgspec.json.encode(written))
    )


def service(name: str, ip: str) -> Change:
    """A Service with port 80."""
    return put("services", name, {"spec": {"clusterIP": ip, "ports": [{"port": 80}]}})


def route(number: int, weight: int = 1) -> Change:
    """A route for a path of its own, to two Services."""
    backends = [{"name": "till", "port": 80, "weight": weight}, {"name": "cart", "port": 80}]
    match = {"path": {"type": "PathPrefix", "value": f"/path-{number}"}}
    parent = {"group": "", "kind": "Service", "name": "cart", "port": 80}
    rules = [{"matches": [match], "backendRefs": backends}]
    return put(ROUTES, f"r{number}", {"spec": {"parentRefs": [parent], "rules": rules}})


def edited(db: Database, watch: Watch, changes: list[Change]) -> float:
    """Milliseconds from a commit to the resource that follows, at the median."""
    spent = []
    for change in changes:
        start = time.perf_counter()
        db.commit([change])
        watch.take()
        spent.append((time.perf_counter() - start) * 1e3)
    return statistics.median(spent)


def figures() -> list[Figure]:
    """Cold, edits, additions, and the bytes of what a sidecar is sent."""
    db = Database()
    db.commit([Put(SETTINGS, WHOLE, MeshSettings(cluster=HERE))])
    db.commit([service("cart", "10.96.0.10"), service("till", "10.96.0.11")])
    db.commit([route(number) for number in range(MANY)])
    start = time.perf_counter()
    db.read(outbound, NAME)
    meant = time.perf_counter()
    with db.watch(lambda: None) as watch:
        watch.add(service_routes, NAME)
        (told,) = watch.take().values()
        sent = time.perf_counter()
        edits = edited(db, watch, [route(at * 31 % MANY, at + 2) for at in range(EDITS)])
        more = edited(db, watch, [route(MANY + at) for at in range(EDITS)])
    return [
        Figure(f"{MANY} routes: meaning, cold", (meant - start) * 1e3, "ms"),
        Figure(f"{MANY} routes: Envoy's routes, cold", (sent - meant) * 1e3, "ms"),
        Figure(f"{MANY} routes: one edited", edits, "ms", "≤ 50"),
        Figure(f"{MANY} routes: one more", more, "ms", "≤ 100"),
        Figure(f"{MANY} routes: on the wire", len(told.chunk) / 1024, "KiB"),
    ]

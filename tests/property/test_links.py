"""Histories of Links and Secrets against which clusters are connected.

Whatever was written and deleted in whatever order: what a long watch holds equals what is computed
from scratch; every Link either leads to its cluster or is refused, and no cluster has two.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.engine import Change, Database, Delete, Put
from isthmus.mesh import ALSO, SOURCES
from isthmus.mesh.credentials import TYPE
from isthmus.mesh.linked import linked, linked_names, refusal, refused, staleness_problem
from isthmus.mesh.links import LINKS
from isthmus.mesh.reaching import targets
from isthmus.mesh.settings import SETTINGS, WHOLE
from isthmus.model.key import ObjectKey
from tests.support.meshworld import LOCAL, MESH, settings

MC = "mc"
NAMES = ("east", "west", LOCAL, "a@b")
Document = dict[str, Any]
Step = tuple[str, ObjectKey, Document | None]


def link(cluster: str, created: str, **more: object) -> Document:
    spec = {"targetClusterName": cluster, "clusterCredentialsSecret": cluster, **more}
    return {"metadata": {"creationTimestamp": created}, "spec": spec}


def secret(text: str, cluster: str = "") -> Document:
    labels = {"multicluster.linkerd.io/cluster-name": cluster} if cluster else {}
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()} if text else {}
    return {"metadata": {"labels": labels}, "type": TYPE, "data": data}


FAR = "multicluster.linkerd.io/remote-discovery"
EVERYTHING = {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
STALE: Document = {
    "metadata": {"annotations": {"multicluster.isthmus.dev/staleness": "never"}},
    "spec": {"targetClusterName": "east", "clusterCredentialsSecret": "east"},
}
VARIANTS: Mapping[tuple[str, ObjectKey], Sequence[Document]] = {
    ("links.multicluster.linkerd.io", ObjectKey(LOCAL, MC, "one")): (
        link("east", "2026-01-02"),
        link("west", "2026-01-02", gatewayAddress="10.0.0.9", gatewayPort="4143"),
        link(LOCAL, "2026-01-02"),
        STALE,
    ),
    ("links.multicluster.linkerd.io", ObjectKey(LOCAL, MC, "two")): (
        link("east", "2026-01-01", remoteDiscoverySelector=EVERYTHING),
        link("east", "2026-01-03", clusterCredentialsSecret=""),
        link("a@b", "2026-01-01"),
    ),
    ("secrets", ObjectKey(LOCAL, MC, "east")): (secret("x"), secret("y"), secret("")),
    ("secrets", ObjectKey(LOCAL, MESH, "named")): (
        secret("x", "east"),
        secret("x", "west"),
        secret("x"),
    ),
    ("services", ObjectKey(LOCAL, "shop", "web-east")): (
        {"metadata": {"labels": {FAR: "east", "multicluster.linkerd.io/remote-service": "web"}}},
        {"metadata": {"annotations": {FAR: "web@east,web@west"}}},
        {"metadata": {"labels": {FAR: "west"}}},
    ),
    ("services", ObjectKey("east", "shop", "web")): (
        {"spec": {"ports": [{"port": 80}]}},
        {"metadata": {"labels": {"x": "y"}}, "spec": {"ports": [{"port": 80}]}},
    ),
    ("endpointslices.discovery.k8s.io", ObjectKey("east", "shop", "web-1")): (
        {
            "metadata": {"labels": {"kubernetes.io/service-name": "web"}},
            "ports": [{"port": 8080}],
            "endpoints": [{"addresses": ["10.1.0.1"]}, {"addresses": ["127.0.0.1"]}],
        },
    ),
}


def steps() -> st.SearchStrategy[list[Step]]:
    each = [
        st.tuples(st.just(resource), st.just(key), st.sampled_from([None, *variants]))
        for (resource, key), variants in VARIANTS.items()
    ]
    return st.lists(st.one_of(each), max_size=24)


def change(step: Step) -> Change:
    resource, key, document = step
    source = SOURCES[resource] if resource != "secrets" else ALSO[resource]
    if document is None:
        return Delete(source.table, key)
    return Put(source.table, key, source.row(msgspec.json.encode(document)))


def fresh() -> Database:
    db = Database()
    db.commit([Put(SETTINGS, WHOLE, settings())])
    return db


CELLS: Sequence[tuple[Any, ...]] = (
    (linked_names, LOCAL),
    (refused, LOCAL),
    *((query, LOCAL, name) for query in (linked, targets) for name in NAMES),
    *((query, key) for query in (refusal, staleness_problem) for _, key in list(VARIANTS)[:2]),
)


@given(steps())
def test_what_is_watched_is_what_is_computed_from_scratch(history: list[Step]) -> None:
    db = fresh()
    watch = db.watch(lambda: None)
    for query, *key in CELLS:
        watch.add(query, *key)
    held = dict(watch.take())
    for step in history:
        db.commit([change(step)])
        watch.settle(lambda: True)
        held |= watch.take()
    other = fresh()
    last = {(resource, key): document for resource, key, document in history}
    other.commit([change((*where, document)) for where, document in last.items()])
    for cell in CELLS:
        assert held[cell] == other.read(*cell), cell
    examine(other)
    watch.close()


def examine(db: Database) -> None:
    names = db.read(linked_names, LOCAL)
    leading = [found.link for name in names if (found := db.read(linked, LOCAL, name))]
    assert len(leading) == len(names)
    turned = {key for key, _ in db.read(refused, LOCAL)}
    written = {key for _, key in list(VARIANTS)[:2] if LINKS.get(db, key) is not None}
    assert {key for key in leading if key is not None} == written - turned
    assert not {LOCAL, "a@b"} & set(names)

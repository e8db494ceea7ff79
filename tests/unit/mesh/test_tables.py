from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from isthmus.engine import Change, Database, Put, Table
from isthmus.mesh import policy_tables, tables
from isthmus.mesh.census import (
    BY_NAMESPACE,
    BY_OWNER,
    BY_UID,
    CENSUS,
    COLLECTED,
    CensusKey,
    Place,
    facts,
)
from isthmus.mesh.tables import Address, HostPort
from isthmus.model import Document, Key, ObjectKey
from tests.support.controlled import CLUSTER, KINDS, key, rows


def every_table() -> Iterator[Table[object, object]]:
    for value in vars(tables).values():
        if isinstance(value, Table):
            yield value


def test_only_what_a_controller_attends_can_be_listed() -> None:
    listed = {table.name for table in every_table() if table.listed is not None}
    assert listed == tables.LISTED
    assert len(listed) <= 7


def test_of_the_meshs_own_kinds_too() -> None:
    own = [each for each in vars(policy_tables).values() if isinstance(each, Table)]
    listed = {table.name for table in own if table.listed is not None}
    assert listed - tables.LISTED == policy_tables.LISTED


def test_every_source_is_a_kind_with_a_table_of_its_own() -> None:
    for resource in tables.SOURCES:
        kind = KINDS.by_key_resource(resource)
        assert kind is not None
        assert kind.resource == resource
    filled = [source.table for source in tables.SOURCES.values()]
    assert len(set(filled)) == len(filled)
    assert set(filled) == set(every_table()) - {CENSUS}


def database(*objects: tuple[str, str, Document]) -> Database:
    db = Database()
    db.commit(change for each in objects for change in changes(*each))
    return db


def changes(resource: str, name: str, document: Document, ns: str = "shop") -> Iterator[Change]:
    metadata = {"name": name, "uid": name, **document.get("metadata", {})}
    value = msgspec.json.encode(document | {"metadata": metadata})
    return rows(Key(resource, ns, name), value)


def pod(**status: object) -> Document:
    return {"status": status}


def test_pods_are_found_by_every_address() -> None:
    both = pod(podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}])
    db = database(("pods", "a", both), ("pods", "b", pod(podIP="10.0.0.2")), ("pods", "c", pod()))
    for ip, name in (("10.0.0.1", "a"), ("fd00::1", "a"), ("10.0.0.2", "b")):
        assert tables.PODS_BY_IP.get(db, Address(CLUSTER, ip)) == (key(name),)
    assert tables.PODS_BY_IP.get(db, Address("elsewhere", "10.0.0.1")) == ()
    assert tables.PODS_BY_IP.get(db, Address(CLUSTER, "")) == ()


def test_pods_are_found_by_host_port() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    document = pod(hostIP="192.0.2.1") | {"spec": {"containers": [{"name": "c", "ports": ports}]}}
    db = database(("pods", "a", document))
    found = tables.PODS_BY_HOST_PORT
    assert found.get(db, HostPort(CLUSTER, "192.0.2.1", 8080, "TCP")) == (key("a"),)
    assert found.get(db, HostPort(CLUSTER, "192.0.2.1", 0, "TCP")) == ()


@pytest.mark.parametrize(
    ("spec", "ips"),
    [
        ({"clusterIP": "10.96.0.1"}, ["10.96.0.1"]),
        (
            {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"]},
            ["10.96.0.1", "fd00::1"],
        ),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, []),
        ({}, []),
    ],
)
def test_services_are_found_by_every_address(spec: Document, ips: list[str]) -> None:
    db = database(("services", "web", {"spec": spec}))
    for ip in ips:
        assert tables.SERVICES_BY_IP.get(db, Address(CLUSTER, ip)) == (key("web"),)
    for ip in ("None", ""):
        assert tables.SERVICES_BY_IP.get(db, Address(CLUSTER, ip)) == ()


@pytest.mark.parametrize(
    ("metadata", "service"),
    [
        ({"labels": {tables.SERVICE_NAME: "web"}}, "web"),
        ({"ownerReferences": [{"kind": "Service", "name": "web", "uid": "1"}]}, "web"),
        (
            {
                "labels": {tables.SERVICE_NAME: "web"},
                "ownerReferences": [{"kind": "Service", "name": "other", "uid": "1"}],
            },
            "web",
        ),
        ({"ownerReferences": [{"kind": "Endpoints", "name": "web", "uid": "1"}]}, None),
        ({}, None),
    ],
)
def test_a_slice_belongs_to_the_service_of_its_label_or_owner(
    metadata: Document, service: str | None
) -> None:
    db = database(("endpointslices.discovery.k8s.io", "s", {"metadata": metadata}))
    for name in ("web", "other"):
        found = tables.SLICES_BY_SERVICE.get(db, key(name))
        assert found == ((key("s"),) if name == service else ())


def test_a_service_selects_pods_of_its_namespace() -> None:
    labels = {"metadata": {"labels": {"app": "web"}}}
    db = database(
        ("services", "web", {"spec": {"selector": {"app": "web"}}}),
        ("services", "free", {"spec": {}}),
        ("services", "name", {"spec": {"selector": {"app": "web"}, "type": "ExternalName"}}),
        ("pods", "a", labels),
        ("pods", "b", {}),
    )
    db.commit(changes("pods", "c", labels, "elsewhere"))
    assert tables.SERVICE_PODS.members(db, key("web")) == (key("a"),)
    assert tables.SERVICE_PODS.members(db, key("free")) == ()
    assert tables.SERVICE_PODS.members(db, key("name")) == ()
    assert tables.SERVICE_PODS.selectors(db, key("a")) == (key("web"),)


def test_an_empty_workload_selector_selects_nothing() -> None:
    db = database(("replicasets.apps", "r", {"spec": {"selector": {}}}), ("pods", "a", {}))
    assert tables.REPLICASET_PODS.members(db, key("r")) == ()


def test_expressions_count_and_nonsense_selects_nothing() -> None:
    def wants(operator: str) -> Document:
        part = {"key": "app", "operator": operator, "values": ["web"]}
        return {"spec": {"selector": {"matchExpressions": [part]}}}

    db = database(
        ("replicasets.apps", "in", wants("In")),
        ("replicasets.apps", "odd", wants("Like")),
        ("pods", "a", {"metadata": {"labels": {"app": "web"}}}),
    )
    assert tables.REPLICASET_PODS.members(db, key("in")) == (key("a"),)
    assert tables.REPLICASET_PODS.members(db, key("odd")) == ()


def test_a_change_without_meaning_is_no_change() -> None:
    db = database(("pods", "a", {"status": {"phase": "Running"}}))
    before = db.revision
    noise = {
        "metadata": {"managedFields": [{}], "resourceVersion": "9"},
        "status": {"phase": "Running"},
    }
    db.commit(changes("pods", "a", noise))
    assert db.revision == before


def test_the_census_knows_owners_uids_and_places_of_any_kind() -> None:
    owned = {"metadata": {"ownerReferences": [{"uid": "u1"}, {"uid": "u2"}]}}
    db = database(("widgets.example.org", "w", owned), ("pods", "p", {}))
    widget = CensusKey(CLUSTER, "widgets.example.org", "shop", "w")
    assert BY_OWNER.get(db, "u2") == (widget,)
    assert BY_UID.get(db, "w") == (widget,)
    assert COLLECTED.get(db, Place(CLUSTER, "shop")) == (widget,)
    assert len(BY_NAMESPACE.get(db, Place(CLUSTER, "shop"))) == 2


@pytest.mark.parametrize(("finalizer", "collected"), [("orphan", True), ("mine", False)])
def test_what_is_going_is_collected_for_its_finalizers(finalizer: str, collected: bool) -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]}
    db = database(("pods", "p", {"metadata": going}))
    assert bool(COLLECTED.get(db, Place(CLUSTER, "shop"))) == collected


def test_a_record_that_is_no_object_is_not_counted() -> None:
    assert facts(b'{"name":"x"}') is None
    with pytest.raises(msgspec.MsgspecError):
        facts(b'{"metadata":[]}')


def test_keys_are_of_one_cluster() -> None:
    db = database(("namespaces", "x", {}))
    put = Put(
        tables.NAMESPACES, ObjectKey("west", "", "x"), tables.SOURCES["namespaces"].row(b"{}")
    )
    db.commit([put])
    assert len(tables.NAMESPACES.names(db, Place("west", ""))) == 1

from __future__ import annotations

import pytest

from isthmus.mesh.opaque import OfNobody, OfPod, OfService, OfWorkload, annotated, holds, opaque
from isthmus.model.annotations.keys import OPAQUE_PORTS
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World, ports

DB = ObjectKey(LOCAL, "pay", "db")


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("", ()),
        (",", ()),
        ("80", ((80, 80),)),
        ("80, 100-102 ,", ((80, 80), (100, 102))),
        ("100 - 102", ((100, 102),)),
        ("bin", ((7443, 7443),)),
        ("bin,10-20", ((50, 50), (7443, 7443))),
        ("80,80", ((80, 80),)),
        ("zzz,9-5,-1,1-,65536,1-2-3,0x10,+5,٨٠,80", ((80, 80),)),
        ("0,65535", ((0, 0), (65535, 65535))),
    ],
)
def test_lists_of_ports(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    named = [("bin", 7443), ("10-20", 50)]
    assert annotated({OPAQUE_PORTS: text}, named) == ranges


def test_a_name_stands_for_every_port_that_has_it() -> None:
    found = annotated({OPAQUE_PORTS: "bin"}, [("bin", 1), ("bin", 3)])
    assert found == ((1, 1), (3, 3))
    assert holds(found, 3)
    assert not holds(found, 2)


def test_no_annotation_is_not_an_empty_one() -> None:
    assert annotated({}, ()) is None
    assert annotated({OPAQUE_PORTS: ""}, ()) == ()


def test_a_list_without_end_costs_what_is_looked_at() -> None:
    found = annotated({OPAQUE_PORTS: ",".join(map(str, range(60000)))}, ())
    assert found is not None
    assert len(found) == 4096


SERVICE: list[tuple[Compact, list[Compact], bool]] = [
    ({}, [], True),
    ({"opaque": ""}, [], False),
    ({"opaque": "1"}, [], False),
    ({"opaque": "3306"}, [], True),
    ({"ports": [{"port": 3306, "app": "http"}]}, [], False),
    ({"ports": [{"port": 3306, "app": "GRPC"}]}, [], False),
    ({"ports": [{"port": 3306, "app": "kubernetes.io/h2c"}]}, [], False),
    ({"ports": [{"port": 3306, "app": "kubernetes.io/ws"}]}, [], False),
    ({"ports": [{"port": 3306, "app": "mysql"}]}, [], True),
    ({"ports": [{"port": 3306, "app": "http"}], "opaque": "3306"}, [], True),
    ({"ports": [{"port": 3306, "app": "mysql"}], "opaque": ""}, [], False),
    ({}, [{"route": "pay/r", "service": "db"}], False),
    ({}, [{"route": "pay/r", "service": "db", "port": 3306}], False),
    ({}, [{"route": "pay/r", "service": "db", "port": 80}], True),
    ({}, [{"route": "shop/r", "service": "db"}], True),
    ({"opaque": "3306"}, [{"route": "pay/r", "service": "db"}], True),
]


@pytest.mark.parametrize(("said", "objects", "expected"), SERVICE)
def test_a_service_port(said: Compact, objects: list[Compact], expected: bool) -> None:
    world = World({"svc": "pay/db", "ports": [3306], **said}, *objects)
    assert world.db.read(opaque, OfService(DB, 3306)) is expected


def test_an_unknown_protocol_makes_any_port_opaque() -> None:
    world = World({"svc": "pay/db", "ports": [{"port": 80, "app": "mongo"}]})
    assert world.db.read(opaque, OfService(DB, 80))


def test_a_service_that_is_gone_has_the_default_list() -> None:
    world = World({"svc": "pay/db", "ports": [3306], "opaque": "80"})
    assert not world.db.read(opaque, OfService(DB, 3306))
    world.delete("svc pay/db")
    assert world.db.read(opaque, OfService(DB, 3306))
    assert not world.db.read(opaque, OfService(DB, 80))


POD: Compact = {"pod": "pay/db", "labels": {"app": "db"}}


def server(**said: object) -> Compact:
    return {"server": "pay/s", "pods": {"app": "db"}, "port": 8080, "protocol": "opaque", **said}


PODS: list[tuple[Compact, list[Compact], int, bool]] = [
    ({}, [], 3306, True),
    ({}, [], 8080, False),
    ({"opaque": ""}, [], 3306, False),
    ({"opaque": "8080"}, [], 8080, True),
    ({"opaque": "web", "ports": [{"port": 8080, "name": "web"}]}, [], 8080, True),
    ({"opaque": "web", "ports": [{"port": 8080, "name": "web", "init": True}]}, [], 8080, True),
    ({"opaque": "web", "ports": [{"port": 80, "name": "web", "host": 8080}]}, [], 8080, False),
    ({}, [server()], 8080, True),
    ({"opaque": ""}, [server()], 8080, True),
    ({}, [server(port=80)], 8080, False),
    ({}, [server(protocol="HTTP/1")], 8080, False),
    ({}, [server(protocol="HTTP/1", port=3306)], 3306, True),
    ({}, [server(pods={"app": "x"})], 8080, False),
    ({}, [server(server="shop/s")], 8080, False),
    ({}, [{"server": "pay/s", "raw_pods": {}, "port": 8080, "protocol": "opaque"}], 8080, True),
    ({}, [{"server": "pay/s", "port": 8080, "protocol": "opaque"}], 8080, False),
    ({"ports": [{"port": 8080, "name": "web"}]}, [server(port="web")], 8080, True),
    ({"ports": [{"port": 80, "name": "web", "host": 8080}]}, [server(port="web")], 8080, True),
    ({"ports": [{"port": 80, "name": "web"}]}, [server(port="web")], 8080, False),
]


@pytest.mark.parametrize(("said", "objects", "port", "expected"), PODS)
def test_a_pod_port(said: Compact, objects: list[Compact], port: int, expected: bool) -> None:
    world = World({**POD, **said}, *objects)
    assert world.db.read(opaque, OfPod(DB, port)) is expected


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "app", "operator": "Near", "values": ["db"]},
        {"key": "app", "operator": "In"},
        {"key": "app", "operator": "Exists", "values": ["db"]},
    ],
)
def test_a_server_that_cannot_be_understood_selects_nothing(expression: Compact) -> None:
    bad = {"matchExpressions": [expression]}
    broken = {"server": "pay/s", "raw_pods": bad, "port": 8080, "protocol": "opaque"}
    world = World(POD, broken)
    assert not world.db.read(opaque, OfPod(DB, 8080))
    world.apply({**broken, "server": "pay/t", "raw_pods": {"matchLabels": {"app": "db"}}})
    assert world.db.read(opaque, OfPod(DB, 8080))


def test_of_two_servers_that_make_a_port_opaque_one_suffices() -> None:
    world = World(POD, server(), server(server="pay/t"))
    world.delete("server pay/s")
    assert world.db.read(opaque, OfPod(DB, 8080))
    world.delete("server pay/t")
    assert not world.db.read(opaque, OfPod(DB, 8080))


LEADING: list[tuple[Compact, bool]] = [
    ({"ports": [{"port": 80, "target": 3306, "app": "http"}]}, False),
    ({"ports": [{"port": 3306, "app": "http"}]}, False),
    ({"ports": [{"port": 80, "target": "sql", "app": "http"}]}, False),
    ({"ports": [{"port": 80, "target": 3306}]}, True),
    ({"ports": [{"port": 80, "target": 3306, "app": "mysql"}]}, True),
    ({"ports": [{"port": 80, "target": 8080, "app": "http"}]}, True),
    ({"ports": [{"port": 80, "target": 3306, "app": "http"}], "selector": {"app": "x"}}, True),
]


@pytest.mark.parametrize(("said", "expected"), LEADING)
def test_what_services_declare_of_a_pod_port_beats_the_default(
    said: Compact, expected: bool
) -> None:
    pod = {**POD, "ports": [{"port": 3306, "name": "sql"}]}
    service = {"svc": "pay/any", "selector": {"app": "db"}, **said}
    assert World(pod, service).db.read(opaque, OfPod(DB, 3306)) is expected
    annotated_pod = {**pod, "opaque": "3306"}
    assert World(annotated_pod, service).db.read(opaque, OfPod(DB, 3306))
    workload = {"ew": "pay/db", "labels": {"app": "db"}, "ports": [{"port": 3306, "name": "sql"}]}
    assert World(workload, service).db.read(opaque, OfWorkload(DB, 3306)) is expected


def test_a_workload_port() -> None:
    workload = {"ew": "pay/db", "labels": {"app": "db"}, "ports": [{"port": 8080, "name": "web"}]}
    world = World(workload)
    assert world.db.read(opaque, OfWorkload(DB, 3306))
    assert not world.db.read(opaque, OfWorkload(DB, 8080))
    world.apply({"server": "pay/s", "ews": {"app": "db"}, "port": "web", "protocol": "opaque"})
    assert world.db.read(opaque, OfWorkload(DB, 8080))
    world.delete("server pay/s")
    world.apply({**workload, "opaque": "web"})
    assert world.db.read(opaque, OfWorkload(DB, 8080))
    assert not world.db.read(opaque, OfWorkload(DB, 3306))


def test_a_port_of_nobody_has_the_default_list() -> None:
    world = World()
    assert world.db.read(opaque, OfNobody(3306))
    assert not world.db.read(opaque, OfNobody(80))
    other = World(default_opaque_ports=ports("80"))
    assert other.db.read(opaque, OfNobody(80))
    assert not other.db.read(opaque, OfNobody(3306))

from __future__ import annotations

import pytest

from isthmus.dialects.linkerd import Fault, outbound_policy, outbound_question
from isthmus.dialects.linkerd.outbound import namespace_of
from isthmus.mesh.census import Place
from isthmus.mesh.resolution import Dialled, Named
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import net_pb2
from isthmus.proto.linkerd import outbound_pb2 as pb
from tests.support.meshworld import LOCAL, World

MILL = Place(LOCAL, "mill")
CART = {"svc": "shop/cart", "ip": "10.96.0.1", "ports": [80]}


@pytest.mark.parametrize(
    ("workload", "namespace"),
    [
        ("mill:a", "mill"),
        ('{"ns":"mill","pod":"a"}', "mill"),
        (' {"ns":"mill","external_workload":"a"}', "mill"),
        ('{"ns":"mill"}', "mill"),
        ("mill", None),
        ("mill:", None),
        (":a", None),
        ("", None),
        ("{", None),
        ('{"ns":""}', None),
        ('{"ns":1}', None),
        ("[]", None),
        ("x" * 5000 + ":a", None),
        ('{"ns":"' + "[" * 4000 + '"}', "[" * 4000),
    ],
)
def test_whose_client_asks(workload: str, namespace: str | None) -> None:
    assert namespace_of(workload) == namespace


def question(**said: object) -> object:
    spec = pb.TrafficSpec(source_workload="mill:a", **said)  # type: ignore[arg-type]
    return outbound_question(World(CART).db.read, spec.SerializeToString())


def addr(port: int, **ip: object) -> net_pb2.TcpAddress:
    return net_pb2.TcpAddress(ip=net_pb2.IPAddress(**ip), port=port)  # type: ignore[arg-type]


def test_addresses() -> None:
    assert question(addr=addr(80, ipv4=0x0A600001)) == Dialled(MILL, "10.96.0.1", 80)
    six = net_pb2.IPv6(first=0x20010DB8 << 32, last=1)
    assert question(addr=addr(80, ipv6=six)) == Dialled(MILL, "2001:db8::1", 80)


@pytest.mark.parametrize(
    ("authority", "service", "port"),
    [
        ("cart.shop.svc.mesh.test:8080", "cart", 8080),
        ("cart.shop.svc", "cart", 80),
        ("cart.shop.svc:", "cart", 80),
        ("cart.shop.svc:0", "cart", 80),
        ("ghost.shop.svc", "ghost", 80),
    ],
)
def test_names(authority: str, service: str, port: int) -> None:
    key = ObjectKey(LOCAL, "shop", service)
    assert question(authority=authority) == Named(MILL, key, port)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({}, "INVALID_ARGUMENT"),
        ({"addr": net_pb2.TcpAddress(port=80)}, "INVALID_ARGUMENT"),
        ({"addr": addr(0, ipv4=1)}, "INVALID_ARGUMENT"),
        ({"addr": addr(65536, ipv4=1)}, "INVALID_ARGUMENT"),
        ({"authority": ""}, "INVALID_ARGUMENT"),
        ({"authority": ":80"}, "INVALID_ARGUMENT"),
        ({"authority": "cart.shop.svc:x"}, "INVALID_ARGUMENT"),
        ({"authority": "cart.shop.svc:65536"}, "INVALID_ARGUMENT"),
        ({"authority": "cart.shop.svc:\u0661"}, "INVALID_ARGUMENT"),
        ({"authority": "a" * 5000}, "INVALID_ARGUMENT"),
        ({"authority": "cart.shop"}, "NOT_FOUND"),
        ({"authority": "203.0.113.1:80"}, "NOT_FOUND"),
    ],
)
def test_what_gets_no_answer(said: dict[str, object], status: str) -> None:
    found = question(**said)
    assert isinstance(found, Fault)
    assert found.status == status
    assert len(found.text) < 256


def test_bytes_that_are_no_question() -> None:
    found = outbound_question(World().db.read, b"\xff\xff")
    assert isinstance(found, Fault)
    assert found.status == "INVALID_ARGUMENT"


def test_an_answer_is_one_policy_made_once_for_a_namespace() -> None:
    world, asked = World(CART), Dialled(MILL, "10.96.0.1", 80)
    wire = world.db.read(outbound_policy, asked)
    assert wire is world.db.read(outbound_policy, asked)
    found = pb.OutboundPolicy.FromString(wire)
    assert found.metadata.resource.name == "cart"
    assert found.protocol.WhichOneof("kind") == "detect"

"""What is made of policies as proxies are told them."""

from __future__ import annotations

import json

import pytest

from isthmus.cli.commands.authz import ports_of, printed, rows
from isthmus.cli.commands.diagnostics_policy import read
from isthmus.errors import UserFault
from isthmus.proto.linkerd import inbound_pb2 as pb
from isthmus.proto.linkerd import meta_pb2, net_pb2

ANYWHERE = [
    pb.Network(net=net_pb2.IPNetwork(ip=net_pb2.IPAddress(ipv4=0))),
    pb.Network(net=net_pb2.IPNetwork(ip=net_pb2.IPAddress(ipv6=net_pb2.IPv6()))),
]
INSIDE = pb.Network(net=net_pb2.IPNetwork(ip=net_pb2.IPAddress(ipv4=10 << 24), prefix_len=8))
NAMES = pb.Authn.PermitMeshTLS.PermitClientIdentities(
    identities=[pb.Identity(name="me.shop.example")],
    suffixes=[pb.IdentitySuffix(parts=["shop", "example"])],
)
MESHED = pb.Authz(
    networks=ANYWHERE,
    authentication=pb.Authn(meshTLS=pb.Authn.PermitMeshTLS(identities=NAMES)),
    labels={"group": "policy.linkerd.io", "kind": "authorizationpolicy", "name": "only-me"},
)
OLD = pb.Authz(
    networks=[INSIDE],
    authentication=pb.Authn(unauthenticated=pb.Authn.PermitUnauthenticated()),
    labels={"group": "policy.linkerd.io", "kind": "serverauthorization", "name": "inside"},
)
PROBE = pb.Authz(
    networks=ANYWHERE,
    authentication=pb.Authn(unauthenticated=pb.Authn.PermitUnauthenticated()),
    labels={"group": "", "kind": "default", "name": "probe"},
)
ROUTE = pb.HttpRoute(
    metadata=meta_pb2.Metadata(resource=meta_pb2.Resource(kind="HTTPRoute", name="juice")),
    authorizations=[MESHED],
)
PROBED = pb.HttpRoute(metadata=meta_pb2.Metadata(default="probe"), authorizations=[PROBE])
WEB = pb.Server(
    labels={"group": "policy.linkerd.io", "kind": "server", "name": "web"},
    authorizations=[OLD],
    protocol=pb.ProxyProtocol(detect=pb.ProxyProtocol.Detect(http_routes=[ROUTE, PROBED])),
)


def test_policies_of_servers_and_routes() -> None:
    told = printed(rows(WEB, 8080), "table").splitlines()
    assert [line.rstrip() for line in told] == [
        "ROUTE  SERVER  AUTHORIZATION_POLICY  SERVER_AUTHORIZATION",
        "*      web                           inside",
        "juice  web     only-me",
    ]


def test_who_may() -> None:
    every, juice, probe = printed(rows(WEB, 8080), "wide").splitlines()[1:]
    assert every.split() == ["*", "web", "inside", "8080", "anybody", "10.0.0.0/8"]
    names = ["*.shop.example,", "me.shop.example"]
    assert juice.split() == ["juice", "web", "only-me", "8080", *names, "anywhere"]
    assert probe.split() == ["probe", "web", "default:probe", "8080", "anybody", "anywhere"]


def test_ports_that_nobody_describes() -> None:
    server = pb.Server(
        labels={"kind": "default", "name": "all-unauthenticated"}, authorizations=[PROBE]
    )
    assert len(printed(rows(server, 80), "table").splitlines()) == 1
    (one,) = json.loads(printed(rows(server, 80), "json"))
    assert (one["server"], one["port"]) == ("default:all-unauthenticated", 80)


def test_ports_of_the_application() -> None:
    web = {"name": "web", "ports": [{"containerPort": 80}, {"containerPort": 9, "protocol": "UDP"}]}
    proxy = {"name": "linkerd-proxy", "ports": [{"containerPort": 4191}]}
    assert list(ports_of({"spec": {"containers": [web, proxy]}})) == [80]


def test_resources_and_ports() -> None:
    assert read(("po/a", "80")) == read(("Pod", "a", "80")) == ("pod", "a", 80)
    assert read(("svc", "b", "65535")) == ("service", "b", 65535)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("80",), "resource type and name are required"),
        (("po/", "80"), "resource type and name are required"),
        (("ds/x", "80"), "invalid resource type ds; must be one of Pod or Service"),
        (("po/x", "http"), "'http' is no port"),
        (("po/x", "0"), "'0' is no port"),
    ],
)
def test_resources_that_are_none(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserFault, match=said):
        read(words)

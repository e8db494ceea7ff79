from __future__ import annotations

import pytest

from isthmus.ir.inbound import ANYWHERE, Anybody, Authorization, Inbound, Network, Peers, Speech
from isthmus.ir.names import AnyIdentity, Default, Exact, Origin, Ref, Suffix
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import HttpMatch, Match, PathMatch
from isthmus.mesh.inbound import inbound
from isthmus.mesh.workloads import external_ref, pod_ref
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

ME = pod_ref(ObjectKey(LOCAL, "shop", "me"))
POLICY = "config.linkerd.io/default-inbound-policy"
IDENTITY = "me.shop.serviceaccount.identity.isthmus.trust.mesh.test"


def me(**said: object) -> Compact:
    base = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
    return {**base, "labels": {"app": "me"}, **said}


def server(name: str, **said: object) -> Compact:
    return {"server": f"shop/{name}", "pods": {"app": "me"}, "port": 8080, **said}


def asked(world: World, port: int = 8080) -> Inbound:
    return world.db.read(inbound, InboundName(ME, port))


def modes(found: Inbound) -> list[str]:
    return [each.source.name for each in found.authorizations if isinstance(each.source, Default)]


@pytest.mark.parametrize(
    ("mode", "authorizations"),
    [
        ("all-unauthenticated", [(ANYWHERE, Anybody(), False)]),
        ("all-authenticated", [(ANYWHERE, Peers((AnyIdentity(),)), False)]),
        ("cluster-unauthenticated", [((Network("10.0.0.0/8"),), Anybody(), False)]),
        ("cluster-authenticated", [((Network("10.0.0.0/8"),), Peers((AnyIdentity(),)), False)]),
        ("audit", [(ANYWHERE, Anybody(), True)]),
        ("deny", []),
    ],
)
def test_the_six_modes_of_who_may_in(
    mode: str, authorizations: list[tuple[tuple[Network, ...], Anybody | Peers, bool]]
) -> None:
    world = World(me(annotations={POLICY: mode}), cluster_networks=("10.0.0.0/8",))
    assert asked(world).authorizations == tuple(
        Authorization(Default(mode), networks, proof, audit)
        for networks, proof, audit in authorizations
    )
    assert asked(world).source == Default(mode)


def test_a_mode_is_said_by_the_workload_its_namespace_or_the_mesh() -> None:
    world = World(me(), default_inbound_policy="deny")
    assert asked(world).source == Default("deny")
    world.apply({"ns": "shop", "annotations": {POLICY: "audit"}})
    assert asked(world).source == Default("audit")
    world.apply(me(annotations={POLICY: "all-authenticated"}))
    assert asked(world).source == Default("all-authenticated")
    world.apply(me(annotations={POLICY: "whatever"}))
    assert asked(world).source == Default("deny")


@pytest.mark.parametrize(
    ("mode", "found"),
    [("all-unauthenticated", "all-authenticated"), ("deny", "deny"), ("audit", "audit")],
)
def test_ports_that_require_identity(mode: str, found: str) -> None:
    notes = {POLICY: mode, "config.linkerd.io/proxy-require-identity-inbound-ports": "8080"}
    world = World(me(annotations=notes))
    assert asked(world).source == Default(found)
    assert asked(world, 9090).source == Default(mode)


# ---------------------------------------------------------------------------------- Servers


@pytest.mark.parametrize(
    ("word", "speech"),
    [
        ("unknown", Speech.DETECT),
        ("HTTP/1", Speech.HTTP1),
        ("HTTP/2", Speech.HTTP2),
        ("gRPC", Speech.GRPC),
        ("opaque", Speech.OPAQUE),
        ("TLS", Speech.TLS),
    ],
)
def test_a_server_says_what_its_port_speaks(word: str, speech: Speech) -> None:
    world = World(me(opaque="8080"), server("web", protocol=word))
    assert asked(world).speech is speech


def test_a_server_beats_the_default_policy() -> None:
    world = World(me(annotations={POLICY: "all-unauthenticated"}), server("web", access="deny"))
    ref = Ref(LOCAL, "policy.linkerd.io", "Server", "shop", "web")
    assert asked(world).source == Origin(ref)
    assert asked(world).authorizations == ()
    assert modes(asked(world, 9090)) == ["all-unauthenticated"]


def test_of_several_servers_the_first_by_name_counts_among_those_of_one_age() -> None:
    world = World(me(), server("b", access="audit"), server("a", access="all-authenticated"))
    assert modes(asked(world)) == ["all-authenticated"]


def test_a_named_port_covers_every_port_of_that_name() -> None:
    ports = [{"port": 8080, "name": "web"}, {"port": 8081, "name": "web"}, {"port": 9090}]
    world = World(me(ports=ports), server("web", port="web", protocol="HTTP/1"))
    assert [asked(world, port).speech for port in (8080, 8081, 9090)] == [
        Speech.HTTP1,
        Speech.HTTP1,
        Speech.DETECT,
    ]


def test_opaque_ports_are_opaque_without_a_server() -> None:
    world = World(me(opaque="8080"))
    assert asked(world).speech is Speech.OPAQUE
    assert asked(world, 0).speech is Speech.DETECT


# ----------------------------------------------------------------------------------- probes


def test_probes_need_no_authorization() -> None:
    probes = [{"port": "WEB", "path": "/live?x=1"}, {"port": 9090, "path": "ready"}]
    world = World(me(ports=[{"port": 8080, "name": "web"}], probes=probes))
    default, probe = asked(world).http_routes
    assert default.source == Default("default")
    (rule,) = probe.rules
    assert rule.matches == (HttpMatch(PathMatch(Match.EXACT, "/live"), method=("GET",)),)
    assert probe.authorizations == (Authorization(Default("probe"), ANYWHERE, Anybody()),)
    (rule,) = asked(world, 9090).http_routes[1].rules
    assert rule.matches[0].path == PathMatch(Match.EXACT, "/ready")


def test_without_networks_for_probes_there_is_no_such_route() -> None:
    probes = [{"port": 8080, "path": "/live"}]
    assert len(asked(World(me(probes=probes), probe_networks=())).http_routes) == 1


# --------------------------------------------------------------------------------- mesh TLS


def test_mesh_tls_is_for_the_own_identity_and_for_targets() -> None:
    own = Exact(IDENTITY)
    mesh = Suffix(("internal", "trust", "mesh", "test"))
    assert asked(World(me())).accepted_snis == (own, mesh)
    assert asked(World(me(meshed="elsewhere"))).accepted_snis == (mesh,)


@pytest.mark.parametrize(
    ("pod", "namespace", "strict"),
    [
        (None, None, False),
        ("strict", None, True),
        (None, "strict", True),
        ("permissive", "strict", False),
        ("Strict", "strict", False),
    ],
)
def test_strictness_is_asked_for(pod: str | None, namespace: str | None, strict: bool) -> None:
    key = "config.isthmus.dev/inbound-tls"
    world = World(
        {"ns": "shop", "annotations": {key: namespace} if namespace else {}},
        me(annotations={key: pod} if pod else {}),
    )
    assert asked(world).strict is strict


def test_an_external_workload_has_an_inbound_too() -> None:
    world = World(
        {
            "ew": "shop/vm",
            "ips": ["192.0.2.1"],
            "ports": [{"port": 8080, "name": "web"}],
            "id": "spiffe://td/vm",
            "sni": "vm",
            "labels": {"app": "vm"},
            "opaque": "9090",
        },
        {"server": "shop/web", "ews": {"app": "vm"}, "port": "web", "protocol": "HTTP/2"},
    )
    vm = external_ref(ObjectKey(LOCAL, "shop", "vm"))
    assert world.db.read(inbound, InboundName(vm, 8080)).speech is Speech.HTTP2
    assert world.db.read(inbound, InboundName(vm, 9090)).speech is Speech.OPAQUE

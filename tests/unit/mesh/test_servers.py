from __future__ import annotations

from typing import Any

import pytest

from isthmus.ir.inbound import Inbound, RateLimit, RateOverride, Speech
from isthmus.ir.names import Default, Dns, Origin, Ref, Suffix
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import Fail, GrpcMatch, HeaderChange, HttpMatch, Match, PathMatch
from isthmus.mesh.inbound import inbound
from isthmus.mesh.inbound_routes import inbound_route_faults, refused_by_server
from isthmus.mesh.rate_limits import LimitState, limit_state
from isthmus.mesh.routes import parents
from isthmus.mesh.servers import (
    Overlap,
    covered_workloads,
    covering_server,
    described_ports,
    overlaps,
)
from isthmus.mesh.workloads import external_ref, pod_ref
from isthmus.model.key import ObjectKey
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

ME = pod_ref(ObjectKey(LOCAL, "shop", "me"))
ENDING = "serviceaccount.identity.isthmus.trust.mesh.test"


def me(**said: object) -> Compact:
    base = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy"}
    return {**base, "labels": {"app": "me"}, **said}


def server(name: str, **said: object) -> Compact:
    return {"server": f"shop/{name}", "pods": {"app": "me"}, "port": 8080, **said}


def asked(world: World, port: int = 8080) -> Inbound:
    return world.db.read(inbound, InboundName(ME, port))


def key(name: str) -> ObjectKey:
    return ObjectKey(LOCAL, "shop", name)


def route(name: str, group: str = "policy.linkerd.io", kind: str = "HTTPRoute") -> Ref:
    return Ref(LOCAL, group, kind, "shop", name)


# ------------------------------------------------------------------------------- overlap


def test_of_several_servers_the_oldest_counts_then_the_first_by_name() -> None:
    world = World(
        me(),
        server("alpha", created="2026-01-01T00:09:00Z"),
        server("zeta", created="2026-01-01T00:03:00Z"),
        server("beta", port=8081, created="2026-01-01T00:03:00Z"),
        server("alto", port=8081, created="2026-01-01T00:03:00Z"),
    )
    assert world.db.read(covering_server, ME, 8080) == key("zeta")
    assert world.db.read(covering_server, ME, 8081) == key("alto")
    assert world.db.read(covering_server, ME, 8082) is None


def test_the_loser_of_an_overlap_is_told_where_and_to_whom() -> None:
    world = World(
        me(ports=[{"port": 8080, "name": "web"}, {"port": 9090, "name": "web"}]),
        server("old", created="2026-01-01T00:00:00Z"),
        server("young", port="web", created="2026-01-02T00:00:00Z"),
    )
    assert world.db.read(overlaps, key("young")) == (Overlap(ME, 8080, key("old")),)
    assert world.db.read(overlaps, key("old")) == ()
    assert world.db.read(covering_server, ME, 9090) == key("young")
    assert world.db.read(described_ports, key("young")) == (InboundName(ME, 9090),)
    assert world.db.read(described_ports, key("old")) == (InboundName(ME, 8080),)


def test_a_server_that_selects_nothing_protects_nothing() -> None:
    world = World(me(), server("web"), server("none", pods={"app": "other"}))
    assert world.db.read(covered_workloads, key("web")) == (ME,)
    assert world.db.read(covered_workloads, key("none")) == ()
    assert world.db.read(overlaps, key("gone")) == ()


# --------------------------------------------------------------------------- named ports


def test_a_named_port_is_a_tcp_port_of_any_container() -> None:
    world = World(me(), server("admin", port="adm"))
    world.write(
        "pod shop/me",
        {
            "metadata": {"labels": {"app": "me"}},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 8080}]}],
                "initContainers": [
                    {
                        "name": "linkerd-proxy",
                        "ports": [
                            {"name": "adm", "containerPort": 4191, "protocol": "TCP"},
                            {"name": "adm", "containerPort": 5555, "protocol": "UDP"},
                        ],
                    }
                ],
            },
        },
    )
    sources = {port: asked(world, port).source for port in (0, 4191, 5555, 8080)}
    assert [port for port, found in sources.items() if isinstance(found, Origin)] == [4191]


def test_a_named_port_is_not_every_port_that_has_no_host_port() -> None:
    world = World(me(ports=[{"port": 8080, "name": "web"}]), server("web", port="web"))
    assert asked(world, 0).source == Default("all-unauthenticated")


def test_a_server_without_a_port_covers_none() -> None:
    world = World(me(), server("web", port=0))
    assert asked(world, 0).source == Default("all-unauthenticated")


def test_ports_of_external_workloads_have_names() -> None:
    world = World(
        {"ew": "shop/vm", "ips": ["192.0.2.1"], "ports": [{"port": 81, "name": "web"}],
         "id": "spiffe://td/vm", "labels": {"app": "vm"}},
        {"server": "shop/web", "ews": {"app": "vm"}, "port": "web"},
    )  # fmt: skip
    vm = external_ref(key("vm"))
    assert world.db.read(covering_server, vm, 81) == key("web")
    assert world.db.read(covered_workloads, key("web")) == (vm,)
    assert world.db.read(overlaps, key("web")) == ()


@pytest.mark.parametrize("word", ["Deny", "", "everybody", "all-unauthenticated "])
def test_an_access_policy_that_nobody_knows_denies(word: str) -> None:
    assert asked(World(me(), server("web", access=word))).authorizations == ()


# -------------------------------------------------------------------------------- routes

JUICE = {"matches": [{"path": {"type": "PathPrefix", "value": "/juice"}}]}


def test_an_attached_route_replaces_both_default_routes() -> None:
    world = World(
        me(probes=[{"port": 8080, "path": "/live"}]),
        server("web"),
        {"phr": "shop/juice", "for": "web", "rules": [JUICE], "hosts": ["*.example", "A.b"]},
        {"az": "shop/ok", "for": ["HTTPRoute.policy.linkerd.io", "juice"]},
        {"az": "shop/other", "for": ["HTTPRoute.gateway.networking.k8s.io", "juice"]},
    )
    (found,) = asked(world).http_routes
    assert found.source == Origin(route("juice"))
    assert found.hosts[0] == Suffix(("example",))
    assert found.rules[0].matches == (HttpMatch(PathMatch(Match.PREFIX, "/juice")),)
    (by,) = found.authorizations
    assert isinstance(by.source, Origin)
    assert by.source.ref.name == "ok"
    world.delete("phr shop/juice")
    assert [each.source for each in asked(world).http_routes] == [
        Default("default"),
        Default("probe"),
    ]


def test_routes_stand_by_age_then_name_then_group() -> None:
    world = World(
        me(),
        server("web"),
        {"phr": "shop/m", "for": "web", "rules": [JUICE], "created": "2026-01-01T00:09:00Z"},
        {"phr": "shop/a", "for": "web", "rules": [JUICE], "created": "2026-01-01T00:05:00Z"},
        {"hr": "shop/b", "for": "web", "rules": [JUICE], "created": "2026-01-01T00:05:00Z"},
        {"hr": "shop/a", "for": "web", "rules": [JUICE], "created": "2026-01-01T00:05:00Z"},
        {"phr": "shop/z", "for": "web", "rules": [JUICE], "created": "2026-01-01T00:02:00Z"},
    )
    found = [each.source for each in asked(world).http_routes]
    names = [
        (each.ref.name, each.ref.group.split(".")[0]) for each in found if isinstance(each, Origin)
    ]
    assert names == [
        ("z", "policy"), ("a", "gateway"), ("a", "policy"), ("b", "gateway"), ("m", "policy"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parent", "why"),
    [({"port": 8080}, "port"), ({"sectionName": "x"}, "port"), ({"namespace": "pay"}, "namespace")],
)
def test_a_parent_that_no_server_can_be_makes_the_whole_route_mean_nothing(
    parent: dict[str, object], why: str
) -> None:
    world = World(me(), server("web"), {"phr": "shop/r", "for": "web", "parent": parent})
    two = {"parentRefs": [{"group": "policy.linkerd.io", "kind": "Server", "name": "web"}]}
    two["parentRefs"].append({**two["parentRefs"][0], **parent})  # type: ignore[dict-item]
    world.write("phr shop/two", {"metadata": {}, "spec": two})
    assert [each.source for each in asked(world).http_routes] == [Default("default")]
    (said,) = world.db.read(parents, route("r"))
    assert why in world.db.read(refused_by_server, route("r"), said)


def test_whether_a_server_takes_a_route() -> None:
    world = World(
        me(), server("web"), {"phr": "shop/r", "for": "web"}, {"phr": "shop/g", "for": "x"}
    )
    (taken,), (gone,) = (world.db.read(parents, route(name)) for name in "rg")
    assert world.db.read(refused_by_server, route("r"), taken) == ""
    assert "no Server x" in world.db.read(refused_by_server, route("g"), gone)


def test_grpc_ports_have_grpc_routes_only() -> None:
    world = World(
        me(),
        server("rpc", protocol="gRPC"),
        {"phr": "shop/http", "for": "rpc", "rules": [JUICE]},
    )
    found = asked(world)
    assert (found.speech, found.http_routes) == (Speech.GRPC, ())
    assert [each.source for each in found.grpc_routes] == [Default("default")]
    method = {"service": "pkg.Till", "method": "Pay"}
    world.apply(
        {"gr": "shop/pay", "for": "rpc", "rules": [{"matches": [{"method": method}]}]},
        {"az": "shop/ok", "for": ["GRPCRoute", "pay"]},
    )
    (one,) = asked(world).grpc_routes
    assert one.rules[0].matches == (GrpcMatch("pkg.Till", "Pay"),)
    assert len(one.authorizations) == 1


@pytest.mark.parametrize("word", ["opaque", "TLS"])
def test_ports_that_pass_bytes_have_no_routes(word: str) -> None:
    world = World(me(), server("raw", protocol=word), {"phr": "shop/r", "for": "raw"})
    found = asked(world)
    assert (found.http_routes, found.grpc_routes) == ((), ())


def test_what_of_a_route_cannot_be_done_answers_for_itself_and_is_told() -> None:
    rule: dict[str, Any] = {
        "matches": [
            {"path": {"type": "PathPrefix", "value": "/a"}},
            {"path": {"type": "RegularExpression", "value": "("}},
        ],
        "filters": [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x"]}},
            {"type": "ExtensionRef", "extensionRef": {"group": "g", "kind": "K", "name": "n"}},
            {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 1}}},
        ],
        "backendRefs": [{"name": "s", "port": 1}],
    }
    nothing = {"matches": [{"path": {"type": "Exact", "value": "no-slash"}}]}
    world = World(me(), server("web"), {"hr": "shop/r", "for": "web", "rules": [rule, nothing]})
    (found,) = asked(world).http_routes
    (one,) = found.rules
    assert len(one.matches) == 1
    assert isinstance(one.filters[0], HeaderChange)
    assert isinstance(one.filters[1], Fail)
    assert len(one.filters) == 2
    ref = route("r", "gateway.networking.k8s.io")
    assert [each.path for each in world.db.read(inbound_route_faults, ref)] == [
        "rules[0].matches[1]",
        "rules[0].filters[1]",
        "rules[0].filters[2]",
        "rules[0].backendRefs",
        "rules[1].matches[0]",
    ]
    assert world.db.read(inbound_route_faults, route("gone")) == ()


def test_backends_are_for_the_clients_of_a_service_that_a_route_is_for_too() -> None:
    own = {"group": "policy.linkerd.io", "kind": "Server", "name": "web"}
    cart = {"group": "", "kind": "Service", "name": "cart"}
    rules = [{"backendRefs": [{"name": "s", "port": 1}]}]
    world = World(me(), server("web"))
    for parent_refs, number in (([own], 1), ([own, cart], 0)):
        spec = {"parentRefs": parent_refs, "rules": rules}
        world.write("phr shop/r", {"metadata": {}, "spec": spec})
        assert len(world.db.read(inbound_route_faults, route("r"))) == number


# --------------------------------------------------------------------------- rate limits

LIMIT: Compact = {
    "limit": "shop/lim",
    "for": "web",
    "total": 100,
    "identity": 10,
    "overrides": [[50, ["picker", "pay/till"]]],
    "created": "2026-01-01T00:01:00Z",
}


def limit(*objects: Compact, **said: object) -> RateLimit | None:
    return asked(World(me(), server("web", **said), *objects)).rate_limit


def test_a_rate_limit_spells_identities_out() -> None:
    source = Origin(Ref(LOCAL, "policy.linkerd.io", "HTTPLocalRateLimitPolicy", "shop", "lim"))
    clients = (Dns(f"picker.shop.{ENDING}"), Dns(f"till.pay.{ENDING}"))
    assert limit(LIMIT) == RateLimit(source, 100, 10, (RateOverride(clients, 50),))
    assert limit() is None


@pytest.mark.parametrize(
    ("word", "counted"), [("HTTP/1", True), ("HTTP/2", True), ("gRPC", False), ("opaque", False)]
)
def test_requests_are_counted_where_there_is_http(word: str, counted: bool) -> None:
    assert (limit(LIMIT, protocol=word) is not None) is counted


def test_of_several_rate_limits_the_oldest_counts() -> None:
    young: Compact = {**LIMIT, "limit": "shop/a", "created": "2026-01-02T00:00:00Z"}
    lost: Compact = {**LIMIT, "limit": "shop/lost", "for": "ghost"}
    world = World(me(), server("web"), LIMIT, young, lost)
    states = {name: world.db.read(limit_state, key(name)) for name in ("lim", "a", "lost", "gone")}
    assert states == {
        "lim": LimitState.ACCEPTED,
        "a": LimitState.ALREADY_EXISTS,
        "lost": LimitState.NO_TARGET,
        "gone": None,
    }
    world.delete("limit shop/lim")
    assert world.db.read(limit_state, key("a")) is LimitState.ACCEPTED


def test_rates_that_no_api_lets_in_limit_nothing() -> None:
    odd: Compact = {**LIMIT, "total": 0, "identity": 2**32, "overrides": [[0, ["a"]], [5, []]]}
    found = limit(odd)
    assert found is not None
    assert (found.total, found.each, found.overrides) == (None, None, ())

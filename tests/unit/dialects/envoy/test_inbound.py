from __future__ import annotations

import re

import pytest
from envoy.config.listener.v3 import listener_components_pb2 as component
from envoy.config.route.v3 import route_components_pb2 as route
from envoy.extensions.filters.http.local_ratelimit.v3 import local_rate_limit_pb2 as local
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm,
)
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac
from envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2 as tcp
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2

from isthmus.dialects.envoy import limits
from isthmus.ir.hosts import PLAIN
from isthmus.ir.inbound import RateLimit, RateOverride
from isthmus.ir.names import AnyIdentity, Default, Dns, IdentitySuffix, Spiffe
from isthmus.proto.xds import ROUTES
from tests.support.compact import Compact
from tests.support.envoys import Sidecar, pod
from tests.support.meshworld import World

POLICY = "config.linkerd.io/default-inbound-policy"
WEB: Compact = {"server": "shop/web", "pods": {"app": "me"}, "port": 8080}
RAW: Compact = {"server": "shop/raw", "pods": {"app": "me"}, "port": 9000, "protocol": "opaque"}
STRICT = {"config.isthmus.dev/inbound-tls": "strict"}
NAMES = [
    "me.shop.serviceaccount.identity.isthmus.trust.mesh.test",
    "*.internal.trust.mesh.test",
]


def sidecar(*objects: Compact, **said: object) -> Sidecar:
    me = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "proxy": "envoy", "sa": "me"}
    me |= {"labels": {"app": "me"}, **said}
    return Sidecar(World({"ns": "shop"}, me, *objects), pod("shop/me"))


def chains(said: Sidecar) -> dict[str, component.FilterChain]:
    return {each.name: each for each in said.listener("inbound").filter_chains}


def inside(chain: component.FilterChain) -> str:
    """In a word: the routes of requests, or where bytes go, and whether a rule stands before."""
    words = []
    for each in chain.filters:
        manager, proxy, rule = hcm.HttpConnectionManager(), tcp.TcpProxy(), network_rbac.RBAC()
        if each.typed_config.Unpack(manager):
            words.append(manager.rds.route_config_name)
        elif each.typed_config.Unpack(proxy):
            words.append(proxy.cluster)
        elif each.typed_config.Unpack(rule):
            words.append(" ".join(sorted(rule.rules.policies)))
    return ", ".join(words)


def test_mesh_tls_is_told_apart_by_name_and_what_is_inside_by_alpn() -> None:
    found = chains(sidecar())
    for name, alpn, what in (
        ("mesh-http", ["isthmus/http"], "in|0"),
        ("mesh-tcp", ["isthmus/tcp"], "app"),
        ("mesh", [], "in|0"),
    ):
        match = found[name].filter_chain_match
        assert list(match.server_names) == NAMES
        assert match.transport_protocol == "tls"
        assert list(match.application_protocols) == alpn
        assert inside(found[name]) == what


def test_mesh_chains_ask_for_a_certificate_and_choose_no_alpn() -> None:
    for name in ("mesh-http", "mesh-tcp", "mesh"):
        context = tls_pb2.DownstreamTlsContext()
        assert chains(sidecar())[name].transport_socket.typed_config.Unpack(context)
        assert context.require_client_certificate.value
        common = context.common_tls_context
        assert not common.alpn_protocols
        assert common.tls_params.ecdh_curves[0] == "X25519MLKEM768"
        assert common.validation_context_sds_secret_config.name == "ROOTCA"


def test_the_applications_own_tls_and_plaintext_pass() -> None:
    found = chains(sidecar())
    assert inside(found["app-tls"]) == "app"
    assert not found["app-tls"].HasField("transport_socket")
    assert inside(found["plain"]) == "app"
    assert inside(found["plain-http"]) == "in|0"
    assert list(found["plain-http"].filter_chain_match.application_protocols) == [
        "http/1.0",
        "http/1.1",
        "h2c",
    ]


def test_strict_workloads_take_mesh_tls_only() -> None:
    found = chains(sidecar(annotations=STRICT))
    assert {"mesh-http", "mesh-tcp", "mesh", "refused"} <= set(found)
    assert not {"app-tls", "plain", "plain-http"} & set(found)
    assert inside(found["refused"]) == "refused"


def test_probes_of_strict_workloads_come_in_plaintext_and_nothing_else_does() -> None:
    said = sidecar(annotations=STRICT, probes=[{"port": 8080, "path": "/live"}])
    assert inside(chains(said)["plain-http-8080"]) == "probe|8080"
    (host,) = said.routes("probe|8080").virtual_hosts
    assert {each.match.path for each in host.routes} == {"/live"}
    assert said.find(ROUTES, "probe|0") is None
    assert "probe|0" not in said.names(ROUTES)


def test_a_port_like_all_others_has_no_chains_of_its_own() -> None:
    plain = set(chains(sidecar()))
    assert set(chains(sidecar(ports=[{"port": 8080}]))) == plain
    assert "in|8080" in sidecar(ports=[{"port": 8080}]).names(ROUTES)


def test_an_opaque_port_has_all_its_chains_and_is_not_looked_at_for_http() -> None:
    said = sidecar(ports=[{"port": 9000}], opaque="9000")
    found = {name: one for name, one in chains(said).items() if name.endswith("-9000")}
    assert {name: inside(one) for name, one in found.items()} == {
        "mesh-http-9000": "in|9000",
        "mesh-tcp-9000": "app",
        "mesh-grpc-9000": "in|9000",
        "mesh-9000": "app",
        "app-tls-9000": "app",
        "plain-9000": "app",
    }
    assert all(one.filter_chain_match.destination_port.value == 9000 for one in found.values())
    wire = said.listener("inbound")
    (http,) = (each for each in wire.listener_filters if each.name.endswith("http_inspector"))
    assert http.filter_disabled.destination_port_range.start == 9000
    assert wire.listener_filters_timeout.ToMilliseconds() == 1_000
    assert sidecar().listener("inbound").listener_filters_timeout.ToMilliseconds() == 10_000


def test_the_proxys_own_ports_are_refused() -> None:
    found = chains(sidecar())
    assert inside(found["own-4143"]) == inside(found["own-4140"]) == "refused"


# ------------------------------------------------------------------------------ who may call


@pytest.mark.parametrize(
    ("mode", "mesh", "plain"),
    [
        ("all-unauthenticated", "app", "app"),
        ("all-authenticated", "app", "refused"),
        ("deny", "refused", "refused"),
        ("audit", "default/localhost ~default/audit, app", "default/localhost ~default/audit, app"),
    ],
)
def test_bytes_of_strangers_are_refused_before_the_server_speaks(
    mode: str, mesh: str, plain: str
) -> None:
    found = chains(sidecar(annotations={POLICY: mode}))
    assert inside(found["mesh-tcp"]) == mesh
    assert inside(found["plain"]) == inside(found["app-tls"]) == plain


def rules(host: route.VirtualHost | route.Route) -> list[str] | None:
    """The names of the policies that stand there; None where nothing is said."""
    if "envoy.filters.http.rbac" not in host.typed_per_filter_config:
        return None
    found = http_rbac.RBACPerRoute()
    assert host.typed_per_filter_config["envoy.filters.http.rbac"].Unpack(found)
    return sorted(found.rbac.rules.policies)


def test_requests_are_judged_in_the_routes_so_that_a_change_drains_nobody() -> None:
    before, after = sidecar(), sidecar(annotations={POLICY: "all-authenticated"})
    (host,) = before.routes("in|0").virtual_hosts
    assert rules(host) is None
    (host,) = after.routes("in|0").virtual_hosts
    assert rules(host) == ["default/all-authenticated", "default/localhost"]
    assert chains(before)["mesh-http"].filters == chains(after)["mesh-http"].filters


def test_probes_are_asked_nothing_and_come_first() -> None:
    said = sidecar(annotations={POLICY: "deny"}, probes=[{"port": 8080, "path": "/live"}])
    (host,) = said.routes("in|8080").virtual_hosts
    assert [each.match.path for each in host.routes] == ["/live", "/live", "", ""]
    assert [rules(each) for each in host.routes] == [[], [], None, None]
    assert rules(host) == ["default/localhost"]


# ------------------------------------------------------------------------------ requests


def test_what_was_http1_is_http1_again() -> None:
    (host,) = sidecar().routes("in|0").virtual_hosts
    was, other = host.routes
    assert (was.route.cluster, other.route.cluster) == ("app-http1", "app")
    (condition,) = was.match.headers
    assert (condition.name, condition.string_match.prefix) == ("isthmus-protocol", "HTTP/1")
    assert not other.match.headers


def test_callers_cannot_say_who_they_are() -> None:
    said = sidecar()
    (host,) = said.routes("in|0").virtual_hosts
    hidden = {"l5d-client-id", "l5d_client_id", "l5d-client_id", "x_forwarded_client_cert"}
    assert {"isthmus-protocol", *hidden} <= set(host.request_headers_to_remove)
    assert "x-forwarded-client-cert" not in host.request_headers_to_remove  # ours by then
    (added,) = host.request_headers_to_add
    assert (added.header.key, added.header.value) == (
        "l5d-client-id",
        "%DOWNSTREAM_PEER_DNS_SAN%",
    )
    assert not added.keep_empty_value
    for name in ("mesh-http", "plain-http"):
        manager = hcm.HttpConnectionManager()
        assert chains(said)[name].filters[0].typed_config.Unpack(manager)
        assert manager.forward_client_cert_details == hcm.HttpConnectionManager.SANITIZE_SET


def test_servers_describe_their_ports() -> None:
    said = sidecar(
        {"server": "shop/web", "pods": {"app": "me"}, "port": 8080, "protocol": "HTTP/1",
         "access": "all-authenticated"},
        {"server": "shop/tls", "pods": {"app": "me"}, "port": 8443, "protocol": "TLS",
         "access": "all-unauthenticated"},
    )  # fmt: skip
    found = chains(said)
    for name in ("plain", "mesh", "mesh-http", "mesh-tcp"):
        assert inside(found[f"{name}-8080"]) == "in|8080"
    assert inside(found["app-tls-8080"]) == "refused"
    assert inside(found["mesh-8443"]) == "app"
    assert not {"plain-http-8080", "plain-http-8443"} & set(found)
    (host,) = said.routes("in|8080").virtual_hosts
    assert host.routes[0].metadata.filter_metadata["isthmus"]["labels"] == (
        "policy.linkerd.io|server|web|8080||default|default||"
    )


def labels_of(said: Sidecar, name: str) -> str:
    found = chains(said)[name].metadata.filter_metadata["isthmus"]["labels"]
    assert isinstance(found, str)
    return found


def test_who_lets_everybody_in_is_told_where_no_rule_asks() -> None:
    """No rule means no name of a rule: what metrics tell of it is known beforehand."""
    said = sidecar(WEB, {"az": "shop/open", "for": "web"}, {**RAW, "access": "all-authenticated"})
    (host,) = said.routes("in|8080").virtual_hosts
    assert host.routes[0].metadata.filter_metadata["isthmus"]["labels"] == (
        "policy.linkerd.io|server|web|8080||default|default|authorizationpolicy|open"
    )
    server = "policy.linkerd.io|server|raw|9000|"
    assert labels_of(said, "mesh-tcp-9000") == f"{server}default|all-authenticated"
    assert labels_of(said, "plain-9000") == f"{server}|"


# ------------------------------------------------------------------------------ evasion


def route_of(name: str, path: str, *hosts: str, **said: object) -> Compact:
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": path}}], **said}
    return {"hr": f"shop/{name}", "for": "web", "rules": [rule], "hosts": list(hosts)}


def refusals(host: route.VirtualHost) -> list[str]:
    """What is answered with 400 before any route counts."""
    found = []
    for each in host.routes:
        if each.direct_response.status == 400:
            header = [one.string_match.safe_regex.regex for one in each.match.headers]
            assert all(one.invert_match for one in each.match.headers)
            found += [each.match.safe_regex.regex, *header]
            assert rules(each) == []
    return list(filter(None, found))


def test_parameters_are_refused_where_paths_decide() -> None:
    for routes, refused in (
        ([route_of("all", "/")], []),
        ([route_of("all", "/"), route_of("admin", "/admin")], ["[^;]*;.*"]),
    ):
        (host,) = sidecar(WEB, *routes).routes("in|8080").virtual_hosts
        assert refusals(host) == refused
        assert len(host.routes) == len(refused) + 2 * len(routes)


def test_hosts_have_a_twin_with_a_dot_and_those_of_two_readings_are_refused() -> None:
    said = sidecar(WEB, route_of("all", "/"), route_of("one", "/", "a.example", "*.b.example"))
    hosts = {each.name: each for each in said.routes("in|8080").virtual_hosts}
    assert {name: list(each.domains) for name, each in hosts.items()} == {
        "a.example": ["a.example", "a.example."],
        "*.b.example": ["*.b.example", "*.b.example."],
        "*": ["*"],
    }
    found = {name: refusals(each) for name, each in hosts.items()}
    assert found == {name: [PLAIN] for name in hosts}


def test_a_route_is_judged_by_the_ports_policies_and_its_own() -> None:
    said = sidecar(
        WEB,
        route_of("admin", "/admin"),
        route_of("away", "/away", filters=[
            {"type": "RequestRedirect", "requestRedirect": {"hostname": "x.example"}},
        ]),
        {"az": "shop/ops", "for": ["HTTPRoute.gateway.networking.k8s.io", "admin"],
         "needs": ["ServiceAccount ops"]},
        {"az": "shop/all", "for": "web", "needs": ["ServiceAccount any"]},
    )  # fmt: skip
    (host,) = said.routes("in|8080").virtual_hosts
    by_server = ["authorizationpolicy/shop/all", "default/localhost"]
    assert rules(host) == by_server
    found = {each.name.rpartition("/")[2]: rules(each) for each in host.routes if each.name}
    assert found == {
        "admin": ["authorizationpolicy/shop/all", "authorizationpolicy/shop/ops",
                  "default/localhost"],
        "away": None,
    }  # fmt: skip


# --------------------------------------------------------------------------- rate limits


def test_limits_stand_on_all_routes_of_a_port_at_once() -> None:
    limit: Compact = {"limit": "shop/lim", "for": "web", "total": 9, "identity": 3}
    away = route_of("away", "/away", filters=[
        {"type": "RequestRedirect", "requestRedirect": {"hostname": "x.example"}},
    ])  # fmt: skip
    said = sidecar(WEB, limit, away, route_of("rest", "/"))
    wire = said.routes("in|8080")
    assert set(wire.typed_per_filter_config) == {limits.LIMIT, limits.MARK}
    found = local.LocalRateLimit()
    assert wire.typed_per_filter_config[limits.LIMIT].Unpack(found)
    assert found.token_bucket.max_tokens == 9
    assert found.always_consume_default_token_bucket.value
    (host,) = wire.virtual_hosts
    assert limits.CALLER in host.request_headers_to_remove
    off = [limits.LIMIT in each.typed_per_filter_config for each in host.routes]
    assert off == [True, True, False, False]
    assert not sidecar(WEB).routes("in|8080").typed_per_filter_config


def test_a_change_of_limits_drains_nobody() -> None:
    before = sidecar(WEB)
    after = sidecar(WEB, {"limit": "shop/lim", "for": "web", "total": 9})
    assert before.listener("inbound") == after.listener("inbound")


def test_of_several_allowances_the_first_that_names_a_client_counts() -> None:
    who = Default("who")
    overrides = (
        RateOverride((Dns("a.b"), IdentitySuffix(("c", "d"))), 5),
        RateOverride((Dns("a.b"),), 7),
        RateOverride((Dns("e.f"), Spiffe("td", ()), AnyIdentity()), 9),
    )
    said = limits.settings(RateLimit(who, None, 1, overrides))[limits.LIMIT]
    found = local.LocalRateLimit()
    assert said.Unpack(found)
    assert found.token_bucket.max_tokens == 2**32 - 1
    rates = [(each.entries[0].value, each.token_bucket.max_tokens) for each in found.descriptors]
    assert rates == [("0", 5), ("1", 7), ("2", 9), ("others", 1)]
    chosen = [each.actions[0].header_value_match for each in found.rate_limits]
    assert [each.descriptor_value for each in chosen] == ["0", "2", "others"]
    assert [each.expect_match.value for each in chosen] == [True, True, False]
    first, third, none = (each.headers[0].string_match.safe_regex.regex for each in chosen)
    assert re.fullmatch(first, "id:a.b")
    assert re.fullmatch(first, "id:x.c.d")
    assert not re.fullmatch(first, "id:aXb")
    assert re.fullmatch(third, "id:whoever")
    assert not re.fullmatch(third, "id:")
    assert re.fullmatch(none, "id:e.f")


def test_a_limit_without_rates_wakes_nothing() -> None:
    assert not limits.awake(RateLimit(Default("who")))
    assert not limits.awake(None)
    odd: Compact = {"limit": "shop/lim", "for": "web", "total": 0}
    assert not sidecar(WEB, odd).routes("in|8080").typed_per_filter_config

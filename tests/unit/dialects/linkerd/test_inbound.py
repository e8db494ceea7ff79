from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.dialects.linkerd import (
    Fault,
    inbound_faults,
    inbound_question,
    server_faults,
    server_policy,
)
from isthmus.dialects.linkerd.inbound import grpc_filters, http_filters, server
from isthmus.dialects.linkerd.inbound_faults import faults_of
from isthmus.ir.inbound import (
    ANYWHERE,
    Anybody,
    Authorization,
    Inbound,
    InboundGrpcRoute,
    InboundGrpcRule,
    InboundRoute,
    InboundRule,
    Network,
    Peers,
    RateLimit,
    RateOverride,
    Speech,
    TlsOnly,
)
from isthmus.ir.names import (
    AnyIdentity,
    Default,
    Dns,
    Exact,
    IdentitySuffix,
    Origin,
    Ref,
    Spiffe,
    Suffix,
    TargetId,
)
from isthmus.ir.proxy import InboundName
from isthmus.ir.rules import (
    Fail,
    Forbid,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    Mirror,
    PathMatch,
    Redirect,
    Rewrite,
    ValueMatch,
)
from isthmus.mesh.workloads import external_ref, pod_ref
from isthmus.model.key import ObjectKey
from isthmus.proto.linkerd import inbound_pb2 as pb
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL, World

POD = {"pod": "shop/me", "ip": "10.1.0.9", "meshed": True, "labels": {"app": "me"}}
VM = {"ew": "shop/vm", "ips": ["192.0.2.1"], "id": "spiffe://td/vm", "labels": {"app": "vm"}}
ME = pod_ref(ObjectKey(LOCAL, "shop", "me"))


def spec(workload: str, port: int = 8080) -> bytes:
    return pb.PortSpec(workload=workload, port=port).SerializeToString()


# ----------------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("workload", "found"),
    [
        ("shop:me", ME),
        ('{"ns":"shop","pod":"me"}', ME),
        ('{"ns":"shop", "pod":"me", "more": 1}\n', ME),
        (
            '{"ns":"shop","external_workload":"vm"}',
            external_ref(ObjectKey(LOCAL, "shop", "vm")),
        ),
    ],
)
def test_a_workload_names_itself(workload: str, found: Ref) -> None:
    world = World(POD, VM)
    assert inbound_question(world.db.read, spec(workload)) == InboundName(found, 8080)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xff", "INVALID_ARGUMENT"),
        (spec("me"), "INVALID_ARGUMENT"),
        (spec(""), "INVALID_ARGUMENT"),
        (spec(":me"), "INVALID_ARGUMENT"),
        (spec("shop:"), "INVALID_ARGUMENT"),
        (spec("{"), "INVALID_ARGUMENT"),
        (spec('{"ns":"shop"}'), "INVALID_ARGUMENT"),
        (spec('{"ns":"shop","pod":"me","external_workload":"vm"}'), "INVALID_ARGUMENT"),
        (spec('{"ns":1,"pod":"me"}'), "INVALID_ARGUMENT"),
        (spec("shop:" + "x" * 1024), "INVALID_ARGUMENT"),
        (spec("shop:me", 0), "INVALID_ARGUMENT"),
        (spec("shop:me", 65536), "INVALID_ARGUMENT"),
        (spec("shop:ghost"), "NOT_FOUND"),
        (spec("pay:me"), "NOT_FOUND"),
        (spec("shop:bare"), "NOT_FOUND"),
        (spec('{"ns":"shop","external_workload":"me"}'), "NOT_FOUND"),
    ],
)
def test_questions_that_get_no_answer(body: bytes, status: str) -> None:
    world = World(POD, VM, {"pod": "shop/bare", "ip": "10.1.0.8"})
    found = inbound_question(world.db.read, body)
    assert isinstance(found, Fault)
    assert found.status == status
    assert len(found.text) < 200


def test_of_a_workload_that_is_gone_nothing_more_is_said() -> None:
    world = World(POD)
    name = InboundName(ME, 8080)
    assert world.db.read(server_policy, name) is not None
    world.delete("pod shop/me")
    assert world.db.read(server_policy, name) is None


# -------------------------------------------------------------------------------- Server

WEB = Origin(Ref(LOCAL, "policy.linkerd.io", "Server", "shop", "web"))
OPEN = Authorization(
    Origin(Ref(LOCAL, "policy.linkerd.io", "AuthorizationPolicy", "shop", "open")),
    (Network("10.0.0.0/8", ("10.1.0.0/16",)), Network("fd00::/8")),
    Anybody(),
)


def told(**said: Any) -> pb.Server:  # noqa: ANN401  # fields of Inbound
    return server(Inbound(ME, 8080, said.pop("speech", Speech.DETECT), WEB, **said))


def test_a_server_is_named_in_lower_case_and_without_namespace() -> None:
    found = told(authorizations=(OPEN,))
    assert dict(found.labels) == {"group": "policy.linkerd.io", "kind": "server", "name": "web"}
    (one,) = found.authorizations
    resource = one.metadata.resource
    assert (resource.group, resource.kind, resource.namespace, resource.name) == (
        "policy.linkerd.io", "authorizationpolicy", "", "open",
    )  # fmt: skip
    assert dict(one.labels)["kind"] == "authorizationpolicy"
    assert not found.server_ips


@pytest.mark.parametrize("speech", list(Speech))
def test_what_a_port_speaks(speech: Speech) -> None:
    kind = told(speech=speech).protocol.WhichOneof("kind")
    assert kind == speech.value


def test_networks_have_exceptions_and_both_families() -> None:
    first, second = told(authorizations=(OPEN,)).authorizations[0].networks
    assert (first.net.ip.ipv4, first.net.prefix_len) == (10 << 24, 8)
    (hole,) = getattr(first, "except")
    assert (hole.ip.ipv4, hole.prefix_len) == ((10 << 24) + (1 << 16), 16)
    assert (second.net.ip.ipv6.first, second.net.prefix_len) == (0xFD00 << 48, 8)


def test_host_bits_of_a_network_do_not_count() -> None:
    odd = Authorization(Default("x"), (Network("10.1.2.3/8"), Network("10.1.2.3")), Anybody())
    first, second = told(authorizations=(odd,)).authorizations[0].networks
    assert (first.net.ip.ipv4, first.net.prefix_len) == (10 << 24, 8)
    assert second.net.prefix_len == 32


def test_no_networks_are_not_told_as_a_rule_for_nobody() -> None:
    assert not told(authorizations=(Authorization(Default("x"), (), Anybody()),)).authorizations


def authn(proof: Anybody | TlsOnly | Peers, *, strict: bool = False) -> pb.Authn:
    one = Authorization(Default("x"), ANYWHERE, proof)
    return told(authorizations=(one,), strict=strict).authorizations[0].authentication


def test_what_is_to_be_proven() -> None:
    assert authn(Anybody()).WhichOneof("permit") == "unauthenticated"
    assert authn(TlsOnly()).meshTLS.WhichOneof("clients") == "unauthenticated"
    some = (Dns("a.b"), Spiffe("td", ("x",)), IdentitySuffix(("c", "d")), AnyIdentity())
    clients = authn(Peers(some)).meshTLS.identities
    assert [one.name for one in clients.identities] == ["a.b", "spiffe://td/x"]
    assert [list(one.parts) for one in clients.suffixes] == [["c", "d"], []]


def test_a_strict_workload_takes_nobody_without_tls_but_probes() -> None:
    assert authn(Anybody(), strict=True).meshTLS.WhichOneof("clients") == "unauthenticated"
    assert authn(Peers((Dns("a.b"),)), strict=True).meshTLS.HasField("identities")
    probe = InboundRoute(
        Default("probe"), authorizations=(Authorization(Default("probe"), ANYWHERE, Anybody()),)
    )
    (route,) = told(http_routes=(probe,), strict=True).protocol.detect.http_routes
    permit = route.authorizations[0].authentication.WhichOneof("permit")
    assert (route.metadata.default, permit) == ("probe", "unauthenticated")


# -------------------------------------------------------------------------------- routes

ROUTE = Origin(Ref(LOCAL, "policy.linkerd.io", "HTTPRoute", "shop", "juice"))


def test_http_routes() -> None:
    match = HttpMatch(
        PathMatch(Match.PREFIX, "/juice"),
        (ValueMatch("x-a", Match.EXACT, "1"),),
        (ValueMatch("q", Match.REGEX, "a|b"),),
        ("GET",),
    )
    odd = HttpMatch(headers=(ValueMatch("x-b", Match.ABSENT),))
    rules = (InboundRule((match, odd)), InboundRule((odd,)), InboundRule())
    hosts = (Exact("a.example"), Suffix(("b", "example")))
    found = told(http_routes=(InboundRoute(ROUTE, hosts, rules, (OPEN,)),))
    assert found.protocol.detect.timeout.seconds == 10
    (route,) = found.protocol.detect.http_routes
    assert (route.metadata.resource.kind, route.metadata.resource.name) == ("HTTPRoute", "juice")
    assert [one.exact or list(one.suffix.reverse_labels) for one in route.hosts] == [
        "a.example",
        ["example", "b"],
    ]
    assert len(route.authorizations) == 1
    first, last = route.rules
    (one,) = first.matches
    assert (one.path.prefix, one.method.registered) == ("/juice", 0)
    assert (one.headers[0].exact, one.query_params[0].regex) == (b"1", "a|b")
    assert not last.matches


def test_grpc_routes() -> None:
    rules = (
        InboundGrpcRule((GrpcMatch("pkg.Till", "Pay"),)),
        InboundGrpcRule((GrpcMatch("pkg.*", regex=True),)),
        InboundGrpcRule(),
    )
    found = told(speech=Speech.GRPC, grpc_routes=(InboundGrpcRoute(ROUTE, (), rules),))
    (route,) = found.protocol.grpc.routes
    first, every = route.rules
    assert (first.matches[0].rpc.service, first.matches[0].rpc.method) == ("pkg.Till", "Pay")
    assert not every.matches


MIRROR = Mirror(TargetId("c", "n", "s", 1))
FILTERS = (
    HeaderChange(set=(("x", "1"),), add=(("X", "2"), ("y", "3")), remove=("z",)),
    HeaderChange(on_response=True, set=(("x", "1"),)),
    Redirect(301, "https"),
    Fail(418, 2, "no", 1, 4),
    Forbid(),
    Rewrite("other"),
    MIRROR,
)


def test_filters_that_a_proxy_cannot_do_answer_for_themselves() -> None:
    found = list(http_filters(FILTERS))
    kinds = [one.WhichOneof("kind") for one in found]
    assert kinds == [
        "request_header_modifier", "request_header_modifier", "redirect",
        "failure_injector", "failure_injector", "failure_injector",
    ]  # fmt: skip
    first, second = (one.request_header_modifier for one in found[:2])
    assert [one.name for one in first.set.headers] == ["x"]
    assert [one.name for one in second.add.headers] == ["x", "y"]
    assert list(second.remove) == ["z"]
    failures = [one.failure_injector for one in found[3:]]
    assert [one.status for one in failures] == [418, 403, 500]
    assert (failures[0].ratio.numerator, failures[0].ratio.denominator) == (1, 4)


def test_filters_of_calls() -> None:
    found = list(grpc_filters(FILTERS))
    codes = [one.failure_injector.code for one in found if one.HasField("failure_injector")]
    assert codes == [13, 2, 7, 13]
    assert sum(one.HasField("request_header_modifier") for one in found) == 2


def test_rate_limits() -> None:
    source = Origin(Ref(LOCAL, "policy.linkerd.io", "HTTPLocalRateLimitPolicy", "shop", "lim"))
    limit = RateLimit(source, 100, None, (RateOverride((Dns("a.b"),), 5),))
    for speech in (Speech.DETECT, Speech.HTTP1, Speech.HTTP2):
        protocol = told(speech=speech, rate_limit=limit).protocol
        kind = getattr(protocol, speech.value)
        found = kind.http_local_rate_limit if speech is Speech.DETECT else kind.local_rate_limit
        assert found.metadata.resource.kind == "HTTPLocalRateLimitPolicy"
        assert found.total.requestsPerSecond == 100
        assert not found.HasField("identity")
        (one,) = found.overrides
        assert (one.limit.requestsPerSecond, one.clients.identities[0].name) == (5, "a.b")


# -------------------------------------------------------------------------------- faults


def faults(*objects: Compact) -> list[tuple[str, str]]:
    server = {"server": "shop/web", "pods": {"app": "me"}, "port": 8080}
    world = World(POD, server, *objects)
    found = world.db.read(inbound_faults, InboundName(ME, 8080))
    return [
        (one.feature, one.origin.ref.name)
        for one in found
        if isinstance(one.origin, Origin) and one.dialect == "linkerd"
    ]


def rule(path: str, *filters: dict[str, Any]) -> dict[str, Any]:
    match = {"path": {"type": "PathPrefix", "value": path}}
    return {"matches": [match], "filters": json.loads(json.dumps(filters))}


def test_policies_that_paths_decide_are_weak_where_paths_are_raw() -> None:
    assert faults({"hr": "shop/all", "for": "web", "rules": [rule("/")]}) == []
    some = {"hr": "shop/some", "for": "web", "rules": [rule("/a")]}
    by = {"az": "shop/by", "for": ["HTTPRoute.gateway.networking.k8s.io", "some"]}
    assert faults(some, by) == [("RawPathMatching", "some"), ("RawPathMatching", "by")]


def test_faults_of_a_server_are_those_of_linkerd2_proxies_behind_it() -> None:
    server = {"server": "shop/web", "pods": {"app": "me"}, "port": 8080}
    some = {"hr": "shop/some", "for": "web", "rules": [rule("/a")]}
    key = ObjectKey(LOCAL, "shop", "web")
    world = World(POD, server, some)
    assert [one.feature for one in world.db.read(server_faults, key)] == ["RawPathMatching"]
    world.apply({**POD, "proxy": "envoy"})
    assert world.db.read(server_faults, key) == ()


def test_filters_that_a_proxy_does_not_do_are_told() -> None:
    rewrite = {"type": "URLRewrite", "urlRewrite": {"hostname": "x.example"}}
    response = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["x"]}}
    route = {"hr": "shop/r", "for": "web", "rules": [rule("/", rewrite, response)]}
    assert faults(route) == [("URLRewrite", "r"), ("ResponseHeaderModifier", "r")]


def test_faults_of_calls() -> None:
    match = {"method": {"type": "RegularExpression", "service": "a.*"}}
    world = World(
        POD,
        {"server": "shop/web", "pods": {"app": "me"}, "port": 8080, "protocol": "gRPC"},
        {"gr": "shop/r", "for": "web", "rules": [{"matches": [match]}]},
    )
    (found,) = world.db.read(inbound_faults, InboundName(ME, 8080))
    assert found.feature == "Matches"


def test_faults_of_what_no_object_says_yet() -> None:
    turned = HttpMatch(headers=(ValueMatch("x", Match.EXACT, "1", invert=True),))
    http = InboundRoute(
        ROUTE, rules=(InboundRule((turned,), (MIRROR, Redirect(), Fail(1, 1, ""))),)
    )
    grpc = InboundGrpcRoute(ROUTE, rules=(InboundGrpcRule(filters=(Redirect(), Forbid())),))
    many = RateOverride((Dns("a.b"), IdentitySuffix(("c",))), 5)
    one = RateOverride((Dns("a.b"),), 5)
    limit = RateLimit(ROUTE, overrides=(one, many))
    found = Inbound(
        ME, 8080, Speech.DETECT, WEB,
        http_routes=(http,), grpc_routes=(grpc,), rate_limit=limit,
    )  # fmt: skip
    assert [each.feature for each in faults_of(found)] == [
        "RequestMirror", "Matches", "RequestRedirect", "RateOverrides",
    ]  # fmt: skip

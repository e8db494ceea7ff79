from __future__ import annotations

import pytest

from tests.unit.model.mesh import converted, of, paths, seen, told, unreadable, warned

POLICY = "policy.linkerd.io/v1alpha1"
LABELS = "{matchLabels: {app: press}}"


def server(spec: str, version: str = "v1beta3") -> dict[str, object]:
    return of(f"policy.linkerd.io/{version}", "Server", spec)


# ---------------------------------------------------------------------------------------- Server


def test_a_server_gets_its_defaults() -> None:
    found = seen(converted(server(f"{{podSelector: {LABELS}, port: http}}"), "v1beta3"))
    assert found.spec.port == "http"
    assert (found.spec.proxy_protocol, found.spec.access_policy) == ("unknown", "deny")
    assert found.spec.pod_selector.match_labels == {"app": "press"}


@pytest.mark.parametrize("word", ["unknown", "HTTP/1", "HTTP/2", "gRPC", "opaque", "TLS"])
def test_six_protocols(word: str) -> None:
    assert told(server(f"{{podSelector: {{}}, port: 80, proxyProtocol: {word}}}")) == []


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("{podSelector: {}, port: 80, proxyProtocol: http}", "spec.proxyProtocol"),
        ("{podSelector: {}, port: 80, proxyProtocol: HTTP/3}", "spec.proxyProtocol"),
        ("{podSelector: {}, port: 80, accessPolicy: allow}", "spec.accessPolicy"),
        ("{podSelector: {}, port: 80, accessPolicy: Deny}", "spec.accessPolicy"),
        ("{port: 80}", "spec"),
        ("{port: 80, podSelector: {}, externalWorkloadSelector: {}}", "spec"),
        ("{podSelector: {}, port: 0}", "spec.port"),
        ("{podSelector: {}, port: 65536}", "spec.port"),
        ("{podSelector: {}, port: ''}", "spec.port"),
        ("{podSelector: {}}", "spec.port"),
        (
            "{port: 80, podSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}",
            "spec.podSelector.matchExpressions[0].operator",
        ),
        (
            "{port: 80, podSelector: {matchExpressions: [{key: a, operator: In}]}}",
            "spec.podSelector.matchExpressions[0].values",
        ),
    ],
)
def test_bad_servers(spec: str, where: str) -> None:
    assert paths(server(spec)) == [where]


def test_all_faults_are_told_at_once() -> None:
    found = told(server("{port: 0, proxyProtocol: x, accessPolicy: y}"))
    assert len(found) == 4
    assert any("must validate one and only one schema (oneOf)" in each for each in found)
    assert any("supported values" in each and '"gRPC"' in each for each in found)


def test_a_port_name_that_nobody_can_have_is_a_warning() -> None:
    assert warned(server("{podSelector: {}, port: http}")) == ()
    assert len(warned(server("{podSelector: {}, port: Not_A_Port}"))) == 1


def test_servers_in_old_versions() -> None:
    old = server(f"{{podSelector: {LABELS}, port: 80}}", "v1beta1")
    assert told(old) == []
    new = converted(old, "v1beta3")
    assert new["spec"]["accessPolicy"] == "deny"
    back = converted(server("{podSelector: {}, port: 1, accessPolicy: audit}"), "v1beta2")
    assert back["apiVersion"] == "policy.linkerd.io/v1beta2"
    assert "accessPolicy" not in back["spec"]


def test_a_stored_server_with_an_unknown_operator_is_seen_and_one_with_wrong_types_is_not() -> None:
    spec = "{port: 80, podSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}"
    assert seen(server(spec)).spec.pod_selector.match_expressions[0].operator == "Sometimes"
    assert unreadable(server("{port: [80]}"))
    assert not unreadable(server("{}"))


# ------------------------------------------------------------------------- ServerAuthorization


def authorization(server_: str, client: str) -> dict[str, object]:
    spec = f"{{server: {server_}, client: {client}}}"
    return of("policy.linkerd.io/v1beta1", "ServerAuthorization", spec)


@pytest.mark.parametrize(
    "client",
    [
        "{unauthenticated: true}",
        "{meshTLS: {unauthenticatedTLS: true}}",
        "{meshTLS: {identities: ['*', '*.orchard.serviceaccount.identity.linkerd.cluster.local']}}",
        "{meshTLS: {serviceAccounts: [{name: picker}, {name: p, namespace: mill}]}}",
        "{unauthenticated: true, networks: [{cidr: 10.0.0.0/8, except: [10.1.0.0/16]}]}",
    ],
)
def test_good_server_authorizations(client: str) -> None:
    written = authorization("{name: press}", client)
    assert warned(written) == ()
    assert told({**written, "apiVersion": "policy.linkerd.io/v1alpha1"}) == []


@pytest.mark.parametrize(
    ("server_", "client", "where"),
    [
        ("{name: a}", "{unauthenticated: true, meshTLS: {identities: ['*']}}",
         ["spec.client.meshTLS"]),
        ("{name: a}", "{meshTLS: {unauthenticatedTLS: true, identities: ['*']}}",
         ["spec.client.meshTLS.identities"]),
        ("{name: a}", "{meshTLS: {unauthenticatedTLS: true, serviceAccounts: [{name: p}]}}",
         ["spec.client.meshTLS.serviceAccounts"]),
        ("{name: a, selector: {}}", "{unauthenticated: true}", ["spec.server"]),
        ("{}", "{unauthenticated: true}", ["spec.server"]),
        ("{name: A}", "{unauthenticated: true}", ["spec.server.name"]),
        ("{name: a}", "{meshTLS: {identities: [UPPER.example, a.*.b]}}",
         ["spec.client.meshTLS.identities[0]", "spec.client.meshTLS.identities[1]"]),
        ("{name: a}", "{unauthenticated: true, networks: [{cidr: 10.0.0.0/33}]}",
         ["spec.client.networks[0].cidr"]),
    ],
)  # fmt: skip
def test_bad_server_authorizations(server_: str, client: str, where: list[str]) -> None:
    assert paths(authorization(server_, client)) == where


def test_a_line_end_behind_a_name_is_no_part_of_it() -> None:
    spec = {"server": {"name": "a\n"}, "client": {"meshTLS": {"identities": ["a.b\n"]}}}
    assert paths(of("policy.linkerd.io/v1beta1", "ServerAuthorization", spec)) == [
        "spec.server.name",
        "spec.client.meshTLS.identities[0]",
    ]


def test_an_authorization_of_nobody_is_a_warning() -> None:
    for client in ("{}", "{meshTLS: {}}", "{networks: [{cidr: 10.0.0.0/8}]}"):
        assert "admits nobody" in warned(authorization("{name: press}", client))[0]


# ------------------------------------------------------------------------- AuthorizationPolicy


def policy(target: str, refs: str = "[]") -> dict[str, object]:
    spec = f"{{targetRef: {target}, requiredAuthenticationRefs: {refs}}}"
    return of(POLICY, "AuthorizationPolicy", spec)


SERVER = "{group: policy.linkerd.io, kind: Server, name: press}"
TLS = "{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: a}"
NETWORK = "{group: policy.linkerd.io, kind: networkauthentication, name: n}"
ACCOUNT = "{kind: ServiceAccount, name: picker, namespace: mill}"


@pytest.mark.parametrize(
    ("target", "refs"),
    [
        (SERVER, f"[{TLS}, {NETWORK}]"),
        (SERVER, f"[{ACCOUNT}]"),
        ("{kind: Namespace, name: orchard}", f"[{NETWORK}]"),
        ("{group: core, kind: namespace, name: orchard}", f"[{NETWORK}]"),
        ("{group: policy.linkerd.io, kind: HTTPRoute, name: r}", f"[{TLS}]"),
        ("{group: gateway.networking.k8s.io, kind: httproute, name: r}", f"[{TLS}]"),
        ("{group: gateway.networking.k8s.io, kind: GRPCRoute, name: r}", f"[{TLS}]"),
    ],
)
def test_good_authorization_policies(target: str, refs: str) -> None:
    assert warned(policy(target, refs)) == ()


@pytest.mark.parametrize(
    ("target", "refs", "where"),
    [
        ("{kind: Namespace, name: mill}", "[]", "spec.targetRef.name"),
        ("{group: apps, kind: Deployment, name: press}", "[]", "spec.targetRef.kind"),
        ("{group: policy.linkerd.io, kind: GRPCRoute, name: r}", "[]", "spec.targetRef.kind"),
        (SERVER, f"[{TLS}, {TLS}]", "spec.requiredAuthenticationRefs[1]"),
        (SERVER, f"[{TLS}, {ACCOUNT}]", "spec.requiredAuthenticationRefs[1]"),
        (SERVER, f"[{ACCOUNT}, {NETWORK}, {ACCOUNT}]", "spec.requiredAuthenticationRefs[2]"),
        (SERVER, f"[{NETWORK}, {NETWORK}]", "spec.requiredAuthenticationRefs[1]"),
        (SERVER, "[{kind: Pod, name: p}]", "spec.requiredAuthenticationRefs[0].kind"),
        (SERVER, "null", "spec.requiredAuthenticationRefs"),
    ],
)
def test_bad_authorization_policies(target: str, refs: str, where: str) -> None:
    assert paths(policy(target, refs)) == [where]


def test_requiring_nothing_is_allowed_and_warned_of() -> None:
    assert "everybody" in warned(policy(SERVER))[0]


# ------------------------------------------------------------------------------ authentications


@pytest.mark.parametrize(
    "identity",
    [
        "picker.orchard.serviceaccount.identity.linkerd.cluster.local",
        "*",
        "*.orchard.serviceaccount.identity.linkerd.cluster.local",
        "spiffe://apple.example",
        "spiffe://apple.example/ns/orchard/sa/Picker_1",
    ],
)
def test_good_identities(identity: str) -> None:
    assert told(of(POLICY, "MeshTLSAuthentication", {"identities": [identity]})) == []


@pytest.mark.parametrize(
    "identity",
    [
        "", "spiffe://", "spiffe://apple.example/", "spiffe://apple.example/a//b",
        "spiffe://apple.example/a/../b", "spiffe://Apple.example/a", "spiffe://a b/c",
        "UPPER.example", "a.*.example", "*.", "a.", "a..b", "*a", "a\n", "a_b", "-a", "*.a.b\n",
        "spiffe://apple.example/a%2fb", f"{'a.' * 130}a",
    ],
)  # fmt: skip
def test_bad_identities(identity: str) -> None:
    written = of(POLICY, "MeshTLSAuthentication", {"identities": [identity]})
    assert paths(written) == ["spec.identities[0]"]


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("{}", "spec"),
        ("{identities: []}", "spec.identities"),
        ("{identityRefs: []}", "spec.identityRefs"),
        ("{identities: ['*'], identityRefs: [{kind: ServiceAccount, name: p}]}", "spec"),
        ("{identityRefs: [{kind: Pod, name: p}]}", "spec.identityRefs[0].kind"),
        ("{identityRefs: [{kind: ServiceAccount}]}", "spec.identityRefs[0].name"),
        ("{identityRefs: [{kind: Namespace, name: a, namespace: b}]}",
         "spec.identityRefs[0].namespace"),
    ],
)  # fmt: skip
def test_bad_mesh_tls_authentications(spec: str, where: str) -> None:
    assert paths(of(POLICY, "MeshTLSAuthentication", spec)) == [where]


def test_accounts_and_namespaces_may_be_referred_to() -> None:
    refs = "[{kind: ServiceAccount, name: p, namespace: mill}, {kind: Namespace, name: mill}]"
    assert told(of(POLICY, "MeshTLSAuthentication", f"{{identityRefs: {refs}}}")) == []


@pytest.mark.parametrize(
    "networks",
    [
        "[{cidr: 10.20.0.0/16, except: [10.20.4.0/24]}]",
        "[{cidr: 10.20.0.0/16, except: [10.20.4.9]}]",
        "[{cidr: 10.20.4.9}]",
        "[{cidr: '2001:db8::/32', except: ['2001:db8::1']}]",
        "[{cidr: 192.168.0.1/16}]",
    ],
)
def test_good_networks(networks: str) -> None:
    assert told(of(POLICY, "NetworkAuthentication", f"{{networks: {networks}}}")) == []


@pytest.mark.parametrize(
    ("networks", "where"),
    [
        ("[{cidr: 10.20.0.0/16, except: [10.0.0.0/8]}]", "spec.networks[0].except[0]"),
        ("[{cidr: 10.20.0.0/16, except: [10.20.0.0/16]}]", "spec.networks[0].except[0]"),
        ("[{cidr: 10.20.0.0/16, except: [10.21.0.0/24]}]", "spec.networks[0].except[0]"),
        ("[{cidr: 10.20.0.0/16, except: ['::1']}]", "spec.networks[0].except[0]"),
        ("[{cidr: 10.20.0.0/16, except: [x]}]", "spec.networks[0].except[0]"),
        ("[{cidr: 10.20.0.0/33}]", "spec.networks[0].cidr"),
        ("[{cidr: 010.0.0.0/8}]", "spec.networks[0].cidr"),
        ("[]", "spec.networks"),
        ("null", "spec.networks"),
    ],
)
def test_bad_networks(networks: str, where: str) -> None:
    assert paths(of(POLICY, "NetworkAuthentication", f"{{networks: {networks}}}")) == [where]


# -------------------------------------------------------------------- rate limits, egress


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("total: {requestsPerSecond: 100}, identity: {requestsPerSecond: 10}", []),
        ("identity: {requestsPerSecond: 20}", []),
        ("total: {requestsPerSecond: 0}", ["spec.total.requestsPerSecond"]),
        ("total: {requestsPerSecond: -1}", ["spec.total.requestsPerSecond"]),
        ("total: {requestsPerSecond: 4294967296}", ["spec.total.requestsPerSecond"]),
        ("total: {requestsPerSecond: 10}, identity: {requestsPerSecond: 20}",
         ["spec.identity.requestsPerSecond"]),
        ("total: {requestsPerSecond: 10}, overrides: [{requestsPerSecond: 20, clientRefs: []}]",
         ["spec.overrides[0].requestsPerSecond"]),
        ("overrides: [{requestsPerSecond: 2, clientRefs: [{kind: Pod, name: p}]}]",
         ["spec.overrides[0].clientRefs[0].kind"]),
    ],
)  # fmt: skip
def test_rate_limits(more: str, where: list[str]) -> None:
    spec = f"{{targetRef: {SERVER}, {more}}}"
    assert paths(of(POLICY, "HTTPLocalRateLimitPolicy", spec)) == where


def test_rate_limits_are_for_servers_and_should_say_a_rate() -> None:
    other = "{targetRef: {group: apps, kind: Deployment, name: a}, total: {requestsPerSecond: 1}}"
    assert paths(of(POLICY, "HTTPLocalRateLimitPolicy", other)) == ["spec.targetRef.kind"]
    empty = of(POLICY, "HTTPLocalRateLimitPolicy", f"{{targetRef: {SERVER}}}")
    assert "nothing is limited" in warned(empty)[0]


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("{trafficPolicy: Allow}", []),
        ("{trafficPolicy: Deny, networks: [{cidr: 203.0.113.0/24, except: [203.0.113.7]}]}", []),
        ("{trafficPolicy: Deny, networks: []}", ["spec.networks"]),
        ("{trafficPolicy: Deny, networks: [{cidr: 203.0.113.0/24, except: [203.0.112.0/20]}]}",
         ["spec.networks[0].except[0]"]),
        ("{trafficPolicy: Reject}", ["spec.trafficPolicy"]),
        ("{}", ["spec.trafficPolicy"]),
    ],
)  # fmt: skip
def test_egress_networks(spec: str, where: list[str]) -> None:
    assert paths(of(POLICY, "EgressNetwork", spec)) == where


def test_bad_annotations_of_an_egress_network_are_warnings() -> None:
    annotations = {"timeout.linkerd.io/idle": "soon"}
    written = of(POLICY, "EgressNetwork", "{trafficPolicy: Allow}", annotations=annotations)
    assert "timeout.linkerd.io/idle" in warned(written)[0]


def test_absent_networks_are_not_no_networks() -> None:
    assert seen(of(POLICY, "EgressNetwork", "{trafficPolicy: Allow}")).spec.networks is None
    assert seen(of(POLICY, "EgressNetwork", "{networks: []}")).spec.networks == ()

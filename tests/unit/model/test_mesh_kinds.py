from __future__ import annotations

import pytest

from isthmus.model.multicluster import COLUMNS, seconds
from tests.unit.model.mesh import converted, of, paths, seen, stored, told, unreadable, warned

WORKLOAD = "workload.linkerd.io/v1beta1"
LINK = "multicluster.linkerd.io/v1alpha3"
PROFILE = "linkerd.io/v1alpha2"
NAME = "press.orchard.svc.cluster.local"

# ----------------------------------------------------------------------------- ExternalWorkload

TLS = "{identity: vm.orchard.example, serverName: vm.orchard.example}"


def workload(more: str, **metadata: object) -> dict[str, object]:
    meta = {"labels": {"app": "vm"}, **metadata}
    return of(WORKLOAD, "ExternalWorkload", f"{{meshTLS: {TLS}, {more}}}", **meta)


def test_a_workload_gets_its_defaults_and_is_seen() -> None:
    made = stored(workload("ports: [{port: 80, name: http}], workloadIPs: [{ip: 192.0.2.1}]"))
    assert made["spec"]["ports"][0]["protocol"] == "TCP"
    made["status"] = {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": "x"}]}
    view = seen(made)
    assert view.spec.mesh_tls.server_name == "vm.orchard.example"
    assert view.spec.workload_ips[0].ip == "192.0.2.1"
    assert view.status.conditions[0].type == "Ready"


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("ports: [{port: 80, name: http}, {port: 81, name: http}]", ["spec.ports[1].name"]),
        ("ports: [{port: 80}, {port: 80}]", ["spec.ports[1]"]),
        ("ports: [{port: 80}, {port: 80, protocol: UDP}]", []),
        ("ports: [{port: 80, protocol: SCTP}]", ["spec.ports[0].protocol"]),
        ("ports: [{port: 80, name: A_B}]", ["spec.ports[0].name"]),
        ("ports: [{port: 0}]", ["spec.ports[0].port"]),
        ("workloadIPs: [{ip: 192.0.2.1}, {ip: '2001:db8::1'}]", []),
        ("workloadIPs: [{ip: 192.0.2.1}, {ip: 192.0.2.2}]", ["spec.workloadIPs[1].ip"]),
        ("workloadIPs: [{ip: host}]", ["spec.workloadIPs[0].ip"]),
        ("workloadIPs: [{ip: 192.0.2.1}, {ip: '::1'}, {ip: '::2'}]",
         ["spec.workloadIPs", "spec.workloadIPs[2].ip"]),
    ],
)  # fmt: skip
def test_workloads(more: str, where: list[str]) -> None:
    assert sorted(set(paths(workload(more)))) == where


def test_the_first_version_spells_mesh_tls_otherwise() -> None:
    old = of("workload.linkerd.io/v1alpha1", "ExternalWorkload", f"{{meshTls: {TLS}}}")
    assert told(old) == []
    assert stored(old)["spec"]["meshTLS"]["identity"] == "vm.orchard.example"
    assert "meshTls" not in stored(old)["spec"]
    assert converted(workload("ports: []"), "v1alpha1")["spec"]["meshTls"]["serverName"]
    assert paths(of(WORKLOAD, "ExternalWorkload", "{ports: []}")) == ["spec.meshTLS"]


def test_a_workload_that_nobody_can_reach_is_warned_of() -> None:
    assert len(warned(workload("ports: []", labels={}))) == 2
    odd = of(WORKLOAD, "ExternalWorkload", "{meshTLS: {identity: '*', serverName: a}}")
    assert any("no certificate" in each for each in warned(odd))


# ----------------------------------------------------------------------------------------- Link

FULL = """
targetClusterName: press
clusterCredentialsSecret: cluster-credentials-press
gatewayAddress: 192.0.2.1,gw.example.org
gatewayPort: "4143"
probeSpec: {path: /ready, port: "4191", period: 3s}
selector: {matchLabels: {mirror.linkerd.io/exported: "true"}}
"""


def test_a_link_is_seen() -> None:
    view = seen(stored(of(LINK, "Link", FULL)))
    assert view.spec.gateway_port == "4143"
    assert view.spec.probe_spec.timeout == "30s"
    assert view.spec.selector.match_labels
    assert view.spec.remote_discovery_selector is None
    assert warned(of(LINK, "Link", FULL)) == ()


def test_old_links_are_taken_and_old_readers_served() -> None:
    bare = FULL.replace("3s", '"3"')
    old = of("multicluster.linkerd.io/v1alpha1", "Link", bare)
    assert told(old) == []
    assert any("seconds are meant" in each for each in warned(of(LINK, "Link", bare)))
    new = of(
        LINK,
        "Link",
        FULL + "excludedLabels: [a/*]\nfederatedServiceSelector: {matchLabels: {a: b}}",
    )
    assert "excludedLabels" not in converted(new, "v1alpha2")["spec"]
    assert "federatedServiceSelector" in converted(new, "v1alpha2")["spec"]
    assert "federatedServiceSelector" not in converted(new, "v1alpha1")["spec"]


def test_bad_links() -> None:
    spec = "{selector: {matchExpressions: [{key: a, operator: Sometimes}]}}"
    assert paths(of(LINK, "Link", spec)) == ["spec.selector.matchExpressions[0].operator"]
    assert seen(of(LINK, "Link", spec)).spec.selector.match_expressions[0].operator == "Sometimes"
    assert len(warned(of(LINK, "Link", "{}"))) == 3
    odd = FULL.replace("4143", "http").replace("3s", "soon")
    assert len(warned(of(LINK, "Link", odd, name="other"))) == 3


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3.0), ("3s", 3.0), ("500ms", 0.5), ("soon", None), ("-1s", None)]
)
def test_periods(text: str, value: float | None) -> None:
    assert seconds(text) == value


# ------------------------------------------------------------------------------- ServiceProfile


def profile(spec: str, **metadata: object) -> dict[str, object]:
    return of(PROFILE, "ServiceProfile", spec, **{"name": NAME, **metadata})


GOOD = """
routes:
- name: GET /books/{id}
  condition: {method: GET, pathRegex: '/books/[^/]*'}
  timeout: 300ms
  isRetryable: true
  responseClasses:
  - {condition: {status: {min: 500, max: 599}}, isFailure: true}
  - {condition: {all: [{status: {min: 400}}, {not: {status: {max: 403}}}]}}
- name: all of it
  condition: {any: [{all: [{method: HEAD}, {not: {pathRegex: /x}}]}, {method: POST}]}
retryBudget: {retryRatio: 0.2, minRetriesPerSecond: 10, ttl: 10s}
dstOverrides: [{authority: "a.b.svc.cluster.local:80", weight: 500m}, {authority: c, weight: 1}]
opaquePorts: ["25", 4000-4001]
"""


def test_a_profile_is_seen() -> None:
    written = profile(GOOD)
    assert warned(written) == ()
    view = seen(stored(written))
    first, second = view.spec.routes
    assert first.condition.path_regex == "/books/[^/]*"
    assert first.response_classes[1].condition.all[1].negated.status.max == 403
    assert second.condition.any[0].all[1].negated.path_regex == "/x"
    assert second.condition.all is None
    assert [each.weight for each in view.spec.dst_overrides] == ["500m", "1"]
    assert told({**written, "apiVersion": "linkerd.io/v1alpha1"}) == []


@pytest.mark.parametrize(
    ("route", "where"),
    [
        ("{name: a, condition: {}}", "condition"),
        ("{name: a, condition: {all: [{method: GET}, {}]}}", "condition.all[1]"),
        ("{name: a, condition: {any: [{not: {}}]}}", "condition.any[0].not"),
        ("{name: a, condition: {pathRegex: '('}}", "condition.pathRegex"),
        ("{name: a, condition: {not: {pathRegex: '('}}}", "condition.not.pathRegex"),
        ("{name: a, condition: {method: GET}, responseClasses: [{condition: {}}]}",
         "responseClasses[0].condition"),
        (("{name: a, condition: {method: GET}, responseClasses: [{condition: "
         "{status: {min: 99}}}]}"), "responseClasses[0].condition.status.min"),
        (("{name: a, condition: {method: GET}, responseClasses: [{condition: "
         "{status: {min: 500, max: 400}}}]}"), "responseClasses[0].condition.status"),
    ],
)  # fmt: skip
def test_routes_that_mean_nothing_are_warned_of(route: str, where: str) -> None:
    written = profile(f"{{routes: [{route}, {{name: b, condition: {{method: GET}}}}]}}")
    assert told(written) == []
    (warning,) = warned(written)
    assert warning.startswith(f"spec.routes[0].{where}: ")
    assert warning.endswith("; the route is left out")


@pytest.mark.parametrize(
    ("route", "where"),
    [("{name: a}", "condition"), ("{name: '', condition: {method: GET}}", "name")],
)
def test_routes_that_cannot_be_are_refused(route: str, where: str) -> None:
    assert set(paths(profile(f"{{routes: [{route}]}}"))) == {f"spec.routes[0].{where}"}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("{retryBudget: {retryRatio: 0.2, minRetriesPerSecond: 10, ttl: soon}}",
         "spec.retryBudget.ttl"),
        ("{retryBudget: {retryRatio: -1, minRetriesPerSecond: 10, ttl: 1s}}",
         "spec.retryBudget.retryRatio"),
        ("{retryBudget: {retryRatio: 1, ttl: 1s, minRetriesPerSecond: -1}}",
         "spec.retryBudget.minRetriesPerSecond"),
        ("{dstOverrides: [{authority: a}]}", "spec.dstOverrides[0].weight"),
        ("{dstOverrides: [{weight: 1}]}", "spec.dstOverrides[0].authority"),
        ("{dstOverrides: [{authority: a, weight: '-1'}]}", "spec.dstOverrides[0].weight"),
        ("{opaquePorts: [x]}", "spec.opaquePorts[0]"),
    ],
)  # fmt: skip
def test_other_parts_that_mean_nothing_are_warned_of(spec: str, where: str) -> None:
    written = profile(spec)
    assert told(written) == []
    (warning,) = warned(written)
    assert warning.startswith(f"{where}: ")
    assert "left out" not in warning


def test_what_has_no_place_is_warned_of_and_what_is_missing_refused() -> None:
    routes = "[{name: a, condition: {method: GET, pathRegexp: /}}, {name: b, condition: {any: []}}]"
    written = profile(f"{{routes: {routes}, budget: 1}}")
    assert told(written) == []
    assert warned(written) == (
        "spec.budget: unknown field",
        "spec.routes[0].condition.pathRegexp: unknown field; the route is left out",
    )
    budget = "{retryBudget: {retryRatio: 1, ttl: 1s}}"
    assert paths(profile(budget)) == ["spec.retryBudget.minRetriesPerSecond"]


def test_a_timeout_that_is_none_and_a_name_that_nobody_reads_are_warned_of() -> None:
    spec = "{routes: [{name: a, condition: {method: GET}, timeout: soon}]}"
    assert "there is no limit" in warned(profile(spec))[0]
    assert "SERVICE.NAMESPACE" in warned(profile("{}", name="press"))[0]


def test_stored_profiles_without_conditions_are_seen() -> None:
    assert seen(profile("{routes: [{name: a}]}")).spec.routes[0].condition.method == ""
    assert unreadable(profile("{routes: [{condition: {all: {}}}]}"))


# --------------------------------------------------------------------------------- TrafficSplit


def split(version: str, backends: str, more: str = "") -> dict[str, object]:
    spec = f"{{service: press, backends: {backends}{more}}}"
    return of(f"split.smi-spec.io/{version}", "TrafficSplit", spec)


def test_quantities_become_whole_numbers_together() -> None:
    old = split("v1alpha1", "[{service: a, weight: 500m}, {service: b, weight: 1}]")
    assert told(old) == []
    assert [each["weight"] for each in stored(old)["spec"]["backends"]] == [500, 1000]
    exact = split("v1alpha1", "[{service: a, weight: '3'}, {service: b, weight: 1k}]")
    assert [each["weight"] for each in stored(exact)["spec"]["backends"]] == [3, 1000]
    assert [e.weight for e in seen(stored(exact)).spec.backends] == [3, 1000]
    back = converted(split("v1alpha2", "[{service: a, weight: 3}]"), "v1alpha1")
    assert back["spec"]["backends"][0]["weight"] == "3"


@pytest.mark.parametrize(
    ("backends", "where"),
    [
        ("[{service: a, weight: -1}]", "spec.backends[0].weight"),
        ("[{service: a, weight: 1}, {service: a, weight: 1}]", "spec.backends[1].service"),
        ("[{service: A, weight: 1}]", "spec.backends[0].service"),
        ("[{weight: 1}]", "spec.backends[0].service"),
        ("null", "spec.backends"),
    ],
)
def test_bad_splits(backends: str, where: str) -> None:
    assert set(paths(split("v1alpha2", backends))) == {where}


def test_what_a_split_says_to_no_effect() -> None:
    matches = ", matches: [{kind: HTTPRouteGroup, name: g}]"
    assert len(warned(split("v1alpha4", "[{service: a.b, weight: 0}]", matches))) == 3
    assert warned(split("v1alpha4", "[{service: a, weight: 1}]")) == ()


def test_switches_of_a_link_are_true_or_false() -> None:
    notes = "multicluster.isthmus.dev/create-namespaces"
    link = of(LINK, "Link", FULL)
    link["metadata"]["annotations"] = {notes: "yes"}
    assert warned(link) == (
        f"metadata.annotations[{notes}]: must be true or false; it means false",
    )
    link["metadata"]["annotations"] = {notes: "true"}
    assert warned(link) == ()
    link["spec"]["targetClusterName"] = link["metadata"]["name"] = "federated"
    assert "nothing will be mirrored" in warned(link)[0]


def test_what_kubectl_shows_of_a_link() -> None:
    link = of(LINK, "Link", "{targetClusterName: east, clusterCredentialsSecret: s}", name="east")

    def cells() -> dict[str, object]:
        return {each.name: each.cell(link, 0.0) for each in COLUMNS if each.name != "Age"}

    bare = {"Gateway": "<none>", "Credentials": "s"}
    assert {name: cell for name, cell in cells().items() if cell is not None} == bare
    mirrored = [
        {"conditions": [{"type": "Mirrored", "status": each}]} for each in ("True", "False")
    ]
    link["status"] = {
        "conditions": [{"type": "Reachable", "status": "True"}],
        "mirrorServices": mirrored,
        "federatedServices": mirrored[:1],
    }
    assert (cells()["Reachable"], cells()["Services"]) == ("True", "2/3")

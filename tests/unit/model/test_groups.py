"""EndpointSlice, Job, Lease, RBAC, reviews, Scale, CustomResourceDefinition."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from isthmus.model import rbac, reviews
from isthmus.model.apiextensions import CUSTOM_RESOURCE_DEFINITION as CRD
from isthmus.model.apps import DEPLOYMENT
from isthmus.model.autoscaling import SCALE, scale_name, scale_of, scaled
from isthmus.model.batch import JOB
from isthmus.model.coordination import LEASE, Lease
from isthmus.model.discovery import ENDPOINT_SLICE, MAX_ENDPOINTS, MAX_PORTS, EndpointSlice
from isthmus.model.intake import view
from isthmus.model.kind import Kind
from isthmus.model.kind import Scale as Paths
from tests.unit.model.objects import made, paths, row, told, written

# -------------------------------------------------------------------------------- EndpointSlice


def piece(*addresses: str, kind: str = "IPv4", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a slice
    endpoints = [{"addresses": [each]} for each in addresses]
    return made(ENDPOINT_SLICE, addressType=kind, endpoints=endpoints, **fields)


def test_a_slice() -> None:
    document = piece("10.0.0.1", "127.0.0.1", ports=[{"port": 80}, {"name": "all"}, {"name": "b"}])
    got = written(ENDPOINT_SLICE, document)
    assert got["ports"][0] == {"port": 80, "name": "", "protocol": "TCP"}
    assert told(ENDPOINT_SLICE, document) == []
    assert row(ENDPOINT_SLICE, got) == {
        "AddressType": "IPv4",
        "Ports": "80,all,b",
        "Endpoints": "10.0.0.1,127.0.0.1",
        "Age": "5m",
    }
    bare = row(ENDPOINT_SLICE, piece(ports=[{}]))
    assert (bare["Ports"], bare["Endpoints"]) == ("*", "<unset>")


def test_the_view_of_a_slice_keeps_what_was_not_said() -> None:
    document = piece("10.0.0.1")
    document["endpoints"][0] |= {"hints": {"forZones": [{"name": "z"}]}, "zone": "z"}
    seen = view(ENDPOINT_SLICE, msgspec.json.encode(document))
    assert isinstance(seen, EndpointSlice)
    assert seen.endpoints[0].conditions.ready is None
    assert seen.endpoints[0].hints is not None
    assert seen.endpoints[0].hints.for_zones[0].name == "z"


@pytest.mark.parametrize(
    ("kind", "address", "fine"),
    [
        ("IPv4", "10.0.0.1", True), ("IPv4", "fd00::1", False), ("IPv4", "x", False),
        ("IPv4", "0.0.0.0", False), ("IPv4", "169.254.169.254", False),
        ("IPv4", "224.0.0.1", False),
        ("IPv6", "fd00::1", True), ("IPv6", "10.0.0.1", False), ("IPv6", "::", False),
        ("FQDN", "a.example.org", True), ("FQDN", "a_b", False),
    ],
)  # fmt: skip
def test_addresses_are_of_the_type_of_their_slice(kind: str, address: str, fine: bool) -> None:
    expected = [] if fine else ["endpoints[0].addresses[0]"]
    assert paths(ENDPOINT_SLICE, piece(address, kind=kind)) == expected


def test_faults_of_slices() -> None:
    document = piece(kind="")
    document["endpoints"] = [
        {"addresses": []},
        {"addresses": ["10.0.0.1", "10.0.0.1"], "hostname": "A", "nodeName": "B", "zone": "-"},
        {"addresses": ["10.0.0.1"] * 101},
        {"addresses": ["10.0.0.2"], "hints": {"forZones": [{"name": "z"}] * 9}},
    ]
    document["ports"] = [
        {"name": "A", "protocol": "x", "port": 0, "appProtocol": "a b"},
        {"name": "c"},
        {"name": "c"},
    ]
    assert paths(ENDPOINT_SLICE, document) == [
        "addressType",
        "endpoints[0].addresses",
        "endpoints[1].addresses[1]",
        "endpoints[1].hostname",
        "endpoints[1].nodeName",
        "endpoints[1].zone",
        "endpoints[2].addresses",
        "endpoints[3].hints.forZones",
        "ports[0].name",
        "ports[0].protocol",
        "ports[0].port",
        "ports[0].appProtocol",
        "ports[2].name",
    ]


def test_slices_are_bounded_and_keep_their_type() -> None:
    assert paths(ENDPOINT_SLICE, piece(*["10.0.0.1"] * (MAX_ENDPOINTS + 1))) == ["endpoints"]
    ports = [{"name": f"p{i}"} for i in range(MAX_PORTS + 1)]
    assert paths(ENDPOINT_SLICE, piece(ports=ports)) == ["ports"]
    assert paths(ENDPOINT_SLICE, piece(kind="IPv6"), piece()) == ["addressType"]
    assert paths(ENDPOINT_SLICE, piece(kind="IPv5")) == ["addressType"]


# ------------------------------------------------------------------------------------ Job, Lease


def job(**spec: object) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    return made(JOB, spec={"template": template, **spec})


def test_a_job_finds_its_pods_by_its_uid() -> None:
    document = job()
    document["metadata"]["uid"] = "u1"
    got = written(JOB, document)
    labels = got["spec"]["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == "u1"
    assert labels["job-name"] == "a"
    assert got["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": "u1"}
    assert (got["spec"]["completions"], got["spec"]["parallelism"]) == (1, 1)
    assert written(JOB, job(parallelism=3))["spec"].get("completions") is None
    assert told(JOB, job()) == []


def test_faults_of_jobs() -> None:
    document = job(completionMode="x", backoffLimit=-1)
    document["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    assert paths(JOB, document) == [
        "spec.backoffLimit",
        "spec.completionMode",
        "spec.template.spec.restartPolicy",
    ]
    old = written(JOB, job())
    new = deepcopy(old)
    new["spec"]["completions"] = 7
    assert paths(JOB, new, old) == ["spec.completions"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({}, "Running"),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, "Suspended"),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "Failed"),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, "Running"),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, "Complete"),
    ],
)
def test_words_of_jobs(status: dict[str, Any], word: str) -> None:
    assert row(JOB, job() | {"status": status})["Status"] == word


def test_columns_of_jobs() -> None:
    document = job(completions=3)
    document["status"] = {"succeeded": 2, "startTime": "2026-01-02T03:04:05Z"}
    assert (row(JOB, document)["Completions"], row(JOB, document)["Duration"]) == ("2/3", "5m")
    document["status"]["completionTime"] = "2026-01-02T03:05:05Z"
    assert row(JOB, document)["Duration"] == "60s"
    assert row(JOB, job(parallelism=4))["Completions"] == "0/1 of 4"
    assert row(JOB, job())["Completions"] == "0/1"
    assert row(JOB, job())["Duration"] == ""
    document["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:05Z"
    assert row(JOB, document)["Status"] == "Terminating"


def test_a_lease() -> None:
    document = made(LEASE, spec={"holderIdentity": "me", "leaseDurationSeconds": 15})
    assert told(LEASE, document) == []
    assert row(LEASE, document) == {"Holder": "me", "Age": "5m"}
    seen = view(LEASE, msgspec.json.encode(document))
    assert isinstance(seen, Lease)
    assert seen.spec.lease_duration_seconds == 15
    bad = made(LEASE, spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})
    assert paths(LEASE, bad) == ["spec.leaseDurationSeconds", "spec.leaseTransitions"]


# ------------------------------------------------------------------------------------------ RBAC

GROUP = "rbac.authorization.k8s.io"


def test_roles() -> None:
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    document = made(rbac.ROLE, name="system:reader", rules=rules)
    assert told(rbac.ROLE, document) == []
    assert row(rbac.ROLE, document) == {"Created At": "2026-01-02T03:04:05Z"}
    urls = made(rbac.CLUSTER_ROLE, rules=[{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}])
    assert told(rbac.CLUSTER_ROLE, urls) == []
    seen = view(rbac.CLUSTER_ROLE, msgspec.json.encode(urls))
    assert isinstance(seen, rbac.ClusterRole)
    assert seen.rules[0].non_resource_urls == ("/metrics",)


def test_faults_of_roles() -> None:
    bad = [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]
    assert paths(rbac.ROLE, made(rbac.ROLE, rules=bad)) == [
        "rules[0].verbs",
        "rules[0].apiGroups",
        "rules[0].resources",
        "rules[1].nonResourceURLs",
        "rules[1].nonResourceURLs",
    ]
    selectors = [{"matchLabels": {"a b": ""}}]
    aggregated = made(
        rbac.CLUSTER_ROLE,
        aggregationRule={"clusterRoleSelectors": selectors},
        rules=[{"verbs": ["*"]}],
    )
    assert paths(rbac.CLUSTER_ROLE, aggregated) == [
        "rules[0].apiGroups",
        "rules[0].resources",
        "aggregationRule.clusterRoleSelectors[0].matchLabels",
    ]
    empty = made(rbac.CLUSTER_ROLE, aggregationRule={})
    assert paths(rbac.CLUSTER_ROLE, empty) == ["aggregationRule.clusterRoleSelectors"]


def binding(bound: Kind = rbac.ROLE_BINDING, **role: str) -> dict[str, Any]:
    subjects = [
        {"kind": "User", "name": "jane"},
        {"kind": "Group", "name": "devs"},
        {"kind": "ServiceAccount", "name": "face", "namespace": "faces"},
    ]
    return made(bound, roleRef={"kind": "ClusterRole", "name": "view", **role}, subjects=subjects)


def test_bindings() -> None:
    got = written(rbac.ROLE_BINDING, binding())
    assert got["roleRef"]["apiGroup"] == GROUP
    assert [each.get("apiGroup") for each in got["subjects"]] == [GROUP, GROUP, None]
    assert told(rbac.ROLE_BINDING, binding()) == []
    assert row(rbac.ROLE_BINDING, got, wide=True) == {
        "Role": "ClusterRole/view",
        "Age": "5m",
        "Users": "jane",
        "Groups": "devs",
        "ServiceAccounts": "faces/face",
    }


def test_faults_of_bindings() -> None:
    document = binding(kind="Elephant", apiGroup="x", name="a/b")
    document["subjects"] = [
        {"kind": "ServiceAccount", "apiGroup": "x", "name": "A"},
        {"kind": "User", "apiGroup": "x"},
        {"kind": "Robot", "name": "r"},
    ]
    assert paths(rbac.ROLE_BINDING, document) == [
        "roleRef.apiGroup",
        "roleRef.kind",
        "roleRef.name",
        "subjects[0].name",
        "subjects[0].apiGroup",
        "subjects[0].namespace",
        "subjects[1].name",
        "subjects[1].apiGroup",
        "subjects[2].kind",
    ]
    assert paths(rbac.ROLE_BINDING, binding(name="")) == ["roleRef.name"]
    cluster = binding(rbac.CLUSTER_ROLE_BINDING, kind="Role")
    assert paths(rbac.CLUSTER_ROLE_BINDING, cluster) == ["roleRef.kind"]


def test_a_binding_stays_with_its_role() -> None:
    old = written(rbac.ROLE_BINDING, binding())
    (cause,) = told(rbac.ROLE_BINDING, binding(name="edit"), old)
    assert (cause.path, cause.message.rpartition(": ")[2]) == ("roleRef", "cannot change roleRef")


# --------------------------------------------------------------------------------------- reviews


@pytest.mark.parametrize(
    ("kind", "spec", "found"),
    [
        (reviews.TOKEN_REVIEW, {"token": "t"}, []),
        (reviews.TOKEN_REVIEW, {}, ["spec.token"]),
        (reviews.TOKEN_REQUEST, {}, []),
        (reviews.TOKEN_REQUEST, {"expirationSeconds": 599}, ["spec.expirationSeconds"]),
        (reviews.TOKEN_REQUEST, {"expirationSeconds": 2**33}, ["spec.expirationSeconds"]),
        (reviews.SELF_SUBJECT_ACCESS_REVIEW, {"resourceAttributes": {"verb": "get"}}, []),
        (reviews.SELF_SUBJECT_ACCESS_REVIEW, {}, ["spec.resourceAttributes"]),
        (
            reviews.SELF_SUBJECT_ACCESS_REVIEW,
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            ["spec.nonResourceAttributes"],
        ),
        (reviews.SUBJECT_ACCESS_REVIEW, {"resourceAttributes": {}}, ["spec.user"]),
        (reviews.SUBJECT_ACCESS_REVIEW, {"resourceAttributes": {}, "groups": ["g"]}, []),
    ],
)
def test_questions(kind: Kind, spec: dict[str, Any], found: list[str]) -> None:
    assert paths(kind, made(kind, spec=spec)) == found
    assert not kind.persisted


def test_a_token_lives_an_hour_unless_said() -> None:
    document = written(reviews.TOKEN_REQUEST, made(reviews.TOKEN_REQUEST, spec={}))
    assert document["spec"]["expirationSeconds"] == 3600


# ----------------------------------------------------------------------------------------- Scale


def test_a_scale_shows_and_changes_replicas() -> None:
    document = made(
        DEPLOYMENT,
        spec={"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": {}},
        status={"replicas": 2},
    )
    scale = scale_of(document, Paths())
    assert scale == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "ns", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=a"},
    }
    assert scale_name(scale) == "a"
    before = deepcopy(document)
    after = scaled(document, {"spec": {"replicas": 5}}, Paths())
    assert after["spec"]["replicas"] == 5
    assert document == before
    assert told(SCALE, scale) == []
    assert paths(SCALE, scale | {"spec": {"replicas": -1}}) == ["spec.replicas"]


def test_a_scale_without_a_selector() -> None:
    bare = scale_of({"status": {"selector": "a=b"}}, Paths(selector="status.selector"))
    assert bare["status"] == {"replicas": 0, "selector": "a=b"}
    assert "selector" not in scale_of({}, Paths(selector=""))["status"]


# ------------------------------------------------------------------------------------------- CRD


def definition(name: str = "widgets.example.org", **spec: object) -> dict[str, Any]:
    return made(
        CRD,
        name=name,
        spec={
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
            **spec,
        },
    )


def test_a_definition() -> None:
    got = written(CRD, definition())
    assert got["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert got["spec"]["conversion"] == {"strategy": "None"}
    assert told(CRD, definition()) == []
    assert row(CRD, got) == {"Created At": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (definition(name="x.example.org"), ["metadata.name"]),
        (definition(name="widgets.org", group="org"), ["spec.group"]),
        (definition(name="widgets.", group=""), ["metadata.name", "spec.group"]),
        (definition(name="widgets.a_b.c", group="a_b.c"), ["metadata.name", "spec.group"]),
        (definition(scope="Galaxy"), ["spec.scope"]),
        (definition(versions=[]), ["spec.versions"]),
        (
            definition(versions=[{"name": "v1"}, {"name": "v1"}, {"name": "V"}]),
            ["spec.versions", "spec.versions[0].schema.openAPIV3Schema",
             "spec.versions[1].name", "spec.versions[1].schema.openAPIV3Schema",
             "spec.versions[2].name", "spec.versions[2].schema.openAPIV3Schema"],
        ),
        (definition(names={"plural": "widgets", "kind": "Widget", "listKind": "Widget"}),
         ["spec.names.listKind"]),
        (definition(names={"plural": "widgets"}),
         ["spec.names.singular", "spec.names.kind", "spec.names.listKind"]),
        (definition(names={"plural": "widgets", "kind": "Wid get"}),
         ["spec.names.singular", "spec.names.kind", "spec.names.listKind"]),
    ],
)  # fmt: skip
def test_faults_of_definitions(document: dict[str, Any], found: list[str]) -> None:
    assert paths(CRD, document) == found


def test_a_definition_keeps_its_names() -> None:
    old = written(CRD, definition())
    new = definition(scope="Cluster", names={"plural": "widgets", "kind": "Gadget"})
    assert paths(CRD, new, old) == ["spec.scope", "spec.names.kind"]

"""CustomResourceDefinitions as people use them with kubectl, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kubectl import MANIFESTS, Kubectl, line_of
from tests.support.server import ServerProcess

NUMBERS = count()
DEFINITION = str(MANIFESTS / "widgets.yaml")
NAME = "widgets.shop.example.com"


def widget(name: str, version: str = "v1", **spec: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(
        {
            "apiVersion": f"shop.example.com/{version}",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """One server with widgets defined."""
    home = tmp_path_factory.mktemp("crd")
    with ServerProcess(home / "data") as server:
        kubectl = Kubectl(server.kubeconfig, home)
        kubectl("apply", "-f", DEFINITION)
        kubectl("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=30s")
        yield kubectl


@pytest.fixture
def kubectl(cluster: Kubectl) -> Kubectl:
    """kubectl in a namespace of its own."""
    namespace = f"test-{next(NUMBERS)}"
    cluster("create", "ns", namespace)
    return cluster.within(namespace)


# ----------------------------------------------------------------------------------- discovery


def test_a_defined_kind_is_discovered(cluster: Kubectl) -> None:
    row = cluster("api-resources", "--api-group=shop.example.com", "--no-headers").split()
    assert row == ["widgets", "wg", "shop.example.com/v1", "true", "Widget"]
    versions = cluster("api-versions").split()
    assert {"shop.example.com/v1", "shop.example.com/v1alpha1"} <= set(versions)
    assert "widgets" in cluster("api-resources", "--categories=toys", "-o", "name")
    legacy = json.loads(cluster("get", "--raw", "/apis/shop.example.com/v1"))
    assert {each["name"] for each in legacy["resources"]} == {
        "widgets", "widgets/status", "widgets/scale",
    }  # fmt: skip


def test_explain_reads_the_schema_that_was_written(cluster: Kubectl) -> None:
    spec = cluster("explain", "widget.spec")
    assert "color\t<string> -required-" in spec
    assert "enum: red, green, blue" in spec
    assert "The color of it." in spec
    assert "parts\t<[]Object>" in spec
    assert "FIELD: weight <integer>" in cluster("explain", "wg.spec.parts.weight")
    assert "A thing to be sold." in cluster("explain", "widgets")
    old = cluster("explain", "widget.spec", "--api-version=shop.example.com/v1alpha1")
    plain = cluster("explain", "widget.spec.parts", "--output=plaintext-openapiv2")
    assert "weight\t<integer>" in plain
    assert "shade\t<string>" in old


def test_the_status_of_a_definition(cluster: Kubectl) -> None:
    found = cluster.read("crd", NAME)
    status = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert status == {"NamesAccepted": "True", "Established": "True"}
    assert found["status"]["storedVersions"] == ["v1"]
    assert found["status"]["acceptedNames"]["shortNames"] == ["wg"]
    assert NAME in cluster("get", "crds", "-o", "name")


# ------------------------------------------------------------------------------------- objects


def test_objects_are_filled_in_and_shown_in_columns(kubectl: Kubectl) -> None:
    parts = [{"name": "lid"}, {"name": "box", "weight": 2}]
    kubectl("apply", "-f", "-", stdin=widget("a", color="red", parts=parts, extra={"any": [1]}))
    found = kubectl.read("widget", "a")
    assert found["spec"]["replicas"] == 1
    assert [each["weight"] for each in found["spec"]["parts"]] == [5, 2]
    assert found["spec"]["extra"] == {"any": [1]}
    assert found["metadata"]["generation"] == 1
    head, row = kubectl("get", "wg").splitlines()
    assert head.split() == ["NAME", "SIZE", "COLOR", "READY", "AGE"]
    assert row.split()[:3] == ["a", "1", "red"]
    wide = kubectl("get", "wg", "-o", "wide").splitlines()
    assert "PARTS" in wide[0]
    assert "lid" in wide[1]
    assert kubectl("get", "toys", "-o", "name") == "widget.shop.example.com/a\n"
    assert "Color:" in kubectl("describe", "wg", "a")


def test_every_fault_of_an_object_is_told(kubectl: Kubectl) -> None:
    parts = [{"name": "x"}, {"name": "x"}, {"weight": "much"}]
    bad = widget("b", color="pink", replicas=-1, size="5in", address=False, parts=parts)
    said = kubectl.fails("apply", "-f", "-", stdin=bad)
    for line in (
        'The Widget "b" is invalid:',
        '* spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"',
        "* spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal",
        "* spec.size: Invalid value: \"5in\": spec.size in body should match '^[0-9]+(cm)?$'",
        '* spec.address: Invalid value: "boolean": spec.address in body must be of type string',
        '* spec.parts[1]: Duplicate value: {"name":"x"}',
        "* spec.parts[2].name: Required value",
        "* spec.parts[2].weight: Invalid value:",
        "some validation rules were not checked",
    ):
        assert line in said, said
    assert kubectl("get", "wg", "-o", "name") == ""


def test_rules_hold_on_create_and_on_update(kubectl: Kubectl) -> None:
    many = widget("c", color="blue", replicas=20, address="nope")
    said = kubectl.fails("create", "-f", "-", stdin=many)
    assert '* spec: Invalid value: "object": only red widgets may be many' in said
    assert '* spec.address: Invalid value: "string": no address: nope' in said
    kubectl("create", "-f", "-", stdin=widget("c", color="blue", replicas=2, address="fd00::1"))
    patch = '{"spec": {"color": "green"}}'
    said = kubectl.fails("patch", "wg", "c", "--type=merge", "-p", patch)
    assert "spec.color: Forbidden: color is immutable" in said
    kubectl("patch", "wg", "c", "--type=merge", "-p", '{"spec": {"replicas": 3}}')
    assert kubectl.read("wg", "c")["metadata"]["generation"] == 2


def test_unknown_fields_are_refused_or_dropped(kubectl: Kubectl) -> None:
    odd = widget("d", color="red", colour="red")
    said = kubectl.fails("create", "-f", "-", stdin=odd)
    assert 'strict decoding error: unknown field "spec.colour"' in said
    warned = kubectl.say("create", "--validate=warn", "-f", "-", stdin=odd)
    assert (warned.code, "unknown field" in warned.err) == (0, True)
    assert "colour" not in kubectl.read("wg", "d")["spec"]


def test_patches_and_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=widget("e", color="red", parts=[{"name": "one"}]))
    kubectl("apply", "-f", "-", stdin=widget("e", color="red", replicas=4))
    assert "parts" not in kubectl.read("wg", "e")["spec"]
    said = kubectl.fails("patch", "wg", "e", "--type=strategic", "-p", "{}")
    assert "strategic" in said or "media type" in said
    kubectl(
        "patch",
        "wg",
        "e",
        "--type=json",
        "-p",
        '[{"op":"replace","path":"/spec/replicas","value":5}]',
    )
    for manager, part in (("alice", "lid"), ("bob", "box")):
        applied = widget("f", color="red", parts=[{"name": part}])
        kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=applied)
    assert [each["name"] for each in kubectl.read("wg", "f")["spec"]["parts"]] == ["lid", "box"]
    clash = widget("f", color="red", replicas=7, parts=[{"name": "lid", "weight": 9}])
    kubectl("apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=clash)
    other = widget("f", color="red", replicas=8)
    said = kubectl.fails("apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=other)
    assert "conflict" in said
    assert ".spec.replicas" in said


def test_scale_and_status(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=widget("g", color="red"))
    assert "scaled" in kubectl("scale", "wg/g", "--replicas=7")
    assert kubectl.read("wg", "g")["spec"]["replicas"] == 7
    assert "spec.replicas in body should be less" in kubectl.fails(
        "scale", "wg/g", "--replicas=101"
    )
    status = {"replicas": 6, "selector": "a=b", "conditions": [{"type": "Ready", "status": "True"}]}
    patch = json.dumps({"status": status, "spec": {"replicas": 1}})
    kubectl("patch", "wg", "g", "--subresource=status", "--type=merge", "-p", patch)
    found = kubectl.read("wg", "g")
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (7, 6)
    assert kubectl("get", "wg", "g", "--no-headers").split()[:4] == ["g", "7", "red", "True"]
    path = f"/apis/shop.example.com/v1/namespaces/{found['metadata']['namespace']}/widgets/g/scale"
    scale = json.loads(kubectl("get", "--raw", path))
    assert scale["status"] == {"replicas": 6, "selector": "a=b"}


def test_a_version_without_subresources_has_none(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=widget("l", color="red"))
    old = "widgets.v1alpha1.shop.example.com"
    assert "could not find the requested resource" in kubectl.fails(
        "scale", f"{old}/l", "--replicas=2"
    )
    said = kubectl.fails("get", old, "l", "--subresource=status")
    assert "could not find the requested resource" in said
    assert "not supported" in kubectl.fails("get", old, "--field-selector=spec.color=red")
    found = json.loads(kubectl("get", "--raw", "/apis/shop.example.com/v1alpha1"))
    assert [each["name"] for each in found["resources"]] == ["widgets"]


def test_fields_may_select(kubectl: Kubectl) -> None:
    for name, color in (("h", "red"), ("i", "blue"), ("j", "red")):
        kubectl("create", "-f", "-", stdin=widget(name, color=color))
    found = kubectl("get", "wg", "--field-selector=spec.color=red", "-o", "name").split()
    assert found == ["widget.shop.example.com/h", "widget.shop.example.com/j"]
    assert "field label not supported" in kubectl.fails("get", "wg", "--field-selector=spec.size=1")


def test_another_version_is_another_view(kubectl: Kubectl) -> None:
    old = widget("k", "v1alpha1", color="red", shade="light")
    said = kubectl.say("apply", "-f", "-", stdin=old)
    assert said.code == 0, said
    assert "Warning: widgets of v1alpha1 are going out of fashion" in said.err
    plain = kubectl.read("widgets.v1.shop.example.com", "k")
    assert plain["apiVersion"] == "shop.example.com/v1"
    assert "shade" not in plain["spec"]
    assert kubectl.read("widgets.v1alpha1.shop.example.com", "k")["spec"]["shade"] == "light"
    listed = kubectl.say("get", "widgets.v1alpha1.shop.example.com")
    assert "going out of fashion" in listed.err


# --------------------------------------------------------------------------------- definitions


def test_a_changed_definition_is_served_at_once(cluster: Kubectl) -> None:
    name = "gears.shop.example.com"
    manifest = Path(DEFINITION).read_text().replace("widget", "gear").replace("Widget", "Gear")
    manifest = manifest.replace("[wg]", "[gr]")
    cluster("apply", "-f", "-", stdin=manifest)
    cluster("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
    gear = widget("a", color="red").replace("Widget", "Gear")
    cluster("create", "-f", "-", stdin=gear)
    wider = manifest.replace("[red, green, blue]", "[red, green, blue, gold]")
    color = "color: {type: string, enum"
    teeth = "teeth: {type: integer, default: 12}\n              "
    wider = wider.replace(color, teeth + color)
    cluster("apply", "-f", "-", stdin=wider)
    cluster("create", "-f", "-", stdin=gear.replace('"a"', '"b"').replace("red", "gold"))
    assert "teeth\t<integer>" in cluster("explain", "gear.spec")
    # What was stored before has the new default, too.
    assert cluster.read("gear", "a")["spec"]["teeth"] == 12
    cluster("delete", "crd", name, "--timeout=30s")


def test_a_changed_definition_ends_the_watches_that_show_the_old_one(cluster: Kubectl) -> None:
    name = "pins.shop.example.com"
    manifest = Path(DEFINITION).read_text().replace("widget", "pin").replace("Widget", "Pin")
    manifest = manifest.replace("[wg]", "[pn]")
    cluster("apply", "-f", "-", stdin=manifest)
    pin = widget("a", color="red").replace("Widget", "Pin")
    cluster("create", "-f", "-", stdin=pin)
    wider = manifest.replace("{name: Size, type", "{name: Girth, type")
    with cluster.running("get", "pins", "-w") as watch:
        line_of(watch, lambda line: line.startswith("a "))
        cluster("annotate", "crd", name, "about=nothing")  # which ends no watch
        cluster("label", "pins", "a", "x=y")
        line_of(watch, lambda line: line.startswith("a "))
        cluster("apply", "-f", "-", stdin=wider)
        assert watch.stdout is not None
        assert watch.stdout.read() == ""  # its end
    revision = cluster.read("pins", "a")["metadata"]["resourceVersion"]
    where = f"/apis/shop.example.com/v1/pins?watch=1&timeoutSeconds=1&resourceVersion={revision}"
    cluster("label", "pins", "a", "x=z", "--overwrite")
    events = [json.loads(line) for line in cluster("get", "--raw", where).splitlines()]
    assert [each["type"] for each in events] == ["MODIFIED"]
    assert cluster("get", "pins").splitlines()[0].split()[1] == "GIRTH"
    cluster("delete", "crd", name, "--timeout=30s")


def test_a_definition_goes_with_its_objects_and_ends_its_watches(cluster: Kubectl) -> None:
    name = "cogs.shop.example.com"
    manifest = Path(DEFINITION).read_text().replace("widget", "cog").replace("Widget", "Cog")
    manifest = manifest.replace("[wg]", "[cg]")
    cluster("apply", "-f", "-", stdin=manifest)
    cog = widget("a", color="red").replace("Widget", "Cog")
    for each in "ab":
        cluster("create", "-f", "-", stdin=cog.replace('"a"', f'"{each}"'))
    with cluster.running("get", "cogs", "-w", "-o", "name") as watch:
        shown = [line_of(watch, lambda line: "cog" in line).strip() for _ in "ab"]
        assert shown == ["cog.shop.example.com/a", "cog.shop.example.com/b"]
        cluster("delete", "crd", name, "--timeout=30s")
        assert watch.stdout is not None
        rest = watch.stdout.read()  # to its end: the server has closed the watch
    assert sorted(set(rest.split())) == ["cog.shop.example.com/a", "cog.shop.example.com/b"]
    assert "could not find the requested resource" in cluster.fails("get", "cogs")
    assert "cogs" not in cluster("api-resources", "--api-group=shop.example.com", "-o", "name")
    cluster("apply", "-f", "-", stdin=manifest)
    assert cluster("get", "cogs", "-o", "name") == ""
    cluster("delete", "crd", name, "--timeout=30s")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("type: object\n        description", "type: string\n        description",
         'schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root'),
        ("isIP(self)", "isNonsense(self)",
         "undeclared reference to 'isNonsense': the function is not supported"),
        ("self.replicas <= 10", "self.replcas <= 10", "undefined field 'replcas'"),
        ("'^[0-9]+(cm)?$'", "'(?<=a)b'", "must be a regular expression of RE2"),
        ("{type: integer, default: 5}", "{type: integer, default: five}",
         "properties[weight].default: Invalid value"),
        ("scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook}",
         "spec.conversion.strategy: Forbidden: conversion webhooks are not supported"),
        ("size: {", "size: {$ref: '#/a', ", "$ref is not supported"),
    ],
)  # fmt: skip
def test_definitions_that_cannot_be_served_are_refused(
    cluster: Kubectl, old: str, new: str, says: str
) -> None:
    manifest = Path(DEFINITION).read_text().replace("widget", "knob").replace("Widget", "Knob")
    assert old in manifest
    said = cluster.fails("create", "-f", "-", stdin=manifest.replace(old, new, 1))
    assert says in said


def test_the_gateway_apis_definitions_apply(cluster: Kubectl) -> None:
    path = str(MANIFESTS / "gateway-definitions.yaml")
    said = cluster.say("apply", "-f", path)
    assert said.code == 0, said
    assert "httproutes.gateway.networking.k8s.io are built in" in said.err
    waits = ("httproutes", "backendtlspolicies")
    for name in waits:
        crd = f"crd/{name}.gateway.networking.k8s.io"
        cluster("wait", "--for=condition=Established", crd, "--timeout=30s")
    conditions = cluster.read("crd", "httproutes.gateway.networking.k8s.io")["status"]["conditions"]
    assert {each["reason"] for each in conditions} == {"BuiltIn"}
    policy = """
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: tls}
spec:
  targetRefs: [{group: "", kind: Service, name: face}]
  validation: {hostname: face.example, %s}
"""
    cluster("apply", "-f", "-", stdin=policy % "wellKnownCACertificates: System")
    refused = cluster.fails("apply", "-f", "-", stdin=policy % "subjectAltNames: [{type: URI}]")
    assert "uri goes with its type" in refused
    assert "some certificates are needed" in refused
    said = cluster.say("apply", "-f", path)
    assert said.out.count("unchanged") == 2
    cluster("delete", "-f", path, "--timeout=30s")


def test_hostile_definitions_are_answered(cluster: Kubectl, tmp_path: Path) -> None:
    head = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bombs.shop.example.com"},
    }

    def answer(spec: dict[str, Any]) -> str:
        version = {
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }  # fmt: skip
        names = {"plural": "bombs", "kind": "Bomb"}
        whole = {
            "group": "shop.example.com",
            "scope": "Cluster",
            "names": names,
            "versions": [version],
        }
        path = tmp_path / "bomb.json"
        path.write_text(json.dumps({**head, "spec": whole}))
        return cluster.fails("create", "-f", str(path))

    wide = {f"p{n}": {"type": "string"} for n in range(25_000)}
    assert "at most 20000 nodes" in answer({"type": "object", "properties": wide})
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    assert "nested more than 128 deep" in answer(deep)
    rules = [
        {"rule": "(" * 4000 + "true" + ")" * 4000},
        {"rule": "self.all(x, self.all(y, self.all(z, x == y)))"},
    ]
    listed = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    said = answer(listed)
    assert "nested more than 40 deep" in said
    assert "estimated rule cost exceeds budget" in said
    assert "is invalid" in answer({"type": "array", "items": {"not": 5, "allOf": {}, "type": []}})
    assert cluster("get", "ns", "default", "-o", "name") == "namespace/default\n"


def test_definitions_and_their_objects_outlive_the_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        kubectl = Kubectl(server.kubeconfig, tmp_path / "one")
        kubectl("apply", "-f", DEFINITION)
        kubectl("create", "-f", "-", stdin=widget("a", color="red"))
    with ServerProcess(tmp_path / "data") as server:
        kubectl = Kubectl(server.kubeconfig, tmp_path / "two")
        assert kubectl("get", "wg", "-o", "name") == "widget.shop.example.com/a\n"
        assert "color is immutable" in kubectl.fails(
            "patch", "wg", "a", "--type=merge", "-p", '{"spec": {"color": "blue"}}'
        )

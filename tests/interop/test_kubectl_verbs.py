"""What people do with kubectl every day, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.interop.kubectl import Kubectl, line_of
from tests.support.server import ServerProcess

NUMBERS = count()

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: grpc, port: 81}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """One server for all tests here."""
    home = tmp_path_factory.mktemp("kubectl")
    with ServerProcess(home / "data") as server:
        yield Kubectl(server.kubeconfig, home)


@pytest.fixture
def kubectl(cluster: Kubectl) -> Kubectl:
    """kubectl in a namespace of its own, with a Service and three ConfigMaps."""
    namespace = f"test-{next(NUMBERS)}"
    cluster("create", "ns", namespace)
    kubectl = cluster.within(namespace)
    kubectl("create", "-f", "-", stdin=SERVICE)
    for name in ("one", "two", "three"):
        kubectl("create", "configmap", name, f"--from-literal=k={name}")
    return kubectl


# -------------------------------------------------------------------------------------- get


def test_get_as_table_wide_and_with_labels(kubectl: Kubectl) -> None:
    head, row = kubectl("get", "svc").splitlines()
    assert head.split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert row.split()[0] == "web"
    assert "80/TCP,81/TCP" in row
    assert kubectl("get", "svc", "-o", "wide").splitlines()[0].split()[-1] == "SELECTOR"
    assert "app=web" in kubectl("get", "svc", "--show-labels")
    assert kubectl("get", "svc", "-L", "app", "--no-headers").split()[-1] == "web"
    everywhere = kubectl("get", "svc", "-A").splitlines()
    assert everywhere[0].split()[0] == "NAMESPACE"


def test_get_as_documents(kubectl: Kubectl) -> None:
    one = json.loads(kubectl("get", "svc", "web", "-o", "json"))
    same = yaml.safe_load(kubectl("get", "svc", "web", "-o", "yaml"))  # noqa: TID251 - independent
    assert one == same
    assert (one["apiVersion"], one["kind"]) == ("v1", "Service")
    assert one["spec"]["ports"][1]["targetPort"] == 81
    assert kubectl("get", "svc", "web", "-o", "name") == "service/web\n"
    path = kubectl("get", "svc", "web", "-o", "jsonpath={.spec.ports[*].port}")
    assert path == "80 81"
    columns = kubectl("get", "svc", "-o", "custom-columns=N:.metadata.name,A:.metadata.labels.app")
    assert columns.splitlines()[1].split() == ["web", "web"]
    template = kubectl("get", "svc", "web", "-o", "go-template={{.spec.type}}")
    assert template == "ClusterIP"
    both = json.loads(kubectl("get", "svc,cm", "-o", "json"))
    assert {item["kind"] for item in both["items"]} == {"Service", "ConfigMap"}


def test_selectors_and_pages(kubectl: Kubectl) -> None:
    kubectl("label", "cm", "one", "two", "tier=a")
    assert kubectl("get", "cm", "-l", "tier=a", "-o", "name").split() == [
        "configmap/one", "configmap/two",
    ]  # fmt: skip
    assert kubectl("get", "cm", "-l", "tier notin (a)", "-o", "name").count("configmap/") >= 1
    field = ("--field-selector", "metadata.name=three")
    assert kubectl("get", "cm", *field, "-o", "name") == "configmap/three\n"
    whole = kubectl("get", "cm", "-o", "name")
    assert kubectl("get", "cm", "-o", "name", "--chunk-size=1") == whole
    sorted_names = kubectl("get", "cm", "--sort-by=.metadata.name", "-o", "name", "-l", "tier")
    assert sorted_names.split() == ["configmap/one", "configmap/two"]
    assert "unable to parse" in kubectl.fails("get", "cm", "-l", "a b")
    assert "field label not supported" in kubectl.fails("get", "cm", "--field-selector", "x=y")


def test_watching_a_list_and_an_object(kubectl: Kubectl) -> None:
    with kubectl.running("get", "cm", "-w") as watch:
        line_of(watch, lambda line: line.startswith("two"))
        kubectl("create", "cm", "late", "--from-literal=a=b")
        assert line_of(watch, lambda line: line.startswith("late")).split()[1] == "1"
    with kubectl.running("get", "cm", "one", "-w", "-o", "name") as watch:
        line_of(watch, lambda line: line == "configmap/one\n")
        kubectl("label", "cm", "two", "x=y")
        kubectl("label", "cm", "one", "x=y")
        assert line_of(watch, lambda _: True) == "configmap/one\n"


def test_what_is_not_there(kubectl: Kubectl) -> None:
    said = kubectl.fails("get", "svc", "nope")
    assert said == 'Error from server (NotFound): services "nope" not found\n'
    assert "doesn't have a resource type" in kubectl.fails("get", "nonsense")


def test_describe(kubectl: Kubectl) -> None:
    shown = kubectl("describe", "svc", "web")
    for wanted in ("Name:", "web", "80/TCP", "ClusterIP", "Events:"):
        assert wanted in shown
    assert "one" in kubectl("describe", "cm", "one")
    assert "Active" in kubectl("describe", "ns", "default")


# ------------------------------------------------------------------------------------ writes


def test_three_kinds_of_patches(kubectl: Kubectl) -> None:
    strategic = '{"spec":{"ports":[{"port":80,"name":"web"}]}}'
    assert kubectl("patch", "svc", "web", "-p", strategic) == "service/web patched\n"
    ports = kubectl.read("svc", "web")["spec"]["ports"]
    assert [port["name"] for port in ports] == ["web", "grpc"]
    merge = '{"metadata":{"labels":{"app":null,"tier":"a"}}}'
    kubectl("patch", "svc", "web", "--type=merge", "-p", merge)
    assert kubectl.read("svc", "web")["metadata"]["labels"] == {"tier": "a"}
    step = '[{"op":"replace","path":"/spec/ports/1/name","value":"h2"}]'
    kubectl("patch", "svc", "web", "--type=json", "-p", step)
    assert kubectl.read("svc", "web")["spec"]["ports"][1]["name"] == "h2"
    said = kubectl.fails("patch", "svc", "web", "--type=json", "-p",
                         '[{"op":"remove","path":"/spec/nothing"}]')  # fmt: skip
    assert "nothing" in said
    assert "(no change)" in kubectl("patch", "svc", "web", "-p", "{}")


def test_replace_and_its_conflict(kubectl: Kubectl) -> None:
    document = kubectl("get", "cm", "one", "-o", "yaml")
    changed = document.replace("k: one", "k: uno")
    assert kubectl("replace", "-f", "-", stdin=changed) == "configmap/one replaced\n"
    assert kubectl.read("cm", "one")["data"] == {"k": "uno"}
    said = kubectl.fails("replace", "-f", "-", stdin=document)
    assert "Conflict" in said
    assert "the object has been modified" in said
    assert kubectl("replace", "--force", "-f", "-", stdin=document).count("replaced") == 1


def test_edit_with_a_scripted_editor(kubectl: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/k: one/k: uno/' \"$1\"\n")
    editor.chmod(0o755)
    assert kubectl("edit", "cm", "one", EDITOR=str(editor)) == "configmap/one edited\n"
    assert kubectl.read("cm", "one")["data"] == {"k": "uno"}
    assert "no changes made" in kubectl.say("edit", "cm", "one", EDITOR="true").err


def test_apply_creates_configures_and_prunes_fields(kubectl: Kubectl) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: '1', b: '2'}\n"
    assert kubectl("apply", "-f", "-", stdin=body) == "configmap/applied created\n"
    assert kubectl("apply", "-f", "-", stdin=body) == "configmap/applied unchanged\n"
    changed = body.replace(", b: '2'", "")
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/applied configured\n"
    assert kubectl.read("cm", "applied")["data"] == {"a": "1"}
    created = kubectl.say("apply", "-f", "-", stdin=SERVICE)
    assert "missing the kubectl.kubernetes.io/last-applied-configuration" in created.err
    assert created.code == 0


def test_apply_names_unknown_fields_and_kinds(kubectl: Kubectl) -> None:
    bad = SERVICE.replace("selector:", "colour: blue\n  selektor:")
    said = kubectl.fails("create", "-f", "-", stdin=bad.replace("web", "other"))
    assert "strict decoding error" in said
    assert 'unknown field "spec.colour"' in said
    assert 'unknown field "spec.selektor"' in said
    odd = "apiVersion: nobody.example/v1\nkind: Odd\nmetadata: {name: x}\n"
    assert "no matches for kind" in kubectl.fails("apply", "-f", "-", stdin=odd)
    two = f"{odd}---\n{SERVICE.replace('name: web', 'name: good', 1)}"
    assert "service/good" in kubectl.say("apply", "-f", "-", stdin=two).out


def test_invalid_objects_name_their_faults(kubectl: Kubectl) -> None:
    bad = SERVICE.replace("name: web", "name: Web_1", 1)
    said = kubectl.fails("create", "-f", "-", stdin=bad)
    assert 'The Service "Web_1" is invalid' in said
    assert "metadata.name" in said


def test_dry_runs(kubectl: Kubectl) -> None:
    made = kubectl("create", "cm", "dry", "--from-literal=a=b", "--dry-run=server", "-o", "yaml")
    assert "uid:" in made
    assert "not found" in kubectl.fails("get", "cm", "dry")
    assert "(server dry run)" in kubectl("delete", "cm", "one", "--dry-run=server")
    assert kubectl("get", "cm", "one", "-o", "name")
    kubectl("label", "cm", "one", "a=b", "--dry-run=server")
    assert "labels" not in kubectl.read("cm", "one")["metadata"]


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    assert kubectl("label", "cm", "one", "a=b") == "configmap/one labeled\n"
    assert "--overwrite is false" in kubectl.fails("label", "cm", "one", "a=c")
    assert kubectl("label", "cm", "one", "a=c", "--overwrite") == "configmap/one labeled\n"
    assert kubectl("label", "cm", "one", "a-") == "configmap/one unlabeled\n"
    assert kubectl("annotate", "cm", "one", "x=y") == "configmap/one annotated\n"
    assert kubectl("annotate", "cm", "one", "x=y") == "configmap/one annotated\n"
    assert kubectl.read("cm", "one")["metadata"]["annotations"] == {"x": "y"}


def test_delete_and_wait(kubectl: Kubectl) -> None:
    name = kubectl.read("cm", "one")["metadata"]["namespace"]
    assert kubectl("delete", "cm", "one") == f'configmap "one" deleted from {name} namespace\n'
    missing = kubectl.fails("delete", "cm", "one")
    assert missing == 'Error from server (NotFound): configmaps "one" not found\n'
    assert kubectl("delete", "cm", "one", "--ignore-not-found") == ""
    held = '{"metadata":{"finalizers":["example.org/hold"]}}'
    kubectl("patch", "cm", "two", "--type=merge", "-p", held)
    kubectl("delete", "cm", "two", "--wait=false")
    with kubectl.running("wait", "--for=delete", "cm/two", "--timeout=60s") as waiting:
        freed = '{"metadata":{"finalizers":null}}'
        kubectl("patch", "cm", "two", "--type=merge", "-p", freed)
        assert waiting.wait(timeout=60) == 0
    kubectl("delete", "cm", "--all")
    assert "three" not in kubectl("get", "cm", "-o", "name")


def test_wait_for_a_condition_and_a_field(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=example.org/d:1")
    kubectl("wait", "--for=condition=Progressing", "deploy/d", "--timeout=30s")
    kubectl("wait", "--for=jsonpath={.spec.replicas}=1", "deploy/d", "--timeout=30s")
    said = kubectl.fails("wait", "--for=condition=Available", "deploy/d", "--timeout=1s")
    assert "timed out" in said
    kubectl("set", "image", "deploy/d", "d=example.org/d:2")
    kubectl("rollout", "restart", "deploy/d")
    template = kubectl.read("deploy", "d")["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "example.org/d:2"
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    kubectl("scale", "deploy/d", "--replicas=3", "--current-replicas=1")
    assert kubectl.read("deploy", "d")["spec"]["replicas"] == 3
    assert "deployment.apps/d" in kubectl("get", "all", "-o", "name")


# ---------------------------------------------------------------------------------- discovery


def test_what_there_is(cluster: Kubectl) -> None:
    resources = cluster("api-resources")
    for wanted in ("services", "svc", "deployments", "deploy", "configmaps"):
        assert wanted in resources
    assert "apps/v1" in cluster("api-versions").split()
    assert "Server Version: v1." in cluster("version")
    assert cluster("get", "--raw", "/readyz") == "ok"


def test_kinds_without_patch_are_checked_by_kubectl_itself(kubectl: Kubectl) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    allowed = ("create", "-f", "-", "-o", "jsonpath={.status.allowed}")
    assert kubectl(*allowed, stdin=json.dumps(review)) == "true"
    wrong = json.dumps(review).replace('"verb"', '"vreb"')
    said = kubectl.say(*allowed, stdin=wrong)
    assert said.code == 1
    assert 'resourceAttributes): unknown field "vreb"' in said.err


def test_explain(cluster: Kubectl) -> None:
    shown = cluster("explain", "pod.spec.containers")
    assert "KIND:       Pod" in shown
    assert "FIELDS:" in shown
    assert "image\t<string>" in shown
    assert "ports\t<[]ServicePort>" in cluster("explain", "service.spec")


def test_who_may_what(cluster: Kubectl) -> None:
    assert cluster("auth", "can-i", "create", "pods") == "yes\n"
    denied = cluster.say("auth", "can-i", "create", "pods", "--as=eve")
    assert denied.out == "no\n"
    assert "system:masters" in cluster("auth", "whoami")
    refused = cluster.fails("get", "pods", "--as=eve")
    assert refused == (
        'Error from server (Forbidden): pods is forbidden: User "eve" cannot list resource '
        '"pods" in API group "" in the namespace "default"\n'
    )
    assert "*.*" in cluster("auth", "can-i", "--list")


def test_a_token_for_an_account(cluster: Kubectl, kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "bot")
    token = kubectl("create", "token", "bot", "--duration=20m").strip()
    assert token.count(".") == 2
    config = yaml.safe_load(cluster("config", "view", "--raw", "-o", "yaml"))  # noqa: TID251
    config["users"] = [{"name": "bot", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "bot"
    path = cluster.home / "bot.kubeconfig"
    path.write_text(json.dumps(config))
    bot = Kubectl(path, cluster.home)
    said = bot.fails("get", "pods")
    assert "system:serviceaccount:test-" in said
    assert ":bot" in said
    assert "bot" in bot("auth", "whoami")

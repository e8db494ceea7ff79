"""Server-side apply as people do it: the real kubectl, a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kubectl import Kubectl
from tests.support.server import ServerProcess

NUMBERS = count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """One server for all tests here."""
    home = tmp_path_factory.mktemp("kubectl")
    with ServerProcess(home / "data") as server:
        yield Kubectl(server.kubeconfig, home)


@pytest.fixture
def kubectl(cluster: Kubectl) -> Kubectl:
    """kubectl in a namespace of its own."""
    namespace = f"test-{next(NUMBERS)}"
    cluster("create", "ns", namespace)
    return cluster.within(namespace)


def config_map(labels: dict[str, str] | None = None, /, **data: str) -> str:
    metadata: dict[str, Any] = {"name": "x"}
    if labels:
        metadata["labels"] = labels
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def deployment(image: str, **container: object) -> str:
    labels = {"app": "x"}
    pod = {"containers": [{"name": "main", "image": image, **container}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return json.dumps(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}
    )


def apply(kubectl: Kubectl, manifest: str, *flags: str) -> str:
    return kubectl("apply", "--server-side", *flags, "-f", "-", stdin=manifest)


def owners(kubectl: Kubectl, what: str = "cm") -> dict[str, Any]:
    shown = kubectl("get", what, "x", "-o", "json", "--show-managed-fields")
    listed = json.loads(shown)["metadata"].get("managedFields", [])
    return {f"{each['manager']} {each['operation']}": each["fieldsV1"] for each in listed}


def data(kubectl: Kubectl) -> dict[str, str]:
    held: dict[str, str] = kubectl.read("cm", "x")["data"]
    return held


def test_create_change_and_leave_out(kubectl: Kubectl) -> None:
    said = apply(kubectl, config_map(a="1", b="1"))
    assert said == "configmap/x serverside-applied\n"
    assert owners(kubectl) == {"kubectl Apply": {"f:data": {"f:a": {}, "f:b": {}}}}
    assert "managedFields" not in kubectl("get", "cm", "x", "-o", "yaml")
    apply(kubectl, config_map(b="2"))
    assert data(kubectl) == {"b": "2"}
    before = kubectl.read("cm", "x")
    apply(kubectl, config_map(b="2"))
    assert kubectl.read("cm", "x") == before


def test_a_conflict_and_force(kubectl: Kubectl) -> None:
    kubectl("create", "cm", "x", "--from-literal=a=1")
    kubectl("label", "cm", "x", "tier=one")
    said = kubectl.fails(
        "apply", "--server-side", "-f", "-", stdin=config_map({"tier": "two"}, a="2")
    )
    assert said.startswith(
        "error: Apply failed with 2 conflicts: "
        'conflicts with "kubectl-create" using v1:\n- .data.a\n'
        'conflicts with "kubectl-label" using v1:\n- .metadata.labels.tier\n'
    )
    assert "--force-conflicts" in said
    assert data(kubectl) == {"a": "1"}
    apply(kubectl, config_map({"tier": "two"}, a="2"), "--force-conflicts")
    assert data(kubectl) == {"a": "2"}
    held = owners(kubectl)
    assert held["kubectl Apply"] == {
        "f:data": {"f:a": {}},
        "f:metadata": {"f:labels": {"f:tier": {}}},
    }
    assert "f:a" not in str(held.get("kubectl-create Update", ""))


def test_two_appliers_share_and_part(kubectl: Kubectl) -> None:
    apply(kubectl, config_map(a="1", b="1"), "--field-manager=one")
    apply(kubectl, config_map(a="1", c="1"), "--field-manager=two")
    assert data(kubectl) == {"a": "1", "b": "1", "c": "1"}
    apply(kubectl, config_map(d="1"), "--field-manager=one")
    assert data(kubectl) == {"a": "1", "c": "1", "d": "1"}
    said = kubectl.fails(
        "apply", "--server-side", "--field-manager=one", "-f", "-", stdin=config_map(a="9")
    )
    assert 'conflict with "two": .data.a' in said


def test_lists_are_merged_by_key(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("one", ports=[{"containerPort": 80}]))
    side = json.loads(deployment("unused"))
    side["spec"] = {
        "template": {"spec": {"containers": [{"name": "side", "image": "s", "env": []}]}}
    }
    apply(kubectl, json.dumps(side), "--field-manager=side")
    containers = kubectl.read("deploy", "x")["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main", "side"]
    said = kubectl.fails("apply", "--server-side", "-f", "-", stdin=deployment("two"))
    assert (
        'conflict with "kubectl-create" using apps/v1: '
        '.spec.template.spec.containers[name="main"].image'
    ) in said
    side["spec"] = {}
    apply(kubectl, json.dumps(side), "--field-manager=side")
    containers = kubectl.read("deploy", "x")["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main"]


def test_from_client_side_apply_to_server_side(kubectl: Kubectl) -> None:
    """What kubectl migrates: the annotation stays true, and removal works across the change."""
    kubectl("apply", "-f", "-", stdin=config_map(a="1", b="1"))
    assert list(owners(kubectl)) == ["kubectl-client-side-apply Update"]
    apply(kubectl, config_map(a="2", c="1"))
    held = owners(kubectl)
    assert held["kubectl Apply"]["f:data"] == {"f:a": {}, "f:c": {}}
    assert "kubectl-client-side-apply Update" not in held
    assert data(kubectl) == {"a": "2", "c": "1"}
    shown = json.loads(kubectl("apply", "view-last-applied", "cm", "x", "-o", "json"))
    assert shown["data"] == {"a": "2", "c": "1"}
    apply(kubectl, config_map(a="3"))
    assert data(kubectl) == {"a": "3"}
    kubectl("apply", "-f", "-", stdin=config_map(d="1"))
    assert data(kubectl) == {"d": "1"}


def test_last_applied_is_viewed_set_and_edited(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "cm", "x", "--from-literal=a=1")
    manifest = tmp_path / "x.json"
    manifest.write_text(config_map(a="1"))
    where = ("-f", str(manifest))
    assert "no last-applied" in kubectl.fails("apply", "set-last-applied", *where)
    kubectl("apply", "set-last-applied", *where, "--create-annotation=true")
    shown = kubectl("apply", "view-last-applied", "cm/x", "-o", "json")
    assert json.loads(shown)["data"] == {"a": "1"}
    kubectl("apply", "edit-last-applied", "cm/x", KUBE_EDITOR="sed -i '/a:/s/1/2/'")
    assert json.loads(kubectl("apply", "view-last-applied", *where, "-o", "json"))["data"] == {
        "a": "2"
    }


def test_diff_tells_and_writes_nothing(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=config_map(a="1"))
    before = kubectl.read("cm", "x")
    for flags in ((), ("--server-side",)):
        same = kubectl.say("diff", *flags, "-f", "-", stdin=config_map(a="1"))
        assert (same.code, same.out) == (0, ""), same
        other = kubectl.say("diff", *flags, "-f", "-", stdin=config_map(a="2"))
        assert other.code == 1, other
        lines = other.out.splitlines()
        assert '-  a: "1"' in lines
        assert '+  a: "2"' in lines
    new = config_map(a="1").replace('"x"', '"new"')
    created = kubectl.say("diff", "--server-side", "-f", "-", stdin=new)
    assert created.code == 1
    assert "+  name: new" in created.out
    assert kubectl.read("cm", "x") == before
    assert kubectl("get", "cm", "new", "--ignore-not-found") == ""


def test_dry_runs_and_strict_fields(kubectl: Kubectl) -> None:
    said = apply(kubectl, config_map(a="1"), "--dry-run=server")
    assert said == "configmap/x serverside-applied (server dry run)\n"
    assert kubectl("get", "cm", "x", "--ignore-not-found") == ""
    wrong = config_map(a="1").replace('"data"', '"dta"')
    said = kubectl.fails("apply", "--server-side", "-f", "-", stdin=wrong)
    assert 'unknown field "dta"' in said


def test_custom_resources_are_applied_too(kubectl: Kubectl) -> None:
    def server(port: int, **more: str) -> str:
        spec = {"podSelector": {"matchLabels": {"app": "x"}}, "port": port, **more}
        return json.dumps(
            {
                "apiVersion": "policy.linkerd.io/v1beta3",
                "kind": "Server",
                "metadata": {"name": "x"},
                "spec": spec,
            }
        )

    apply(kubectl, server(80, proxyProtocol="HTTP/2"))
    assert owners(kubectl, "servers")["kubectl Apply"] == {
        "f:spec": {"f:podSelector": {}, "f:port": {}, "f:proxyProtocol": {}}
    }
    kubectl("patch", "servers", "x", "--type=merge", "-p", '{"spec":{"port":81}}')
    said = kubectl.fails("apply", "--server-side", "-f", "-", stdin=server(82))
    assert 'conflict with "kubectl-patch" using policy.linkerd.io/v1beta3: .spec.port' in said
    older = server(82).replace("v1beta3", "v1beta1")
    said = kubectl.fails("apply", "--server-side", "-f", "-", stdin=older)
    assert 'conflict with "kubectl-patch" using policy.linkerd.io/v1beta3: .spec.port' in said
    apply(kubectl, older, "--force-conflicts")
    held = kubectl.read("servers", "x")["spec"]
    assert held["port"] == 82
    assert held["proxyProtocol"] == "unknown"


def test_waiting_for_and_applying_a_status(kubectl: Kubectl) -> None:
    apply(kubectl, deployment("one"))
    report = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "status": {"conditions": [{"type": "Mine", "status": "True"}]},
    }
    kubectl(
        "apply", "--server-side", "--subresource=status", "--field-manager=reporter", "-f", "-",
        stdin=json.dumps(report),
    )  # fmt: skip
    kubectl("wait", "--for=condition=Mine", "deploy/x", "--timeout=20s")
    assert "f:spec" not in owners(kubectl, "deploy")["reporter Apply"]

"""What `isthmus multicluster` prints, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.commands.multicluster_gateways import Row, as_json, rows, table
from isthmus.cli.entry import run
from isthmus.cli.kubeconfig import Kubeconfig
from isthmus.cli.multicluster import facts
from isthmus.cli.multicluster.documents import text
from isthmus.cli.multicluster.link import selector
from isthmus.errors import UserFault
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.yaml_body import strict_yaml

Capture = pytest.CaptureFixture[str]
Json = dict[str, Any]


def installed(capsys: Capture, *flags: str) -> list[Json]:
    assert run(["multicluster", "install", "--ignore-cluster", "-o", "json", *flags]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def titles(documents: list[Json]) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in documents]


ACCESS = "linkerd-service-mirror-remote-access-default"


def test_install_without_a_gateway_makes_an_account_and_no_deployment(capsys: Capture) -> None:
    found = installed(capsys, "--gateway=false")
    assert titles(found) == [
        "CustomResourceDefinition links.multicluster.linkerd.io",
        "Namespace linkerd-multicluster",
        f"ServiceAccount {ACCESS}",
        f"ClusterRole {ACCESS}",
        f"ClusterRoleBinding {ACCESS}",
        f"Role {ACCESS}",
        f"RoleBinding {ACCESS}",
        f"Role {ACCESS}",
        f"RoleBinding {ACCESS}",
    ]
    assert found[1]["metadata"]["labels"] == {"linkerd.io/extension": "multicluster"}


def test_the_account_only_reads_and_asks_for_its_own_tokens(capsys: Capture) -> None:
    roles = [each for each in installed(capsys) if each["kind"] in ("ClusterRole", "Role")]
    everywhere, tokens, config = roles
    assert {verb for rule in everywhere["rules"] for verb in rule["verbs"]} == {
        "get", "list", "watch",
    }  # fmt: skip
    readable = {name for rule in everywhere["rules"] for name in rule["resources"]}
    assert "secrets" not in readable
    assert "configmaps" not in readable
    assert {"services", "endpointslices", "pods"} <= readable
    assert tokens["metadata"]["namespace"] == "linkerd-multicluster"
    assert tokens["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "verbs": ["create"],
            "resourceNames": [ACCESS],
        }
    ]
    assert config["metadata"]["namespace"] == "linkerd"
    assert config["rules"][0]["resourceNames"] == ["linkerd-config"]


def by_title(documents: list[Json], title: str) -> Json:
    [found] = [
        each for each, name in zip(documents, titles(documents), strict=True) if name == title
    ]
    return found


def test_the_gateway(capsys: Capture) -> None:
    found = installed(capsys, "--gateway-port", "5143", "--ha", "--gateway-probe-seconds=9")
    pod = by_title(found, "Deployment linkerd-gateway")["spec"]["template"]
    notes = pod["metadata"]["annotations"]
    assert notes["config.linkerd.io/enable-gateway"] == "true"
    assert notes["config.linkerd.io/proxy-require-identity-inbound-ports"] == "5143"
    assert notes["config.linkerd.io/default-inbound-policy"] == "all-authenticated"
    assert "podAntiAffinity" in pod["spec"]["affinity"]
    assert by_title(found, "Deployment linkerd-gateway")["spec"]["replicas"] == 3
    service = by_title(found, "Service linkerd-gateway")
    assert [(p["name"], p["port"]) for p in service["spec"]["ports"]] == [
        ("mc-gateway", 5143),
        ("mc-probe", 4191),
    ]
    assert service["metadata"]["annotations"] == {
        "mirror.linkerd.io/gateway-identity": (
            "linkerd-gateway.linkerd-multicluster.serviceaccount.identity.linkerd.cluster.local"
        ),
        "mirror.linkerd.io/probe-period": "9",
        "mirror.linkerd.io/probe-path": "/ready",
        "mirror.linkerd.io/multicluster-gateway": "true",
    }
    needs = by_title(found, "AuthorizationPolicy linkerd-gateway")["spec"]
    assert [each["name"] for each in needs["requiredAuthenticationRefs"]] == [
        "any-meshed",
        "source-cluster",
    ]


def test_what_is_printed_is_of_kinds_that_we_know(capsys: Capture) -> None:
    for each in installed(capsys):
        assert BUILT_IN.by_api_version(each["apiVersion"], each["kind"]) is not None


def test_yaml_documents_end_with_a_line() -> None:
    printed = text([{"a": 1}, {"b": {"c": "d"}}], "yaml")
    assert printed == "a: 1\n---\nb:\n  c: d\n---\n"
    assert [strict_yaml(part.encode())[0] for part in printed.split("---\n")[:2]] == [
        {"a": 1},
        {"b": {"c": "d"}},
    ]


# ------------------------------------------------------------------------------------------ link


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("link",), "You need to specify cluster name"),
        (("link-gen",), "you need to specify cluster name"),
        (("unlink",), "You need to specify cluster name"),
        (
            ("link", "--cluster-name=e", "--gateway=false", "--selector", "x=y"),
            "--selector cannot be used with --gateway=false",
        ),
        (
            ("link", "--cluster-name=e", "--gateway=false", "--gateway-addresses", "192.0.2.7"),
            "--gateway-addresses cannot be used with --gateway=false",
        ),
        (
            ("link", "--cluster-name=e", "--gateway=false", "--gateway-port=1"),
            "--gateway-port cannot be used with --gateway=false",
        ),
        (("link", "--cluster-name=E!", "--gateway=false"), "--cluster-name 'E!'"),
        (
            ("link", "--cluster-name=e", "--gateway=false", "--api-server-address=east:6443"),
            "is no URL",
        ),
    ],
)
def test_what_is_refused_prints_nothing(words: tuple[str, ...], says: str, capsys: Capture) -> None:
    assert run(["multicluster", *words]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err


def test_flags_for_a_deployment_that_we_do_not_have_are_taken_and_told(capsys: Capture) -> None:
    words = ("link", "--ha", "--log-level", "debug", "--set", "a=b")
    assert run(["multicluster", *words]) == 1
    told = capsys.readouterr().err.splitlines()
    assert sorted(told[:3]) == [
        f"isthmus: {flag} is for a Deployment that mirrors; Isthmus needs none"
        for flag in ("--ha", "--log-level", "--set")
    ]
    assert "cluster name" in told[3]
    assert run(["mc", "unlink", "--cluster-name=x", "--only-controller"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("written", "labels", "expressions"),
    [
        ("a=b", {"a": "b"}, []),
        ("a==b, c=", {"a": "b", "c": ""}, []),
        ("x.io/a=b,!c", {"x.io/a": "b"}, [{"key": "c", "operator": "DoesNotExist"}]),
        ("c", {}, [{"key": "c", "operator": "Exists"}]),
        ("c!=d", {}, [{"key": "c", "operator": "NotIn", "values": ["d"]}]),
        (
            "c in (d, e),f notin (g)",
            {},
            [
                {"key": "c", "operator": "In", "values": ["d", "e"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
            ],
        ),
    ],
)
def test_selectors_as_text(written: str, labels: Json, expressions: list[Json]) -> None:
    found = selector(written)
    assert found.get("matchLabels", {}) == labels
    assert found.get("matchExpressions", []) == expressions


@pytest.mark.parametrize("written", ["a=b=c", "in (a)", "a in b", "a b"])
def test_a_selector_that_is_none(written: str) -> None:
    with pytest.raises(UserFault, match="is not understood"):
        selector(written)


# ----------------------------------------------------------------------------------------- facts


def config(values: str) -> Json:
    return {"metadata": {"namespace": "mesh"}, "data": {"values": values}}


def test_facts_of_linkerds_own_config() -> None:
    said = facts.of(config("clusterDomain: x.org\nidentityTrustAnchorsPEM: |\n  PEM\n"))
    assert said == facts.Facts("mesh", domain="x.org", trust_domain="x.org", anchors="PEM\n")


def test_facts_that_are_none() -> None:
    with pytest.raises(UserFault, match="ConfigMap mesh/linkerd-config"):
        facts.of(config("{"))


def test_a_kubeconfig_from_elsewhere_names_no_file_of_ours(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    body = (
        "current-context: x\n"
        "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
        "clusters: [{name: x, cluster: {server: 'https://192.0.2.1'}}]\n"
        f"users: [{{name: x, user: {{tokenFile: '{secret}'}}}}]\n"
    )
    with pytest.raises(UserFault, match="tokenFile names a file"):
        Kubeconfig.of(body.encode()).access()


# -------------------------------------------------------------------------------------- gateways


def link(name: str, address: str, alive: str = "True") -> Json:
    condition = {"type": "GatewayAlive", "status": alive}
    return {
        "metadata": {"name": name},
        "spec": {"targetClusterName": name, "gatewayAddress": address},
        "status": {"conditions": [condition]},
    }


def mirror(cluster: str, **labels: str) -> Json:
    return {"metadata": {"labels": {"mirror.linkerd.io/cluster-name": cluster, **labels}}}


def test_gateways_are_listed_and_links_without_one_are_not() -> None:
    links = [
        link("cedar", "192.0.2.2", "False"),
        link("birch", "192.0.2.1"),
        link("flat", ""),
    ]
    direct = {"multicluster.linkerd.io/remote-discovery": "birch"}
    mirrors = [mirror("birch"), mirror("birch"), mirror("birch", **direct), mirror("flat")]
    found = rows(links, mirrors, {"birch": 12, "flat": 1})
    assert found == [Row("birch", True, 2, 12), Row("cedar", False, 0, None)]
    assert table(found) == (
        "CLUSTER  ALIVE    NUM_SVC      LATENCY  \n"
        "birch    True           2         12ms  \n"
        "cedar    False          0            -  \n"
    )
    assert as_json(found[0]) == {
        "clusterName": "birch", "alive": True, "numberOfServices": 2, "latency": 12,
    }  # fmt: skip

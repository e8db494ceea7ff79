"""`isthmus multicluster` and `isthmus check` between real servers, with kubectl in between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.entry import run
from isthmus.serve.kube.yaml_body import strict_yaml
from tests.interop.kubectl import Kubectl
from tests.support.server import ServerProcess
from tests.support.trusts import Ca

Capture = pytest.CaptureFixture[str]
Json = dict[str, Any]
CLUSTERS = ("hub", "east", "west")


class Worlds:
    """Servers by name. `west` trusts only one of the two anchors of the others."""

    def __init__(self, servers: Mapping[str, ServerProcess], folder: Path) -> None:
        self.servers = servers
        self._folder = folder

    def kubectl(self, name: str) -> Kubectl:
        home = self._folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        return Kubectl(self.servers[name].kubeconfig, home)

    def isthmus(self, name: str, *words: str) -> int:
        return run(["--kubeconfig", str(self.servers[name].kubeconfig), *words])


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    folder = tmp_path_factory.mktemp("linked")
    start = datetime.now(UTC) - timedelta(days=1)  # noqa: TID251  # servers look at the real time
    one, two = Ca("root.one", start=start), Ca("root.two", start=start)
    bundles = {"hub": one.pem + two.pem, "east": two.pem + one.pem, "west": one.pem}
    servers = {}
    try:
        for name in CLUSTERS:
            issuer = Ca("identity.linkerd.cluster.local", one, length=0, start=start)
            flags = []
            for flag, content in (
                ("--trust-anchors", bundles[name]),
                ("--issuer-cert", issuer.pem),
                ("--issuer-key", issuer.key_pem),
            ):
                path = folder / f"{name}{flag}.pem"
                path.write_bytes(content)
                flags += [flag, str(path)]
            server = ServerProcess(
                folder / name, "--cluster", f"{name}-itself", "--store", "memory:", *flags
            )
            servers[name] = server.__enter__()
        yield Worlds(servers, folder)
    finally:
        for each in servers.values():
            each.close()


def documents(text: str) -> list[Json]:
    assert text.endswith("---\n")
    return [
        strict_yaml(part.encode())[0] for part in re.split(r"^---\n", text, flags=re.MULTILINE)[:-1]
    ]


def printed(worlds: Worlds, capsys: Capture, name: str, *words: str) -> str:
    capsys.readouterr()
    assert worlds.isthmus(name, *words) == 0
    return capsys.readouterr().out


def apply(worlds: Worlds, name: str, text: str) -> str:
    said = worlds.kubectl(name).say("apply", "-f", "-", stdin=text)
    assert said.code == 0, said.err
    assert "Warning" not in said.err
    return said.out


def checked(worlds: Worlds, capsys: Capture, name: str, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = worlds.isthmus(name, "multicluster", "check", "--wait", "20s", *words)
    return code, capsys.readouterr().out


def test_without_links_only_what_there_is_is_checked(worlds: Worlds, capsys: Capture) -> None:
    code, out = checked(worlds, capsys, "hub")
    assert code == 0
    assert out == (
        "linkerd-multicluster\n--------------------\n√ Link CRD exists\n\n"
        "Status check results are √\n"
    )


def test_install_is_taken_by_kubectl_and_is_the_same_twice(worlds: Worlds, capsys: Capture) -> None:
    text = printed(worlds, capsys, "west", "multicluster", "install")
    kinds = [each["kind"] for each in documents(text)]
    assert "CustomResourceDefinition" not in kinds  # the API serves Links by itself
    assert kinds[:2] == ["Namespace", "Deployment"]
    assert apply(worlds, "west", text).count(" created\n") == len(kinds)
    again = printed(worlds, capsys, "west", "mc", "install")
    assert again == text
    assert apply(worlds, "west", again).count(" unchanged\n") == len(kinds)


def test_a_gateway_without_an_address_cannot_be_linked(worlds: Worlds, capsys: Capture) -> None:
    apply(worlds, "west", printed(worlds, capsys, "west", "multicluster", "install"))
    capsys.readouterr()
    assert worlds.isthmus("west", "multicluster", "link", "--cluster-name=west") == 1
    told = capsys.readouterr()
    assert told.out == ""
    about = "Gateway linkerd-gateway.linkerd-multicluster has no ingress addresses"
    assert about in told.err
    words = ("link", "--cluster-name=west", "--gateway-addresses", "192.0.2.7,gw.example.org")
    *_, link = documents(printed(worlds, capsys, "west", "multicluster", *words))
    assert link["spec"]["gatewayAddress"] == "192.0.2.7,gw.example.org"
    assert link["spec"]["gatewayPort"] == "4143"
    assert link["spec"]["probeSpec"] == {"path": "/ready", "port": "4191", "period": "3s"}
    assert link["spec"]["selector"] == {"matchLabels": {"mirror.linkerd.io/exported": "true"}}


def test_a_target_without_its_account(worlds: Worlds, capsys: Capture) -> None:
    words = ("link", "--cluster-name=x", "--gateway=false", "--service-account-name=nobody")
    capsys.readouterr()
    assert worlds.isthmus("hub", "multicluster", *words) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "could not find service account nobody" in told.err


def link(worlds: Worlds, capsys: Capture, name: str) -> list[Json]:
    """Link hub to a cluster; what was printed."""
    install = printed(worlds, capsys, name, "multicluster", "install", "--gateway=false")
    apply(worlds, name, install)
    apply(
        worlds, "hub", printed(worlds, capsys, "hub", "multicluster", "install", "--gateway=false")
    )
    words = ("multicluster", "link", "--gateway=false", f"--cluster-name={name}")
    text = printed(worlds, capsys, name, *words)
    apply(worlds, "hub", text)
    return documents(text)


def test_a_link_works_says_what_it_must_and_the_check_knows(
    worlds: Worlds, capsys: Capture
) -> None:
    first, second, made = link(worlds, capsys, "east")
    assert (first["kind"], first["metadata"]) == (
        "Secret",
        {"name": "cluster-credentials-east", "namespace": "linkerd-multicluster"},
    )
    assert second["metadata"] == {
        "name": "cluster-credentials-east",
        "namespace": "linkerd",
        "labels": {"multicluster.linkerd.io/cluster-name": "east"},
        "annotations": {
            "multicluster.linkerd.io/trust-domain": "cluster.local",
            "multicluster.linkerd.io/cluster-domain": "cluster.local",
        },
    }
    assert first["type"] == second["type"] == "mirror.linkerd.io/remote-kubeconfig"
    assert first["data"] == second["data"]
    assert made["metadata"]["annotations"]["multicluster.isthmus.dev/cluster"] == "east-itself"
    assert made["spec"] == {
        "targetClusterName": "east",
        "targetClusterDomain": "cluster.local",
        "targetClusterLinkerdNamespace": "linkerd",
        "clusterCredentialsSecret": "cluster-credentials-east",
        "remoteDiscoverySelector": {
            "matchLabels": {"mirror.linkerd.io/exported": "remote-discovery"}
        },
        "federatedServiceSelector": {"matchLabels": {"mirror.linkerd.io/federated": "member"}},
    }
    code, out = checked(worlds, capsys, "hub")
    assert code == 0, out
    assert "√ Link resources are valid\n    * east\n" in out
    assert "√ remote cluster access credentials are valid\n    * east\n" in out
    assert "√ clusters share trust anchors\n    * east\n" in out  # whatever their order
    assert "√ service mirror controllers are running\n" in out
    assert "√ account of linked clusters may read what they mirror\n" in out


def test_other_anchors_fail_the_check_and_name_the_cluster(worlds: Worlds, capsys: Capture) -> None:
    link(worlds, capsys, "east")
    link(worlds, capsys, "west")
    try:
        code, out = checked(worlds, capsys, "hub", "-o", "short")
    finally:
        text = printed(worlds, capsys, "hub", "multicluster", "unlink", "--cluster-name=west")
        said = worlds.kubectl("hub").say("delete", "-f", "-", stdin=text)
    assert said.code == 0, said.err
    assert code == 1
    assert out == (
        "linkerd-multicluster\n--------------------\n"
        "× clusters share trust anchors\n    Problematic clusters:\n        * west\n"
        "    see docs/checks.md#anchors for hints\n\nStatus check results are ×\n"
    )
    code, _ = checked(worlds, capsys, "hub")
    assert code == 0


def test_what_a_link_left_that_was_deleted_by_hand_is_unlinked(
    worlds: Worlds, capsys: Capture
) -> None:
    link(worlds, capsys, "west")
    kubectl = worlds.kubectl("hub")
    assert kubectl.within("linkerd-multicluster").say("delete", "link", "west").code == 0
    text = printed(worlds, capsys, "hub", "multicluster", "unlink", "--cluster-name=west")
    assert text.count("kind: Secret") == 2
    assert "kind: Link" not in text
    said = kubectl.say("delete", "-f", "-", stdin=text)
    assert said.code == 0, said.err
    assert worlds.isthmus("hub", "multicluster", "unlink", "--cluster-name=west") == 1
    assert "there is no link 'west'" in capsys.readouterr().err


def test_credentials_that_are_junk_name_their_cluster(worlds: Worlds, capsys: Capture) -> None:
    link(worlds, capsys, "east")
    kubectl = worlds.kubectl("hub").within("linkerd-multicluster")
    junk = json.dumps({"data": {"kubeconfig": "anVuaw=="}})
    assert kubectl.say("patch", "secret", "cluster-credentials-east", "-p", junk).code == 0
    capsys.readouterr()
    code = worlds.isthmus("hub", "multicluster", "check", "--wait", "0s", "-o", "json")
    told = json.loads(capsys.readouterr().out)
    link(worlds, capsys, "east")
    assert code == 1
    failed = {
        each["description"]: each["error"]
        for category in told["categories"]
        for each in category["checks"]
        if each["result"] == "error"
    }
    about = failed["remote cluster access credentials are valid"]
    assert "secret [linkerd-multicluster/cluster-credentials-east]" in about


def test_the_account_reads_what_it_must_and_nothing_else(worlds: Worlds, capsys: Capture) -> None:
    link(worlds, capsys, "east")
    account = "system:serviceaccount:linkerd-multicluster:"
    account += "linkerd-service-mirror-remote-access-default"
    kubectl = worlds.kubectl("east")

    def may(verb: str, *what: str) -> bool:
        return kubectl.say("auth", "can-i", verb, *what, "--as", account).code == 0

    assert may("list", "services", "-A")
    assert may("watch", "endpointslices.discovery.k8s.io", "-A")
    assert may("create", "serviceaccounts/linkerd-service-mirror-remote-access-default",
               "--subresource=token", "-n", "linkerd-multicluster")  # fmt: skip
    assert may("get", "configmaps/linkerd-config", "-n", "linkerd")
    assert not may("create", "serviceaccounts/default", "--subresource=token", "-n", "default")
    assert not may("get", "secrets", "-n", "linkerd")
    assert not may("update", "services", "-n", "default")
    assert not may("get", "configmaps/other", "-n", "linkerd")


def test_the_check_of_a_cluster(worlds: Worlds, capsys: Capture) -> None:
    link(worlds, capsys, "east")
    capsys.readouterr()
    assert worlds.isthmus("hub", "check", "--proxy", "--wait", "20s") == 0
    out = capsys.readouterr().out
    titles = re.findall(r"^([a-z-]+)\n-+$", out, re.MULTILINE)
    assert titles == [
        "kubernetes-api", "kubernetes-version", "gateway-api-crd", "linkerd-existence",
        "linkerd-config", "linkerd-identity", "control-plane-version", "isthmus-objects",
        "linkerd-data-plane", "linkerd-multicluster", "linkerd-multicluster-access",
    ]  # fmt: skip
    assert "√ issuer cert is issued by the trust anchor\n" in out
    assert out.endswith("Status check results are √\n")
    assert worlds.isthmus("hub", "check", "-o", "short") == 0
    assert capsys.readouterr().out == "Status check results are √\n"


def test_a_cluster_that_is_not_there(capsys: Capture, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "current-context: x\ncontexts: [{name: x, context: {cluster: x}}]\n"
        "clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]\n"
    )
    assert run(["--kubeconfig", str(kubeconfig), "check"]) == 1
    out = capsys.readouterr().out
    assert "√ can initialize the client\n× can query the Kubernetes API\n" in out
    assert out.endswith("see docs/checks.md#api for hints\n\nStatus check results are ×\n")

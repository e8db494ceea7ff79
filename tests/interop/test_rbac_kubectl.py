"""Roles, tokens and impersonation with the real kubectl against a real server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.interop.kubectl import Kubectl
from tests.support.server import ServerProcess

NUMBERS = count()
UNKNOWN = "You must be logged in to the server"


class World(NamedTuple):
    """One server, its administrator, and where its files are."""

    server: ServerProcess
    admin: Kubectl
    home: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("rbac")
    with ServerProcess(home / "data") as server:
        yield World(server, Kubectl(server.kubeconfig, home), home)


@pytest.fixture
def kubectl(world: World) -> Kubectl:
    """The administrator, in a namespace of its own."""
    namespace = f"test-{next(NUMBERS)}"
    world.admin("create", "ns", namespace)
    return world.admin.within(namespace)


def namespace_of(kubectl: Kubectl) -> str:
    [name] = [word for word in kubectl._fixed if word.startswith("test-")]  # noqa: SLF001
    return name


def as_bearer(world: World, namespace: str, token: str) -> Kubectl:
    """kubectl with a kubeconfig of its own that holds nothing but a token."""
    config = yaml.safe_load(world.server.kubeconfig.read_text())  # noqa: TID251
    config["users"] = [{"name": "bearer", "user": {"token": token}}]
    config["contexts"][0]["context"] |= {"user": "bearer", "namespace": namespace}
    path = world.home / f"bearer-{next(NUMBERS)}"
    path.write_text(yaml.safe_dump(config))
    return Kubectl(path, world.home)


# ----------------------------------------------------------------------------- who am I, may I


def test_whoami(kubectl: Kubectl) -> None:
    shown = kubectl("auth", "whoami", "-o", "json")
    info = json.loads(shown)["status"]["userInfo"]
    assert info["username"] == "isthmus-admin"
    assert "system:masters" in info["groups"]
    worn = kubectl(
        "auth", "whoami", "--as", "eve", "--as-group", "devs", "--as-uid", "7", "-o", "json"
    )
    info = json.loads(worn)["status"]["userInfo"]
    assert info == {"username": "eve", "uid": "7", "groups": ["devs", "system:authenticated"]}


def test_can_i(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,pods/log")
    kubectl("create", "role", "one", "--verb=get", "--resource=secrets", "--resource-name=mine")
    for role in ("reader", "one"):
        kubectl("create", "rolebinding", role, f"--role={role}", "--user=eve")

    def can(*words: str) -> str:
        said = kubectl.say("auth", "can-i", *words, "--as", "eve")
        assert said.code == (0 if said.out.strip() == "yes" else 1), said.err
        return said.out.strip()

    assert can("list", "pods") == "yes"
    assert can("get", "pods", "--subresource=log") == "yes"
    assert can("delete", "pods") == "no"
    assert can("get", "secrets/mine") == "yes"
    assert can("get", "secrets/yours") == "no"
    assert can("list", "secrets") == "no"
    assert can("list", "pods", "-A") == "no"
    assert can("list", "pods", "-n", "default") == "no"
    assert can("get", "/version") == "yes"
    assert can("get", "/metrics") == "no"
    assert can("*", "*") == "no"
    assert kubectl("auth", "can-i", "*", "*").strip() == "yes"


def test_can_i_list(kubectl: Kubectl) -> None:
    kubectl("create", "role", "r", "--verb=get", "--resource=configmaps", "--resource-name=x")
    kubectl("create", "rolebinding", "r", "--role=r", "--user=eve")
    lines = kubectl("auth", "can-i", "--list", "--as", "eve").splitlines()
    assert lines[0].split() == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    rows = [" ".join(line.split()) for line in lines[1:]]
    assert "configmaps [] [x] [get]" in rows
    assert "selfsubjectaccessreviews.authorization.k8s.io [] [] [create]" in rows
    assert "[/version] [] [get]" in rows
    everything = kubectl("auth", "can-i", "--list")
    assert "*.*" in everything
    assert "[*]" in everything


# ------------------------------------------------------------------------- roles and bindings


def test_roles_and_bindings_are_made_shown_and_reconciled(kubectl: Kubectl) -> None:
    name = namespace_of(kubectl)
    kubectl(
        "create", "clusterrole", f"{name}-view", "--verb=get,list,watch",
        "--resource=servers.policy.linkerd.io,deployments.apps",
    )  # fmt: skip
    kubectl("create", "clusterrole", f"{name}-url", "--verb=get", "--non-resource-url=/metrics")
    kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}-view", "--group=devs",
        f"--serviceaccount={name}:default",
    )  # fmt: skip
    shown = kubectl("get", "clusterrolebinding", name, "-o", "wide", "--no-headers").split()
    assert shown[1] == f"ClusterRole/{name}-view"
    assert shown[-2:] == ["devs", f"{name}/default"]
    assert "servers.policy.linkerd.io" in kubectl("describe", "clusterrole", f"{name}-view")
    can = kubectl("auth", "can-i", "list", "servers.policy.linkerd.io", "--as=x", "--as-group=devs")
    assert can.strip() == "yes"
    account = f"system:serviceaccount:{name}:default"
    assert (
        kubectl("auth", "can-i", "watch", "deployments", "-A", f"--as={account}").strip() == "yes"
    )
    manifest = kubectl("get", "clusterrole", f"{name}-view", "-o", "yaml")
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=manifest)
    gathering = f"{name}-all"
    kubectl("create", "clusterrole", gathering, "--aggregation-rule=" + f"test={name}")
    kubectl("label", "clusterrole", f"{name}-view", f"test={name}")
    kubectl(
        "wait", f"clusterrole/{gathering}", "--for=jsonpath={.rules[0].verbs[0]}=get",
        "--timeout=20s",
    )  # fmt: skip


def test_default_roles(kubectl: Kubectl) -> None:
    name = namespace_of(kubectl)
    for role in ("view", "edit", "admin"):
        kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")
    answers = {
        role: [
            kubectl.say("auth", "can-i", *question.split(), "--as", role).out.strip()
            for question in (
                "list pods", "watch servers.policy.linkerd.io", "get secrets",
                "create httproutes.gateway.networking.k8s.io", "create rolebindings",
                "list nodes",
            )
        ]
        for role in ("view", "edit", "admin")
    }  # fmt: skip
    assert answers == {
        "view": ["yes", "yes", "no", "no", "no", "no"],
        "edit": ["yes", "yes", "yes", "yes", "no", "no"],
        "admin": ["yes", "yes", "yes", "yes", "yes", "no"],
    }
    kubectl("delete", "clusterrole", "view")
    kubectl("get", "clusterrole", "cluster-admin", "admin", "edit", "system:discovery")
    kubectl("wait", "clusterrole/view", "--for=create", "--timeout=20s")
    kubectl("wait", "clusterrole/view", "--for=jsonpath={.rules[0].verbs[0]}=get", "--timeout=20s")
    assert kubectl("auth", "can-i", "list", "pods", "--as", "view", "-n", name).strip() == "yes"


def test_escalation_is_refused(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "a", "--clusterrole=admin", "--user=eve")
    as_eve = ("--as", "eve")
    kubectl("create", "role", "fine", "--verb=get", "--resource=secrets", *as_eve)
    kubectl("create", "rolebinding", "fine", "--clusterrole=view", "--user=bob", *as_eve)
    refused = kubectl.fails("create", "role", "no", "--verb=get", "--resource=nodes", *as_eve)
    assert "Error from server (Forbidden)" in refused
    assert "attempting to grant RBAC permissions not currently held" in refused
    refused = kubectl.fails(
        "create", "rolebinding", "no", "--clusterrole=cluster-admin", "--user=eve", *as_eve
    )
    assert "not currently held" in refused
    refused = kubectl.fails("create", "clusterrole", "no", "--verb=get", "--resource=pods", *as_eve)
    assert 'cannot create resource "clusterroles" in API group "rbac' in refused


# -------------------------------------------------------------------------------------- tokens


def test_a_restricted_account_may_what_it_may_and_is_refused_the_rest(
    world: World, kubectl: Kubectl
) -> None:
    name = namespace_of(kubectl)
    kubectl("create", "serviceaccount", "bot")
    kubectl("create", "configmap", "seen", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "hidden", "--from-literal=password=hunter2")
    kubectl("create", "role", "bot", "--verb=get,list,create", "--resource=configmaps")
    kubectl("create", "rolebinding", "bot", "--role=bot", f"--serviceaccount={name}:bot")
    token = kubectl("create", "token", "bot", "--duration=20m").strip()
    bot = as_bearer(world, name, token)
    assert "seen" in bot("get", "configmaps")
    bot("create", "configmap", "made", "--from-literal=x=y")
    refusals = [
        bot.fails("get", "secret", "hidden"),
        bot.fails("get", "secret", "missing"),
        bot.fails("delete", "configmap", "seen"),
        bot.fails("get", "configmaps", "-A"),
        bot.fails("get", "nodes"),
        bot.fails("create", "token", "bot"),
    ]
    assert all(" is forbidden: User " in each for each in refusals), refusals
    worn = bot.fails("get", "configmaps", "--as", "system:admin")
    assert 'cannot impersonate resource "users"' in worn
    user = f"system:serviceaccount:{name}:bot"
    assert refusals[0] == (
        f'Error from server (Forbidden): secrets "hidden" is forbidden: User "{user}" cannot get '
        f'resource "secrets" in API group "" in the namespace "{name}"\n'
    )
    assert refusals[1] == refusals[0].replace("hidden", "missing")
    assert user in bot("auth", "whoami")
    kubectl("delete", "serviceaccount", "bot")
    assert UNKNOWN in bot.fails("get", "configmaps")


def test_create_token_with_audience_bound_object_and_flag(world: World, kubectl: Kubectl) -> None:
    name = namespace_of(kubectl)
    kubectl("create", "serviceaccount", "bot")
    kubectl("create", "secret", "generic", "s")
    token = kubectl(
        "create", "token", "bot", "--audience=vault", "--audience=mesh",
        "--bound-object-kind=Secret", "--bound-object-name=s",
    ).strip()  # fmt: skip
    middle = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    assert claims["aud"] == ["vault", "mesh"]
    assert claims["kubernetes.io"]["secret"]["name"] == "s"
    nobody = as_bearer(world, name, token)
    assert UNKNOWN in nobody.fails("get", "configmaps")
    for_api = kubectl("create", "token", "bot").strip()
    bot = as_bearer(world, name, "not.a.token")
    assert f"{name}:bot" in bot("auth", "whoami", f"--token={for_api}")


def test_a_kept_token(world: World, kubectl: Kubectl) -> None:
    name = namespace_of(kubectl)
    kubectl("create", "serviceaccount", "bot")
    secret = """
apiVersion: v1
kind: Secret
metadata: {name: kept, annotations: {kubernetes.io/service-account.name: bot}}
type: kubernetes.io/service-account-token
"""
    kubectl("apply", "-f", "-", stdin=secret)
    kubectl("wait", "secret/kept", "--for=jsonpath={.data.token}", "--timeout=20s")
    data = kubectl.read("secret", "kept")["data"]
    assert base64.b64decode(data["namespace"]).decode() == name
    assert b"BEGIN CERTIFICATE" in base64.b64decode(data["ca.crt"])
    bot = as_bearer(world, name, base64.b64decode(data["token"]).decode())
    assert f"{name}:bot" in bot("auth", "whoami")
    kubectl("delete", "serviceaccount", "bot")
    kubectl("wait", "secret/kept", "--for=delete", "--timeout=20s")
    assert UNKNOWN in bot.fails("auth", "whoami")


def test_keys_are_rotated_without_a_restart(world: World, kubectl: Kubectl) -> None:
    name = namespace_of(kubectl)
    kubectl("create", "serviceaccount", "bot")
    before = kubectl("create", "token", "bot").strip()
    keys = json.loads(kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]
    (world.server.home / "ca" / "rotate").touch()
    for _ in range(600):  # it looks every five seconds
        after = kubectl("create", "token", "bot").strip()
        if after.split(".")[0] != before.split(".")[0]:
            break
    else:
        pytest.fail("the key was never rotated")
    for token in (before, after):
        assert f"{name}:bot" in as_bearer(world, name, token)("auth", "whoami")
    assert len(json.loads(kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]) == len(keys) + 1


# --------------------------------------------------------------------------------------- audit


def test_writes_and_refusals_are_in_the_audit_and_no_secret_is(
    world: World, kubectl: Kubectl
) -> None:
    kubectl("create", "secret", "generic", "s", "--from-literal=password=hunter2")
    kubectl.fails("get", "secret", "s", "--as", "mallory")
    kubectl("create", "serviceaccount", "bot")
    token = kubectl("create", "token", "bot").strip()
    kubectl("get", "secret", "s")
    path = world.server.home / "audit.log"
    name = namespace_of(kubectl)

    def mine() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [line for line in lines if line.get("namespace") == name]

    for _ in range(100):
        if [line for line in mine() if line.get("subresource") == "token"]:
            break
        kubectl("get", "ns", name)
    found = mine()
    said = [(one["user"]["name"], one["verb"], one["resource"], one["verdict"]) for one in found]
    assert ("isthmus-admin", "create", "secrets", "allowed") in said
    assert ("mallory", "get", "secrets", "refused") in said
    assert ("isthmus-admin", "get", "secrets", "allowed") not in said
    refused = next(line for line in found if line["verdict"] == "refused")
    assert refused["by"]["name"] == "isthmus-admin"
    assert refused["uri"].startswith(f"/api/v1/namespaces/{name}/secrets/s")
    text = path.read_text() + world.server.log
    assert "hunter2" not in text
    assert base64.b64encode(b"hunter2").decode() not in text
    assert token not in text
    assert path.stat().st_mode & 0o777 == 0o600


def test_files_of_a_server_are_closed_to_others(world: World) -> None:
    public = {"ca.crt", "endpoints.json"}
    home = world.server.home
    assert home.stat().st_mode & 0o077 == 0
    for path in home.rglob("*"):
        mode = path.stat().st_mode & 0o777
        allowed = 0o700 if path.is_dir() else 0o644 if path.name in public else 0o600
        assert mode & ~allowed == 0, (path.name, oct(mode))


def test_no_key_is_told_by_any_surface(world: World, kubectl: Kubectl) -> None:
    told = [
        kubectl("get", "configmaps,secrets,serviceaccounts", "-A", "-o", "json"),
        kubectl("get", "--raw", "/openid/v1/jwks"),
        world.server.admin("/metrics")[1],
        world.server.log,
    ]
    for text in told:
        assert "PRIVATE KEY" not in text
        assert base64.b64encode(b"-----BEGIN PRIV")[:-2].decode() not in text

"""Environment, volumes and name resolution of containers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.errors import NotFound
from isthmus.lab.pods.api import Document
from isthmus.lab.pods.environment import environment
from isthmus.lab.pods.naming import Naming
from isthmus.lab.pods.sources import ConfigError, Where, field
from isthmus.lab.pods.volumes import ACCOUNT, Volumes

WHERE = Where(node="n1", host_ip="10.0.0.1", pod_ip="10.1.0.1", api_host="10.9.0.1")
POD: Document = {
    "metadata": {
        "name": "p", "namespace": "ns", "uid": "u", "labels": {"b": 'x"y', "a": "1"},
        "annotations": {"k": "v"},
    },
    "spec": {"serviceAccountName": "me", "containers": []},
}  # fmt: skip


class Held:
    """Objects at hand."""

    def __init__(self, maps: Mapping[str, Document], secrets: Mapping[str, Document]) -> None:
        self.maps = dict(maps)
        self.secrets = dict(secrets)
        self.tokens: list[tuple[str, int]] = []

    async def config_map(self, namespace: str, name: str) -> Document:
        return self._of(self.maps, name)

    async def secret(self, namespace: str, name: str) -> Document:
        return self._of(self.secrets, name)

    def _of(self, held: Mapping[str, Document], name: str) -> Document:
        if name not in held:
            raise NotFound(f"{name} not found")
        return held[name]

    async def token(self, pod: Document, audience: str, seconds: int) -> str:
        self.tokens.append((audience, seconds))
        return f"token {len(self.tokens)}"


@pytest.fixture
def held() -> Held:
    secret = base64.b64encode(b"sesame").decode()
    data = {"greeting": "hello", "bad\0name": "x"}
    maps: dict[str, Document] = {
        "conf": {"data": data, "binaryData": {"raw": "/w=="}},
        "kube-root-ca.crt": {"data": {"ca.crt": "CA"}},
    }
    return Held(maps, {"hidden": {"data": {"word": secret}}})


async def variables(held: Held, *env: Document, **spec: object) -> dict[str, str]:
    return await environment({"name": "c", "env": list(env), **spec}, POD, WHERE, held)


def ref(kind: str, **value: object) -> Document:
    return {"name": "X", "valueFrom": {kind: value}}


async def test_values_refer_to_what_stands_before_them(held: Held) -> None:
    found = await variables(
        held, {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C"}
    )
    assert (found["B"], found["C"]) == ("1$(C)", "")
    assert found["KUBERNETES_SERVICE_HOST"] == "10.9.0.1"
    assert found["KUBERNETES_PORT_443_TCP_ADDR"] == "10.9.0.1"
    assert found["HOSTNAME"] == "p"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (ref("fieldRef", fieldPath="metadata.name"), "p"),
        (ref("fieldRef", fieldPath="metadata.labels['a']"), "1"),
        (ref("fieldRef", fieldPath="metadata.annotations['none']"), ""),
        (ref("fieldRef", fieldPath="status.podIP"), "10.1.0.1"),
        (ref("fieldRef", fieldPath="status.hostIP"), "10.0.0.1"),
        (ref("configMapKeyRef", name="conf", key="greeting"), "hello"),
        (ref("secretKeyRef", name="hidden", key="word"), "sesame"),
        (ref("configMapKeyRef", name="conf", key="none", optional=True), None),
        (ref("configMapKeyRef", name="none", key="none", optional=True), None),
    ],
)
async def test_references(held: Held, variable: Document, value: str | None) -> None:
    assert (await variables(held, variable)).get("X") == value


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        (ref("configMapKeyRef", name="none", key="k"), 'configmap "none" not found'),
        (ref("secretKeyRef", name="hidden", key="k"), "couldn't find key k in Secret ns/hidden"),
        (ref("fieldRef", fieldPath="status.phase"), "fieldPath 'status.phase' is not supported"),
    ],
)
async def test_references_to_nothing(held: Held, variable: Document, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        await variables(held, variable)


async def test_all_of_a_config_map_with_a_prefix_but_no_names_that_cannot_be(held: Held) -> None:
    found = await variables(held, envFrom=[{"prefix": "P_", "configMapRef": {"name": "conf"}}])
    assert found["P_greeting"] == "hello"
    assert not any("\0" in name for name in found)


async def test_requests_and_limits(held: Held) -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {}}
    cpu = {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    memory = {
        "name": "M",
        "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
    }
    found = await variables(held, cpu, memory, resources=resources)
    assert (found["C"], found["M"]) == ("2", "1024")


def test_labels_as_a_file() -> None:
    assert field(POD, WHERE, "metadata.labels") == 'a="1"\nb="x\\"y"'


# ------------------------------------------------------------------------------------------ volumes


def volumes(held: Held, folder: Path, *specs: Document) -> Volumes:
    pod = {**POD, "spec": {**POD["spec"], "volumes": list(specs)}}
    return Volumes(pod, WHERE, held, folder)


async def test_files_of_objects_are_replaced_in_one_step(held: Held, tmp_path: Path) -> None:
    found = volumes(
        held, tmp_path, {"name": "v", "configMap": {"name": "conf", "defaultMode": 0o600}}
    )
    held.maps["conf"] = {"data": {"one": "1", "two": "2"}}
    await found.prepare()
    folder = tmp_path / "v"
    assert (folder / "one").read_text() == "1"
    assert (folder / "one").stat().st_mode & 0o777 == 0o600
    before = (folder / "..data").resolve()
    held.maps["conf"] = {"data": {"two": "new"}}
    await found.prepare()
    assert (folder / "two").read_text() == "new"
    assert not (folder / "one").exists()
    assert not before.exists()


async def test_keys_are_chosen_and_named(held: Held, tmp_path: Path) -> None:
    item = {"key": "greeting", "path": "in/here.txt", "mode": 0o640}
    found = volumes(held, tmp_path, {"name": "v", "configMap": {"name": "conf", "items": [item]}})
    await found.prepare()
    assert (tmp_path / "v/in/here.txt").read_text() == "hello"
    assert [each.name for each in (tmp_path / "v").iterdir() if not each.name.startswith("..")] == [
        "in"
    ]


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b"])
async def test_a_file_never_leaves_its_volume(held: Held, tmp_path: Path, path: str) -> None:
    item = {"key": "greeting", "path": path}
    found = volumes(held, tmp_path, {"name": "v", "configMap": {"name": "conf", "items": [item]}})
    with pytest.raises(ConfigError, match="cannot be a file of a volume"):
        await found.prepare()


async def test_projected_sources_come_together(held: Held, tmp_path: Path) -> None:
    sources = [
        {"serviceAccountToken": {"path": "token", "audience": "a", "expirationSeconds": 600}},
        {"configMap": {"name": "conf", "items": [{"key": "greeting", "path": "g"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    found = volumes(held, tmp_path, {"name": "v", "projected": {"sources": sources}})
    await found.prepare()
    assert ("a", 600) in held.tokens
    assert (tmp_path / "v/token").read_text().startswith("token ")
    assert (tmp_path / "v/g").read_text() + (tmp_path / "v/n").read_text() == "hellons"


async def test_every_pod_gets_its_account_unless_it_says_no(held: Held, tmp_path: Path) -> None:
    found = volumes(held, tmp_path)
    await found.prepare()
    [mount] = found.mounts({"name": "c"})
    assert (mount.target, mount.read_only) == (ACCOUNT, True)
    assert shown(mount.source) == ["ca.crt", "namespace", "token"]
    silent = Volumes(
        {**POD, "spec": {"automountServiceAccountToken": False}}, WHERE, held, tmp_path / "b"
    )
    assert silent.mounts({"name": "c"}) == []


def shown(folder: str) -> list[str]:
    return sorted(each.name for each in Path(folder).iterdir() if each.name[0] != ".")


async def test_volumes_that_a_lab_does_not_have(held: Held, tmp_path: Path) -> None:
    found = volumes(held, tmp_path, {"name": "v", "persistentVolumeClaim": {"claimName": "c"}})
    with pytest.raises(ConfigError, match="a lab has no persistentVolumeClaim"):
        await found.prepare()
    with pytest.raises(ConfigError, match="there is no volume 'w'"):
        found.mounts({"volumeMounts": [{"name": "w", "mountPath": "/w"}]})


# ------------------------------------------------------------------------------------------- naming


def test_name_resolution_by_policy() -> None:
    naming = Naming("10.9.0.10", "cluster.local", {"color": "198.51.100.2"})
    pod: Document = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "hostname": "h", "subdomain": "s",
            "dnsConfig": {"searches": ["x.org"], "options": [{"name": "ndots", "value": "2"}]},
            "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}],
        },
    }  # fmt: skip
    files = naming.files(pod, WHERE)
    assert files["resolv.conf"] == (
        "nameserver 10.9.0.10\n"
        "search ns.svc.cluster.local svc.cluster.local cluster.local x.org\n"
        "options ndots:2\n"
    )
    lines = files["hosts"].splitlines()
    assert "10.1.0.1 h.s.ns.svc.cluster.local h" in lines
    assert "198.51.100.2 color" in lines
    assert "1.2.3.4 a b" in lines
    own = {**pod, "spec": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"]}}}
    assert naming.files(own, WHERE)["resolv.conf"] == "nameserver 9.9.9.9\n"

"""Files and the ConfigMap by which others find a server."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import yaml
from cryptography import x509

from isthmus import ca
from isthmus.aio import ManualClock
from isthmus.app import addresses, announce, certificates
from isthmus.config import ServerConfig, resolve
from isthmus.config.values import HostPort
from isthmus.errors import UserFault
from isthmus.model.key import Key
from isthmus.store import Memory
from isthmus.store.codec import document
from isthmus.store.objects import Objects
from tests.support.log import ListLog

ENDPOINTS = {"kube": HostPort("0.0.0.0", 41234), "admin": HostPort("::1", 9990)}


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    flags = {"data_dir": str(tmp_path), "cluster": "east", "context_name": "k3d-east"}
    return resolve(flags, {"HOME": "/nowhere"})


def test_the_files(config: ServerConfig) -> None:
    held, _ = certificates.load(config, ManualClock())
    announce.write_files(config, ENDPOINTS, held)
    home = config.data_dir
    assert json.loads((home / "endpoints.json").read_text()) == {
        "kube": "0.0.0.0:41234",
        "admin": "[::1]:9990",
    }
    kubeconfig = home / "kubeconfig"
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    read = yaml.safe_load(kubeconfig.read_text())  # noqa: TID251
    assert read["current-context"] == "k3d-east"
    assert read["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:41234"
    announce.withdraw(config)
    announce.withdraw(config)
    assert not (home / "endpoints.json").exists()
    assert kubeconfig.exists()


def test_without_the_api_there_is_no_kubeconfig(config: ServerConfig) -> None:
    held, _ = certificates.load(config, ManualClock())
    announce.write_files(config, {"admin": ENDPOINTS["admin"]}, held)
    assert not (config.data_dir / "kubeconfig").exists()


def test_a_place_that_cannot_be_written_is_named(config: ServerConfig) -> None:
    held, _ = certificates.load(config, ManualClock())
    (config.data_dir / "endpoints.json").mkdir()
    with pytest.raises(UserFault, match=f"cannot write in {config.data_dir}"):
        announce.write_files(config, ENDPOINTS, held)
    with pytest.raises(UserFault, match=f"cannot write in {config.data_dir}"):
        announce.withdraw(config)


@pytest.mark.anyio
async def test_the_config_map_is_made_and_then_kept_true(config: ServerConfig) -> None:
    store, clock = Memory(), ManualClock()
    objects = Objects(store, clock=clock, random=Random(1))
    await announce.publish(objects, config, ENDPOINTS)
    assert await store.get(Key("namespaces", "", "linkerd"))
    for endpoints in (ENDPOINTS, {"kube": HostPort("127.0.0.1", 1)}):
        await announce.publish(objects, config, endpoints)
        record = await store.get(Key("configmaps", "linkerd", "isthmus-endpoints"))
        assert record is not None
        texts = {name: str(at) for name, at in endpoints.items()}
        assert document(record.value, record.revision)["data"] == texts


def sans(pem: bytes) -> list[str]:
    held = x509.load_pem_x509_certificate(pem).extensions
    value = held.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in value]


def test_the_servers_certificate_answers_to_all_its_names(config: ServerConfig) -> None:
    certificates.load(config, ManualClock())
    path = config.data_dir / "ca" / "server.pem"
    assert path.stat().st_mode & 0o777 == 0o600
    assert {
        "127.0.0.1",
        "::1",
        "localhost",
        "10.96.0.1",
        "kubernetes.default.svc.cluster.local",
    } <= set(sans(path.read_bytes()))


@pytest.mark.anyio
async def test_certificates_are_renewed_in_time(config: ServerConfig) -> None:
    import asyncio  # noqa: PLC0415

    clock, log = ManualClock(), ListLog()
    held, _ = certificates.load(config, clock)
    path, renewed = config.data_dir / "ca" / "server.pem", []
    first = path.read_bytes()
    task = asyncio.get_running_loop().create_task(
        held.run(lambda: renewed.append(path.read_bytes()), log)
    )
    day = 86400
    await clock.turn(240 * day)
    assert renewed == []
    await clock.turn(10 * day)
    assert len(renewed) == 1
    assert renewed[0] != first
    task.cancel()


def test_secrets_outlive_a_restart_and_differ_by_purpose(config: ServerConfig) -> None:
    one, _ = certificates.load(config, ManualClock())
    two, _ = certificates.load(config, ManualClock())
    assert one.secret("a") == two.secret("a")
    assert one.secret("a") != one.secret("b")
    assert isinstance(one.authority, ca.Authority)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_listener_on_all_addresses_is_certified_for_each(host: str, tmp_path: Path) -> None:
    at = str(HostPort(host, 0))
    config = resolve({"data_dir": str(tmp_path), "listen": (f"kube={at}",)}, {"HOME": "/nowhere"})
    names = certificates.server_names(config)
    assert host not in names
    assert {*addresses.own(), "127.0.0.1", "::1", "localhost"} <= set(names)
    certificates.load(config, ManualClock())

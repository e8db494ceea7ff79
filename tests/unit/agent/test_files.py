from __future__ import annotations

import json
from pathlib import Path

from isthmus.agent.credential import Held
from isthmus.agent.files import Directory, in_memory
from isthmus.ca import server_leaf
from tests.support.trusts import NOW, ordinary


def held() -> Held:
    trust = ordinary()
    return Held(server_leaf(trust, ("a.b",), now=NOW), trust.bundle)


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "proxy", None)
    directory.make()
    directory.write(held())
    directory.write_bootstrap(b"{}")
    for path in (directory.path, *directory.path.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    directory.remove()
    directory.remove()
    assert not directory.path.exists()


def test_key_and_chain_come_to_envoy_in_one_file(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "proxy", None)
    directory.make()
    now = held()
    directory.write(now)
    (secret,) = json.loads((directory.path / "identity" / "default.yaml").read_text())["resources"]
    certificate = secret["tls_certificate"]
    assert certificate["private_key"]["inline_string"].encode() == now.leaf.key
    assert certificate["certificate_chain"]["inline_string"].encode() == now.leaf.certificate


def test_what_did_not_change_is_not_written(tmp_path: Path) -> None:
    """Envoy looks again at every rename, and forgets its sessions."""
    directory = Directory(tmp_path / "proxy", None)
    directory.make()
    now = held()
    directory.write(now)
    home = directory.path / "identity"
    before = {path: path.stat().st_ino for path in home.iterdir()}
    directory.write(now)
    assert {path: path.stat().st_ino for path in home.iterdir()} == before
    other = held()
    directory.write(now._replace(leaf=other.leaf))
    assert (home / "ROOTCA.yaml").stat().st_ino == before[home / "ROOTCA.yaml"]
    assert (home / "default.yaml").stat().st_ino != before[home / "default.yaml"]


def test_what_was_left_of_another_life_is_gone(tmp_path: Path) -> None:
    directory = Directory(tmp_path / "proxy", None)
    directory.make()
    (directory.path / "stale").touch()
    directory.make()
    assert not (directory.path / "stale").exists()


def test_memory_is_told_from_disks() -> None:
    table = "/dev/sda / ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n/dev/sdb /run/disk ext4 rw 0 0\n"
    assert in_memory(Path("/run/isthmus"), table)
    assert not in_memory(Path("/run/disk/x"), table)
    assert not in_memory(Path("/runner"), table)

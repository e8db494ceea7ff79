"""The names of this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from isthmus.app import addresses

TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 169.254.1.7
        /32 host LOCAL
     |-- 192.0.2.9
        /32 host LOCAL
     |-- 192.0.2.255
        /32 link BROADCAST
"""
LIST = """\
20010db8000000000000000000000002 04 40 00 82     eth0
00000000000000000000000000000001 01 80 10 80       lo
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
"""


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernel's tables are read from."""
    monkeypatch.setattr(addresses, "IPV4", tmp_path / "4")
    monkeypatch.setattr(addresses, "IPV6", tmp_path / "6")
    monkeypatch.setattr(socket, "gethostname", lambda: "east-1.example")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "is_everywhere"),
    [("0.0.0.0", True), ("::", True), ("127.0.0.1", False), ("localhost", False), ("", False)],
)
def test_which_hosts_stand_for_all(host: str, is_everywhere: bool) -> None:
    assert addresses.everywhere(host) is is_everywhere


def test_the_name_and_the_addresses_that_others_reach(tables: Path) -> None:
    (tables / "4").write_text(TRIE)
    (tables / "6").write_text(LIST)
    assert addresses.own() == ("east-1.example", "192.0.2.9", "2001:db8::2")


def test_a_machine_that_does_not_tell(tables: Path) -> None:
    assert not list(tables.iterdir())
    assert addresses.own() == ("east-1.example",)


@pytest.mark.parametrize("name", ["", "a_b", "x" * 65, "-a", "a-", "*", "ä"])
def test_a_name_that_no_certificate_can_hold(
    tables: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tables / "4").write_text(TRIE)
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    assert addresses.own() == ("192.0.2.9",)


def test_thousands_of_addresses_are_cut_short(tables: Path) -> None:
    lines = [f"     |-- 10.0.{i // 256}.{i % 256}\n        /32 host LOCAL\n" for i in range(1000)]
    (tables / "4").write_text("".join(lines))
    assert len(addresses.own()) == addresses.MOST


def test_of_this_very_machine() -> None:
    """An address that a connection of ours goes out from is one of them, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no way out")
        assert probe.getsockname()[0] in addresses.own()

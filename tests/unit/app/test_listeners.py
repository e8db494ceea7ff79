"""Sockets: real addresses, and what is said of those that cannot be had."""

from __future__ import annotations

import pytest

from isthmus.app import listeners
from isthmus.config.values import HostPort
from isthmus.errors import UserFault


def test_port_zero_takes_a_free_one() -> None:
    with listeners.bind("kube", HostPort("127.0.0.1", 0)) as listening:
        at = listeners.bound(listening)
        assert at.host == "127.0.0.1"
        assert at.port > 0


def test_a_name_is_resolved_to_one_address() -> None:
    with listeners.bind("kube", HostPort("localhost", 0)) as listening:
        assert listeners.bound(listening).host in ("127.0.0.1", "::1")


def test_a_taken_port_says_which_flag_helps() -> None:
    with listeners.bind("kube", HostPort("127.0.0.1", 0)) as listening:
        at = listeners.bound(listening)
        with pytest.raises(UserFault) as told:
            listeners.bind("admin", at)
    assert told.value.message == (
        f"the address {at} of listener admin is taken; choose another with "
        "--listen admin=HOST:PORT (port 0 takes any free one)"
    )


def test_a_foreign_address() -> None:
    with pytest.raises(UserFault, match="not an address of this machine"):
        listeners.bind("kube", HostPort("192.0.2.1", 0))


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 80])
def test_an_unknown_name(host: str) -> None:
    with pytest.raises(UserFault, match="is not known"):
        listeners.bind("kube", HostPort(host, 0))


@pytest.mark.parametrize(
    ("host", "reached"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.1.2.3", "10.1.2.3")],
)
def test_what_listens_everywhere_is_reached_on_loopback(host: str, reached: str) -> None:
    assert listeners.reachable(HostPort(host, 6443)) == HostPort(reached, 6443)

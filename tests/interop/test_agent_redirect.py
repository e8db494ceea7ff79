"""Redirect rules against a real kernel: who ends up where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isthmus.agent import redirect
from isthmus.agent.process import MARK, PROXY_UID
from isthmus.agent.redirect import Rules
from isthmus.errors import UserFault
from isthmus.lab.network.namespace import Namespace
from tests.support import netns
from tests.support.netns import ADDRESS

RULES = Rules(PROXY_UID, None, skip_outbound=((25, 26),), skip_subnets=("10.9.9.0/24",))
VIP = "10.96.0.1"
PORTS = (25, 80, 4140, 4143)


@pytest.fixture(scope="module")
def inside() -> Iterator[Namespace]:
    with netns.pod() as made:
        for port in PORTS:
            netns.serve(made, port)
        yield made


@pytest.fixture
def ruled(inside: Namespace) -> Iterator[Namespace]:
    with inside.entered():
        redirect.install(RULES)
    yield inside
    with inside.entered():
        redirect.remove()


def test_an_app_is_led_to_the_proxy(ruled: Namespace) -> None:
    assert netns.ask(ruled, VIP, 80) == "4140"
    assert netns.ask(ruled, "192.0.2.1", 443) == "4140"


def test_loopback_is_the_apps_own(ruled: Namespace) -> None:
    assert netns.ask(ruled, "127.0.0.1", 80) == "80"


def test_skipped_networks_are_not_led(ruled: Namespace) -> None:
    assert netns.ask(ruled, ADDRESS, 80) == "80"


def test_a_skipped_port_is_not_led(ruled: Namespace) -> None:
    assert netns.ask(ruled, VIP, 25) != "4140"


def test_the_proxy_reaches_the_app_and_itself(ruled: Namespace) -> None:
    assert netns.ask(ruled, ADDRESS, 80, uid=PROXY_UID, source="127.0.0.6") == "80"
    assert netns.ask(ruled, ADDRESS, 80, uid=PROXY_UID) == "4143"
    assert netns.ask(ruled, "127.0.0.1", 80, uid=PROXY_UID) == "80"


def test_an_app_cannot_claim_to_be_the_proxy_by_a_mark(ruled: Namespace) -> None:
    """As root the rules go by user: an app that is root could set any mark."""
    assert netns.ask(ruled, VIP, 80, mark=str(MARK)) == "4140"


def test_without_users_the_mark_counts(inside: Namespace) -> None:
    with inside.entered():
        redirect.install(Rules(None, MARK))
    assert netns.ask(inside, VIP, 80) == "4140"
    assert netns.ask(inside, ADDRESS, 80, mark=str(MARK)) == "4143"
    with inside.entered():
        redirect.remove()


def test_nothing_is_left_and_twice_is_once(inside: Namespace) -> None:
    with inside.entered():
        redirect.install(RULES)
        redirect.install(RULES)
    assert netns.tables(inside) == [redirect.TABLE]
    with inside.entered():
        redirect.remove()
        redirect.remove()
    assert netns.tables(inside) == []
    assert netns.ask(inside, ADDRESS, 80) == "80"


def test_a_network_that_is_none_changes_nothing(inside: Namespace) -> None:
    with inside.entered(), pytest.raises(UserFault, match="cannot be read"):
        redirect.install(Rules(PROXY_UID, None, skip_subnets=("nonsense",)))
    assert netns.tables(inside) == []


def test_rules_that_do_not_know_the_proxy_are_none() -> None:
    with pytest.raises(ValueError, match="into itself"):
        redirect.install(Rules(None, None))


# ------------------------------------------------------------------------------------- of a node


def test_a_node_leads_what_others_send_to_services() -> None:
    with netns.pod() as node:
        for port in (80, 4140):
            netns.serve(node, port)
        with node.entered():
            redirect.lead(redirect.Lead(("10.96.0.0/16",), ("10.96.0.10",)))
        with netns.beyond(node) as client:
            assert netns.ask(client, "10.96.3.4", 80) == "4140"
            assert netns.ask(client, ADDRESS, 80) == "80"
            assert netns.ask(client, "10.96.0.10", 80) != "4140"

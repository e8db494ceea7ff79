"""The dashboard of a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.server import ServerProcess

ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"
LINKS = "/apis/multicluster.linkerd.io/v1alpha3/namespaces/default/links"
EVIL = "<img src=x onerror=window.hurt=1>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("dashboard")
    with ServerProcess(home, "--store", "memory:", "--cluster", "east") as made:
        yield made


def create(server: ServerProcess, path: str, document: dict[str, object]) -> None:
    assert server.request("POST", path, document)[0] == 201


def lost_route(name: str) -> dict[str, object]:
    """A route to a Service that is not there."""
    parent = {"group": "", "kind": "Service", "name": "nobody", "port": 80}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {"parentRefs": [parent]},
    }


def test_a_cluster_without_troubles(server: ServerProcess, page: Page) -> None:
    page.goto(f"http://{server.endpoints['admin']}/")
    expect(page.locator("h1")).to_have_text("Isthmus east")
    expect(page.locator("#state")).to_have_text(re.compile("^ready, version "))
    expect(page.locator("#proxies-empty")).to_be_visible()
    assert page.title() == "east · Isthmus"


def test_what_has_no_effect_and_who_is_linked(server: ServerProcess, page: Page) -> None:
    create(server, ROUTES, lost_route("lost"))
    link: dict[str, object] = {
        "apiVersion": "multicluster.linkerd.io/v1alpha3",
        "kind": "Link",
        "metadata": {"name": "west"},
        "spec": {"targetClusterName": "west", "clusterCredentialsSecret": "none"},
    }
    create(server, LINKS, link)
    page.goto(f"http://{server.endpoints['admin']}/")
    trouble = page.locator("#troubles tbody tr", has_text="default/lost").first
    expect(trouble).to_contain_text("Accepted is False")
    linked = page.locator("#links tbody tr").first
    expect(linked).to_contain_text("west")
    expect(linked).to_contain_text("refused")


def test_what_comes_is_text(server: ServerProcess, page: Page) -> None:
    page.route(
        "**/overview",
        lambda route: route.fulfill(
            json={
                "cluster": EVIL,
                "version": EVIL,
                "reasons": {EVIL: EVIL},
                "links": [],
                "proxies": [],
                "troubles": [
                    dict.fromkeys(
                        ("resource", "namespace", "name", "type", "status", "reason", "message"),
                        EVIL,
                    )
                ],
            }
        ),
    )
    page.goto(f"http://{server.endpoints['admin']}/")
    expect(page.locator("h1")).to_contain_text(EVIL)
    assert page.evaluate("window.hurt") is None


def test_news_that_do_not_come_are_told(server: ServerProcess, page: Page) -> None:
    page.goto(f"http://{server.endpoints['admin']}/")
    expect(page.locator("#state")).to_have_text(re.compile("^ready"))
    page.route("**/overview", lambda route: route.abort())
    expect(page.locator("#state")).to_have_text(re.compile("^no news: "))
    expect(page.locator("body")).to_have_class("stale")

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from isthmus.app.explain import explained
from isthmus.app.explain.question import question
from isthmus.cli.commands.explain import explain as command
from tests.support.compact import Name
from tests.support.explaining import explain, faces, printed
from tests.support.meshworld import World

FACE = "face.faces.serviceaccount.identity.isthmus.cluster.local"
PAGE = Path(__file__).parents[4] / "docs" / "explain.md"


@pytest.fixture(scope="module")
def world() -> World:
    return faces()


def parts(found: dict[str, Any], part: str) -> list[str]:
    lines = [*found["lines"], *(line for end in found.get("ends", ()) for line in end["lines"])]
    return [f"{line['object']}: {line['text']}" for line in lines if line["part"] == part]


def verdict(found: dict[str, Any]) -> tuple[str, str]:
    assert "problem" not in found, found
    return found["verdict"]["outcome"], found["verdict"].get("by", "")


# ------------------------------------------------------------------------------------ verdicts


@pytest.mark.parametrize(
    ("sender", "to", "said", "outcome", "by"),
    [
        ("faces/face-1", "smiley", {}, "delivered", "AuthorizationPolicy faces/for-face"),
        ("faces/old-1", "smiley", {}, "refused", "Server faces/smiley"),
        ("tools/curl", "smiley.faces", {}, "refused", "Server faces/smiley"),
        ("faces/sa/face", "smiley", {}, "delivered", "AuthorizationPolicy faces/for-face"),
        ("tools/sa/face", "smiley.faces", {}, "refused", "Server faces/smiley"),
        (f"{FACE}@10.9.9.9", "smiley.faces", {}, "delivered", "AuthorizationPolicy faces/for-face"),
        (f"{FACE}@10.9.9.9", "faces/smiley-1:8000", {}, "delivered",
         "AuthorizationPolicy faces/for-face"),
        (f"x{FACE}", "faces/smiley-1:8000", {}, "refused", "Server faces/smiley"),
        ("faces/face-1", "color", {"path": "/center"}, "delivered", "default all-unauthenticated"),
        ("faces/face-1", "color", {"path": "/center", "throw": "750"}, "answered",
         "Service faces/color2:80"),
        ("faces/face-1", "color", {"path": "/old/x"}, "answered", "HTTPRoute faces/color rules[1]"),
        ("faces/face-1", "color", {"path": "/none"}, "answered", "Service faces/color:80"),
        ("faces/face-1", "color:81", {}, "refused", "default undefined-port"),
        ("faces/face-1", "rpc", {"path": "/Color/Edge"}, "answered", "Service faces/rpc:8000"),
        ("faces/narrow-1", "color", {}, "refused", "config.isthmus.dev/upstreams"),
        ("faces/narrow-1", "10.96.0.11", {}, "refused", "config.isthmus.dev/upstreams"),
        ("faces/narrow-1", "smiley", {}, "delivered", "AuthorizationPolicy faces/for-face"),
        ("faces/face-1", "api.example", {"address": "203.0.113.9"}, "sent outside",
         "EgressNetwork linkerd-egress/all:80"),
        ("faces/face-1", "203.0.113.9", {}, "refused", "default http-egress-deny"),
        ("faces/face-1", "203.0.113.9:443", {"session": "tls"}, "refused",
         "default tcp-egress-deny"),
        ("faces/face-1", "10.1.77.7:9", {}, "sent outside", "default fallback"),
        ("faces/face-1", "10.96.77.7", {}, "refused", "default fallback"),
        ("faces/old-1", "10.96.77.7", {}, "sent outside", "default fallback"),
        ("faces/face-1", "peers", {}, "delivered", "AuthorizationPolicy faces/for-face"),
        ("faces/face-1", "faces/smiley-1:8000", {}, "delivered",
         "AuthorizationPolicy faces/for-face"),
        ("faces/narrow-1", "peers", {}, "refused", "config.isthmus.dev/upstreams"),
        ("faces/face-1", "faces/smiley-1:8001", {}, "delivered", "default all-unauthenticated"),
        ("faces/old-1", "faces/color-1:8000", {}, "delivered", "default all-unauthenticated"),
    ],
)  # fmt: skip
def test_who_decides(
    world: World, sender: str, to: str, said: dict[str, str], outcome: str, by: str
) -> None:
    assert verdict(explain(world, sender, to, **said)) == (outcome, by)


def test_a_deployment_is_one_of_its_pods_that_run() -> None:
    owned = {"kind": "ReplicaSet", "controller": True, "name": "face-a", "apiVersion": "apps/v1"}
    world = faces({"pod": "faces/face-0", "ip": "10.1.0.7", "phase": "Succeeded"})
    assert "there is no Deployment" in explain(world, "faces/deploy/face", "smiley")["problem"]
    meta = {"name": "face", "namespace": "faces", "uid": "d-1"}
    world.write(
        _name("deployments.apps", "face"),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {}},
    )
    assert "no pod" in explain(world, "faces/deploy/face", "smiley")["problem"]
    by = {"kind": "Deployment", "controller": True, "name": "face", "uid": "d-1"}
    world.write(
        _name("replicasets.apps", "face-a"),
        {"metadata": {"name": "face-a", "uid": "r-1", "ownerReferences": [by]}, "spec": {}},
    )
    for number, phase in enumerate(("Succeeded", "Running")):
        name = f"face-{number}"
        pod = {"metadata": {"name": name, "ownerReferences": [owned | {"uid": "r-1"}]}}
        ip = {"phase": phase, "podIP": f"10.1.0.{number}", "podIPs": [{"ip": f"10.1.0.{number}"}]}
        world.write(_name("pods", name), pod | {"spec": {}, "status": ip})
    found = explain(world, "faces/deploy/face", "smiley")
    assert parts(found, "from") == ["Pod faces/face-1: 10.1.0.1, no proxy"]


def _name(resource: str, name: str) -> Name:
    return Name(None, resource, "faces", name)


# -------------------------------------------------------------------------------- other clusters


def test_each_cluster_that_may_answer_has_an_end(world: World) -> None:
    found = explain(world, "faces/face-1", "cell", path="/x", headers="x-one: a b")
    here, east = found["ends"]
    assert (here["cluster"], here["verdict"]["outcome"]) == ("here", "delivered")
    assert (east["cluster"], east["verdict"]["outcome"]) == ("east", "decided elsewhere")
    assert shlex.split(east["ask"]) == [
        "isthmus", "--context=east", "explain", f"{FACE}@10.1.0.1", "faces/smiley-9:8000",
        "GET", "/x", "-H", "x-one: a b",
    ]  # fmt: skip
    assert verdict(found) == ("depends", "")
    only = explain(world, "faces/face-1", "cell", at="smiley-1")
    assert verdict(only) == ("delivered", "AuthorizationPolicy faces/for-face")
    assert (
        "no endpoint that 'nobody'"
        in explain(world, "faces/face-1", "cell", at="nobody")["problem"]
    )


def test_through_a_gateway_the_far_end_sees_the_gateway(world: World) -> None:
    found = explain(world, "faces/face-1", "smiley-east")
    name = "p80.smiley.faces.east.internal.cluster.local"
    assert parts(found, "gateway") == [f"198.51.100.9:4143: of east, asked for {name}"]
    assert parts(found, "cluster") == [f"gateway~{name}: the target's name in Envoy"]
    [end] = found["ends"]
    assert f"{FACE}@198.51.100.9" in end["ask"]


def test_what_the_command_asks_there_is_understood_there(world: World) -> None:
    [_, east] = explain(world, "faces/face-1", "cell")["ends"]
    [_, _, _, sender, to, method, path] = shlex.split(east["ask"])
    there = World(
        {"pod": "faces/smiley-9", "ip": "10.2.1.1", "meshed": True, "proxy": "envoy",
         "sa": "smiley", "labels": {"app": "smiley"}},
        {"server": "faces/smiley", "port": 8000, "pods": {"app": "smiley"}},
    )  # fmt: skip
    found = explain(there, sender, to, method=method, path=path)
    assert verdict(found) == ("refused", "Server faces/smiley")
    assert parts(found, "inbound")[0].endswith("10.1.0.1 as a mesh peer")


# ----------------------------------------------------------------------------------------- parts


def test_the_parts_of_a_way_are_in_order(world: World) -> None:
    found = explain(world, "faces/face-1", "color", method="get", path="/center")
    assert [line["part"] for line in found["lines"]] == [
        "from", "name", "dialled", "service", "rule", "rule", "backend", "backend",
        "endpoints", "cluster", "identity",
    ]  # fmt: skip
    [end] = found["ends"]
    assert [line["part"] for line in end["lines"]] == [
        "endpoint", "inbound", "route", "authorization"
    ]  # fmt: skip


def test_who_would_have_been_let_in_is_told(world: World) -> None:
    found = explain(world, "faces/old-1", "smiley")
    assert parts(found, "authorization") == [f"AuthorizationPolicy faces/for-face: is for {FACE}"]


def test_what_a_linkerd2_proxy_balances_over_has_no_name_in_envoy(world: World) -> None:
    found = explain(world, "faces/old-1", "color", path="/center")
    [line] = parts(found, "cluster")
    assert line == "color.faces.svc.cluster.local:80: what linkerd2-proxy balances over"


def test_a_change_is_explained_at_once() -> None:
    world = faces()
    assert verdict(explain(world, "faces/old-1", "smiley"))[0] == "refused"
    world.apply({"az": "faces/for-old", "for": "smiley", "needs": ["ServiceAccount old"]})
    assert verdict(explain(world, "faces/old-1", "smiley")) == (
        "delivered",
        "AuthorizationPolicy faces/for-old",
    )
    asked = question({"from": "faces/old-1", "to": "smiley"})
    fresh = faces({"az": "faces/for-old", "for": "smiley", "needs": ["ServiceAccount old"]})
    assert world.db.read(explained, asked) == fresh.db.read(explained, asked)


@pytest.mark.parametrize(
    ("sender", "to", "problem"),
    [
        ("faces/nobody", "smiley", "there is no pod faces/nobody"),
        ("nowhere/sa/x", "smiley", "there is no namespace nowhere"),
        ("faces/face-1", "nonesuch", "is no name of this cluster"),
        ("faces/face-1", "api.example.org", "say with --ip"),
        ("faces/face-1", "faces/nobody", "there is no pod faces/nobody with an address"),
        ("faces/externalworkload/vm", "smiley", "there is no ExternalWorkload"),
        (f"{FACE}@10.9.9.9", "203.0.113.9", "nobody of this cluster"),
    ],
)
def test_what_cannot_be_explained_says_why(
    world: World, sender: str, to: str, problem: str
) -> None:
    assert problem in explain(world, sender, to)["problem"]


# ------------------------------------------------------------------------------------------ docs


def examples() -> list[tuple[str, str]]:
    """The commands of the page, and what it says that they print."""
    blocks = re.findall(
        r"```console\n\$ isthmus explain (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert blocks
    return [(line, output) for line, output in blocks]


@pytest.mark.parametrize(("line", "output"), examples())
def test_the_page_shows_what_is_printed(world: World, line: str, output: str) -> None:
    with command.make_context("explain", shlex.split(line)) as context:
        said = context.params
    found = explain(
        world,
        said["sender"],
        said["to"],
        method=said["method"],
        path=said["path"],
        headers="\n".join(said["headers"]),
        session=said["session"] or "",
        address=said["ip"],
        at=said["at"],
        throw=str(said["throw"]),
    )
    assert "\n".join(printed(found)) + "\n" == output

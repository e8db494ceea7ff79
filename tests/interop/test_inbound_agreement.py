"""`ir.decide` against real Envoys: generated policies, generated requests, no difference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from isthmus.ir.decide import Admit, Close, Reply
from isthmus.ir.decide import inbound as decide
from isthmus.ir.identity import parse_identity
from isthmus.ir.inbound import Inbound
from isthmus.ir.proxy import InboundName
from isthmus.ir.request import HttpRequest, Peer
from isthmus.mesh.inbound import inbound
from tests.support.envoys import pod
from tests.support.inbound_envoy import Door, application, door
from tests.support.meshworld import World
from tests.support.policies import Asked, policies, request

SETS = 50
REQUESTS = 40
"""Two thousand together."""


@pytest.fixture(scope="module")
async def app() -> AsyncIterator[int]:
    async with application() as port:
        yield port


def expected(found: Inbound, asked: Asked) -> int | None:
    """The status that a client is to see; None where its connection is closed."""
    name = asked.identity
    peer = Peer(asked.source, name is not None, parse_identity(name) if name is not None else None)
    headers = tuple(asked.headers.items())
    verdict = decide(
        found, peer, HttpRequest(asked.method, asked.host, asked.target, headers)
    ).verdict
    match verdict:
        case Admit():
            return 200
        case Reply(status=status):
            return status
        case Close():
            return None
        case _:
            raise AssertionError(verdict)


@pytest.mark.parametrize("seed", range(SETS))
async def test_an_envoy_does_what_is_decided(seed: int, tmp_path: Path, app: int) -> None:
    chance = Random(seed)
    world = World({"ns": "shop"}, *policies(chance), cluster_networks=("127.0.0.0/16",))
    found = world.db.read(inbound, InboundName(pod("shop/me"), 8080))
    asked = [request(chance) for _ in range(REQUESTS)]
    async with door(tmp_path, world, app) as entrance:
        seen = await asyncio.gather(*(seen_of(entrance, one) for one in asked))
    both = ((one, told, expected(found, one)) for one, told in zip(asked, seen, strict=True))
    assert [each for each in both if each[1] != each[2]] == []


async def seen_of(entrance: Door, asked: Asked) -> int | None:
    answer = await entrance.ask(
        asked.target, asked.method, host=asked.host, headers=asked.headers,
        source=asked.source, identity=asked.identity,
    )  # fmt: skip
    return answer.status if answer is not None else None

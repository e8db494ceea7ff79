"""`ir.decide` against real Envoys: 2,000 generated requests over 40 generated sets of routes.

One Envoy is told of many Services, each with routes of its own. A third of them have GRPCRoutes,
and are called.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest

from isthmus.ir.decide import Forward, Reply
from isthmus.ir.decide import outbound as decide
from isthmus.ir.endpoint import Endpoint, EndpointSet, SetState
from isthmus.ir.names import Ref
from isthmus.ir.outbound import Outbound
from isthmus.ir.proxy import OutboundName
from isthmus.ir.request import HttpRequest
from isthmus.mesh.outbound import outbound
from tests.interop.test_outbound_envoy import (
    VALUES,
    expected,
    observed,
    pair,
    some_filter,
    some_match,
    to,
    world,
)
from tests.support.compact import Compact
from tests.support.meshworld import LOCAL
from tests.support.outbound_envoy import Dialled, Way, way

ENVOYS = 4
SETS = 10
ASKED = 50
"""Requests to each Service."""
CALLED = 3
"""Each of so many Services has GRPCRoutes."""
AT_ONCE = 16

PATHS = ("/", "/a", "/a/", "/a/b", "/ab", "/b", "/a/../b", "/%61", "/a//b", "/c?a=1", "/c?a=2&b=1")
HOSTS = ("cart", "cart:80", "x.cart.test", "CART.test", "y.x.cart.test", "other")
NAMES = ("x.cart.test", "*.cart.test", "cart", "cart.test")
CALLS = ("a.Basket", "a.Basket2", "b.Press")
METHODS = ("Fill", "Empty")


# ------------------------------------------------------------------------------------- routes


def service(at: int) -> str:
    return f"cart{at}"


def is_called(at: int) -> bool:
    return at % CALLED == 0


def some_services(dice: Random) -> list[Compact]:
    found: list[Compact] = []
    for at in range(SETS):
        some = some_calls if is_called(at) else some_route
        found.append({"svc": f"shop/{service(at)}", "ip": f"10.96.1.{at + 1}", "ports": [80]})
        found += [some(dice, f"{service(at)}-r{n}", at) for n in range(dice.randint(1, 6))]
    return found


def placed(dice: Random, at: int) -> dict[str, Any]:
    created = f"2024-01-01T00:00:0{dice.randint(0, 3)}Z"
    listed = dice.sample(NAMES, dice.randint(1, 2)) if dice.random() < 0.5 else []
    hosts = {"hosts": listed} if listed else {}
    return {"service": service(at), "port": 80, "created": created, **hosts}


def backends(dice: Random) -> list[dict[str, Any]]:
    return [to(dice.choice(("till", "mug", "gone")))] if dice.random() < 0.7 else []


def some_route(dice: Random, name: str, at: int) -> Compact:
    rules = [
        {
            "matches": [some_match(dice) for _ in range(dice.randint(1, 2))],
            "filters": [some_filter(dice)] if dice.random() < 0.5 else [],
            "backendRefs": backends(dice),
        }
        for _ in range(dice.randint(1, 3))
    ]
    return {"route": f"shop/{name}", "rules": rules, **placed(dice, at)}


def some_calls(dice: Random, name: str, at: int) -> Compact:
    rules = []
    for _ in range(dice.randint(1, 3)):
        matches = [some_call(dice) for _ in range(dice.randint(0, 2))]
        change = {"set": [pair("x-set", "s")], "add": [pair("x-key", "more")]}
        filters = [{"type": "RequestHeaderModifier", "requestHeaderModifier": change}]
        written: dict[str, Any] = {"matches": matches} if matches else {}
        written |= {"filters": filters} if dice.random() < 0.3 else {}
        rules.append(written | {"backendRefs": backends(dice)})
    return {"groute": f"shop/{name}", "rules": rules, **placed(dice, at)}


def some_call(dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if dice.random() < 0.8:
        method = {"service": dice.choice(CALLS)} if dice.random() < 0.8 else {}
        if dice.random() < 0.6 or not method:
            method["method"] = dice.choice(METHODS)
        found["method"] = method
    if dice.random() < 0.4 or not found:
        how = dice.choice(("Exact", "RegularExpression"))
        found["headers"] = [{"type": how, "name": "X-Key", "value": dice.choice(VALUES)}]
    return found


# ----------------------------------------------------------------------------------- requests


def some_request(dice: Random, *, call: bool) -> HttpRequest:
    sent = (("x-key", dice.choice(VALUES)),) if dice.random() < 0.5 else ()
    host = dice.choice(HOSTS)
    if not call:
        return HttpRequest(dice.choice(("GET", "PUT")), host, dice.choice(PATHS), sent)
    path = f"/{dice.choice((*CALLS, 'c.Other'))}/{dice.choice((*METHODS, 'Other'))}"
    return HttpRequest("POST", host, path, sent, version=2)


async def asked(out: Way, at: Dialled, request: HttpRequest) -> dict[str, Any]:
    """What comes of a request."""
    sent = dict(request.headers)
    answer = await out.ask(at, request.path, request.method, host=request.authority, headers=sent)
    return observed(answer)


async def called(at: str, request: HttpRequest) -> dict[str, Any]:
    """What comes of a call that goes on from `at`."""
    options = [
        ("grpc.default_authority", request.authority),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with grpc.aio.insecure_channel(at, options=options) as channel:
        call: Any = channel.unary_unary(request.path)
        try:
            told = await call(b"", metadata=request.headers, timeout=20)
        except grpc.aio.AioRpcError as fault:
            return {"grpc": fault.code().value[0]}
    return {"called": told.decode()}


def wanted(ir: Outbound, request: HttpRequest) -> dict[str, Any]:
    """What the reference reading says comes of a call; all applications answer alike."""
    there = EndpointSet((Endpoint("10.1.0.1", 80),), state=SetState.SOME)
    found = decide(ir, request, lambda _: there).verdict
    match found:
        case Forward(request=HttpRequest(path=path)):
            return {"called": path}
        case Reply(grpc=code):
            return {"grpc": code}
        case _:
            raise AssertionError(found)


@pytest.mark.parametrize("seed", range(ENVOYS))
async def test_envoys_do_what_the_reference_reading_says(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    mesh = world(*some_services(dice))
    limit = asyncio.Semaphore(AT_ONCE)
    requests = [
        (at, some_request(dice, call=is_called(at))) for at in range(SETS) for _ in range(ASKED)
    ]
    async with way(tmp_path, mesh) as (out, _):

        async def compared(at: int, request: HttpRequest) -> str:
            name = OutboundName(Ref(LOCAL, "", "Service", "shop", service(at)), 80, "shop")
            ir, dialled = mesh.db.read(outbound, name), Dialled(f"10.96.1.{at + 1}", 80)
            async with limit:
                if is_called(at):
                    async with out.relay(dialled) as door:
                        found, said = await called(door, request), wanted(ir, request)
                else:
                    found, said = await asked(out, dialled, request), expected(ir, request)
            return "" if found == said else f"{service(at)} {request}: {found}, not {said}"

        found = await asyncio.gather(*(compared(*each) for each in requests))
    differing = [each for each in found if each]
    assert not differing, "\n".join([f"{len(differing)} differ", *differing[:5]])

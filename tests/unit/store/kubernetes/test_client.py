from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from aiohttp import web

from isthmus.aio import SystemClock
from isthmus.errors import (
    BadRequest,
    Compacted,
    DeadlineExceeded,
    Forbidden,
    IsthmusError,
    NotFound,
    PeerFault,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from isthmus.store.kubernetes import Access, Client, Distrusted
from tests.support.fakeapi import Act, FakeApi, status

CLOCK = SystemClock()


def client(api: FakeApi, **changes: str) -> Client:
    return Client(msgspec.structs.replace(api.access, **changes), CLOCK)


def answering(response: Callable[[], web.StreamResponse]) -> Act:
    async def act(_request: web.Request) -> web.StreamResponse:
        return response()

    return act


async def test_it_shows_its_token_and_learns_the_clock(api: FakeApi) -> None:
    async with client(api) as one:
        assert b"major" in await one.ask("/version")
        assert abs(one.skew) < 5
    headers = api.seen[0][1]
    assert headers["Authorization"] == "Bearer good"
    assert headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (410, Compacted),
        (429, TooManyRequests),
        (500, Unavailable),
        (302, PeerFault),
    ],
)
async def test_a_status_is_the_error_of_its_name(
    api: FakeApi, code: int, error: type[IsthmusError]
) -> None:
    api.act["/version"] = answering(lambda: status(code, "because\n\x1b[31m of it"))
    async with client(api) as one:
        with pytest.raises(error) as caught:
            await one.ask("/version")
    assert type(caught.value) is error
    assert caught.value.message.isprintable()


async def test_a_redirect_is_not_followed_and_nothing_is_told_elsewhere(api: FakeApi) -> None:
    async with FakeApi().serving() as other:
        to = f"https://127.0.0.1:{other.port}/version"
        api.act["/version"] = answering(lambda: web.Response(status=307, headers={"Location": to}))
        async with client(api) as one:
            with pytest.raises(PeerFault, match="sends us elsewhere"):
                await one.ask("/version")
        assert not other.asked


async def test_an_endless_answer_ends(api: FakeApi) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            await response.write(b"x" * 65_536)
            await asyncio.sleep(0)  # noqa: TID251  # who has left must be noticed
        return response

    api.act["/version"] = endless
    async with client(api) as one:
        with pytest.raises(TooLarge):
            await one.ask("/version", most=200_000)
        with pytest.raises(TooLarge):
            await anext(one.lines("/version", {}, idle=30.0, most=200_000))


async def test_a_trickle_is_not_waited_for(api: FakeApi) -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            await response.write(b" ")
            await asyncio.sleep(0.01)  # noqa: TID251  # another's time
        return response

    api.act["/version"] = trickle
    async with client(api) as one:
        with pytest.raises(DeadlineExceeded):
            await one.ask("/version", seconds=0.2)
        with pytest.raises(DeadlineExceeded):
            await anext(one.lines("/version", {}, idle=0.2, most=1000))


async def test_a_coding_that_nobody_asked_for_is_not_unpacked(api: FakeApi) -> None:
    packed = {"Content-Encoding": "gzip"}
    api.act["/version"] = answering(lambda: web.Response(body=b"\x1f\x8b", headers=packed))
    async with client(api) as one:
        with pytest.raises(PeerFault, match="coding"):
            await one.ask("/version")


async def test_lines_are_cut_wherever_chunks_end(api: FakeApi) -> None:
    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for each in (b"on", b"e\ntwo\nth", b"", b"ree\n\nfour"):
            await response.write(each) if each else None
            await asyncio.sleep(0)  # noqa: TID251  # its own chunk
        return response

    api.act["/version"] = pieces
    async with client(api) as one:
        found = [line async for line in one.lines("/version", {}, idle=5.0, most=100)]
    assert found == [b"one", b"two", b"three", b"four"]


async def test_a_server_that_is_not_the_one_hears_no_token(api: FakeApi) -> None:
    async with FakeApi().serving() as other:
        for changes in ({"authority": other.authority}, {"server_name": "elsewhere.test"}):
            async with client(api, **changes) as one:
                with pytest.raises(Distrusted, match="not trusted"):
                    await one.ask("/version")
    assert not api.asked


async def test_nobody_there_is_unavailable() -> None:
    async with Client(Access("https://127.0.0.1:1", "", "good"), CLOCK) as one:
        with pytest.raises(Unavailable, match="cannot reach"):
            await one.ask("/version")


@pytest.mark.parametrize(
    "access",
    [
        Access("https://h", authority="-----BEGIN CERTIFICATE-----\nnone"),
        Access("https://h", certificate="-----BEGIN CERTIFICATE-----\nnone", key="none"),
    ],
)
def test_junk_for_certificates_is_refused(access: Access) -> None:
    with pytest.raises(BadRequest, match="certificates cannot be used"):
        Client(access, CLOCK)


def test_what_is_shown_of_access_holds_no_secret() -> None:
    assert "s3cret" not in repr(Access("https://h", token="s3cret", key="s3cret"))

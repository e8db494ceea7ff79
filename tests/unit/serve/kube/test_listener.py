"""Connections before anybody knows whose they are: counted when accepted, closed when too many."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from isthmus.aio import breathe
from isthmus.serve.kube.limits import Limits
from tests.unit.serve.kube.serving import Served, serving

GET = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"


async def silent(served: Served) -> asyncio.StreamReader:
    """A connection that never begins its handshake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    served.keep(writer)
    return reader


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionError:
        return True


async def answered(served: Served, tls: ssl.SSLContext) -> asyncio.StreamWriter:
    """A connection that stays open after its first request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=tls)
    served.keep(writer)
    writer.write(GET)
    assert b" 200 " in await reader.readline()
    return writer


async def down_to(served: Served, count: int) -> None:
    """The server has noticed that connections were closed."""
    while served.api.connections > count:
        await breathe()


async def test_handshakes_that_never_begin_leave_room_for_those_who_are_known() -> None:
    async with serving(limits=Limits(connections=6, strangers=2)) as served:
        assert (await served.admin.get("/readyz")).code == 200
        for _ in range(2):
            await silent(served)
        assert await closed(await silent(served))
        assert served.api.turned_away == 1
        # The admin's connection is no stranger's: it goes on.
        assert (await served.admin.get("/readyz")).code == 200
        assert served.api.connections == 3


async def test_a_known_sender_frees_the_place_of_a_stranger() -> None:
    async with serving(limits=Limits(connections=20, strangers=1)) as served:
        for name in ("a", "b", "c"):
            await answered(served, served.client_tls(name))
        assert served.api.turned_away == 0
        await answered(served, served.client_tls())
        assert await closed(await silent(served))


async def test_connections_of_one_address_are_limited() -> None:
    async with serving(limits=Limits(connections=100, connections_each=2)) as served:
        writers = [await answered(served, served.client_tls(name)) for name in ("a", "b")]
        assert await closed(await silent(served))
        writers[0].close()
        await down_to(served, 1)
        await answered(served, served.client_tls("c"))


async def test_a_handshake_that_fails_gives_its_place_back() -> None:
    async with serving(limits=Limits(connections=100, strangers=1)) as served:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await closed(reader)
            writer.close()
            await down_to(served, 0)
        await answered(served, served.client_tls())
        assert served.api.turned_away == 0


@pytest.mark.parametrize("tls", [True, False])
async def test_what_is_closed_is_counted_no_more(tls: bool) -> None:  # a table
    async with serving(tls=tls) as served:
        context = served.client_tls() if tls else None
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context)
        writer.write(GET)
        assert b" 200 " in await reader.readline()
        assert served.api.connections == 1
        writer.close()
        await down_to(served, 0)

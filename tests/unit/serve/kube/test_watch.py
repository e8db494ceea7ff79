"""WATCH over HTTP: what there is, what happens, selectors, bookmarks, lost places."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

import pytest

from isthmus.aio import ManualClock, breathe
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.answer import Asked, Stream
from isthmus.serve.kube.auth import User
from isthmus.serve.kube.hub import Hub
from isthmus.serve.kube.limits import Limits
from isthmus.serve.kube.query import parse_query
from isthmus.serve.kube.read import Reader
from isthmus.serve.kube.routes import Target
from isthmus.serve.kube.show import Showings
from isthmus.serve.kube.watch import Watching
from isthmus.store.codec import encode
from isthmus.store.contract import Delete, Put
from isthmus.store.memory import Memory
from tests.unit.serve.kube.serving import Client, serving

CM = "/api/v1/namespaces/a/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def create(client: Client, name: str, **labels: str) -> int:
    body = {"metadata": {"name": name, "labels": labels}}
    reply = await client.post(CM, body)
    assert reply.code == 201, reply.raw
    return int(reply.json["metadata"]["resourceVersion"])


async def label(client: Client, name: str, **labels: str | None) -> None:
    body = {"metadata": {"labels": labels}}
    kind = "application/merge-patch+json"
    reply = await client.ask("PATCH", f"{CM}/{name}", body, content_type=kind)
    assert reply.code == 200, reply.raw


async def test_what_there_is_and_then_what_happens() -> None:
    async with serving() as served:
        await create(served.admin, "x")
        async with served.admin.watch(f"{CM}?watch=true") as lines:
            assert await lines.take(1) == [("ADDED", "x")]
            await create(served.admin, "y")
            await label(served.admin, "x", a="b")
            await served.admin.ask("DELETE", f"{CM}/y")
            told = await lines.take(3)
            assert told == [("ADDED", "y"), ("MODIFIED", "x"), ("DELETED", "y")]


async def test_from_a_revision_only_what_came_after() -> None:
    async with serving() as served:
        since = await create(served.admin, "x")
        await create(served.admin, "y")
        async with served.admin.watch(f"{CM}?watch=1&resourceVersion={since}") as lines:
            event = await lines.next()
            assert event["object"]["metadata"]["name"] == "y"
            assert int(event["object"]["metadata"]["resourceVersion"]) == since + 1


async def test_a_watch_of_one_object_begins_with_it() -> None:
    query = "fieldSelector=metadata.name%3Dx&resourceVersion=0&watch=true"
    async with serving() as served:
        await create(served.admin, "x")
        await create(served.admin, "y")
        for path in (f"{CM}?{query}", f"{CM}/x?watch=true"):
            async with served.admin.watch(path) as lines:
                assert await lines.take(1) == [("ADDED", "x")]
                await label(served.admin, "y", n="1")
                await label(served.admin, "x", n=path[-4:])
                await label(served.admin, "y", n=None)
                await label(served.admin, "x", n=None)
                assert await lines.take(2) == [("MODIFIED", "x"), ("MODIFIED", "x")]


async def test_a_selector_turns_changes_into_arrivals_and_departures() -> None:
    async with serving() as served:
        since = await create(served.admin, "x")
        path = f"{CM}?watch=true&resourceVersion={since}&labelSelector=colour%3Dblue"
        async with served.admin.watch(path) as lines:
            await label(served.admin, "x", colour="blue")
            await label(served.admin, "x", tier="1")
            await label(served.admin, "x", colour="green")
            await label(served.admin, "x", colour="blue")
            await served.admin.ask("DELETE", f"{CM}/x")
            told = [kind for kind, _ in await lines.take(5)]
            assert told == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


async def test_initial_events_end_with_a_bookmark() -> None:
    query = (
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&timeoutSeconds=60"
    )
    async with serving() as served:
        revision = await create(served.admin, "x")
        async with served.admin.watch(f"{CM}?{query}") as lines:
            assert await lines.take(1) == [("ADDED", "x")]
            bookmark = await lines.next()
            assert bookmark["type"] == "BOOKMARK"
            assert bookmark["object"]["kind"] == "ConfigMap"
            assert bookmark["object"]["metadata"] == {
                "resourceVersion": str(revision),
                "annotations": {"k8s.io/initial-events-end": "true"},
            }
            await create(served.admin, "y")
            assert await lines.take(1) == [("ADDED", "y")]


@pytest.mark.parametrize(
    "query",
    [
        "watch=true&sendInitialEvents=true",
        "watch=true&resourceVersionMatch=NotOlderThan",
        "watch=true&resourceVersionMatch=Exact&sendInitialEvents=true",
    ],
)
async def test_combinations_that_mean_nothing_are_invalid(query: str) -> None:
    async with serving() as served:
        reply = await served.admin.get(f"{CM}?{query}")
        assert (reply.code, reply.json["reason"]) == (422, "Invalid")


async def test_tables_name_their_columns_once() -> None:
    async with serving() as served:
        await create(served.admin, "x")
        async with served.admin.watch(f"{CM}?watch=true", Accept=TABLE) as lines:
            first = (await lines.next())["object"]
            await create(served.admin, "y")
            second = (await lines.next())["object"]
            assert first["kind"] == second["kind"] == "Table"
            assert first["columnDefinitions"][0]["name"] == "Name"
            assert second["columnDefinitions"] is None
            assert second["rows"][0]["cells"][0] == "y"


async def test_metadata_watches() -> None:
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with serving() as served:
        await create(served.admin, "x")
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        path = f"{CM}?{query}&allowWatchBookmarks=true"
        async with served.admin.watch(path, Accept=accept) as lines:
            kinds = [(await lines.next())["object"]["kind"] for _ in range(2)]
            assert kinds == ["PartialObjectMetadata"] * 2


async def test_the_ring_still_holds_what_the_store_forgot() -> None:
    async with serving() as served:
        since = await create(served.admin, "x")
        await create(served.admin, "y")
        await served.store.compact(await create(served.admin, "z"))
        async with served.admin.watch(f"{CM}?watch=true&resourceVersion={since}") as lines:
            assert await lines.take(2) == [("ADDED", "y"), ("ADDED", "z")]


async def test_a_watch_from_the_future_is_refused() -> None:
    async with serving() as served:
        late = await served.admin.get(f"{CM}?watch=true&resourceVersion=99")
        assert (late.code, late.json["reason"]) == (504, "Timeout")


# --------------------------------------------------------------- the sans-IO part, by hand


class Play:
    """A watch without HTTP: what it wrote is in `events`."""

    def __init__(self, **limits: float) -> None:
        self.store = Memory()
        self.clock = ManualClock()
        self.ring = 1000
        self.limits = Limits(**limits)  # type: ignore[arg-type]
        self.events: list[tuple[str, str]] = []
        self.raw = b""
        self.gate = asyncio.Event()
        self.gate.set()

    def start(self) -> None:
        self.hub = Hub(self.store, self.clock, ring_events=self.ring)
        showings = Showings()
        reader = Reader(self.store, showings, self.clock, b"")
        self.watching = Watching(self.store, self.hub, reader, showings, self.clock, self.limits)

    async def put(self, name: str, **labels: str) -> None:
        kind = BUILT_IN.by_kind("", "ConfigMap")
        assert kind is not None
        meta = {"name": name, "namespace": "a", "labels": labels}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        await self.store.txn([], [Put(kind.key("a", name), encode(document))])

    async def delete(self, name: str) -> None:
        kind = BUILT_IN.by_kind("", "ConfigMap")
        assert kind is not None
        await self.store.txn([], [Delete(kind.key("a", name))])

    async def open(self, query: str) -> Stream:
        kind = BUILT_IN.by_kind("", "ConfigMap")
        assert kind is not None
        target = Target("", "v1", "configmaps", "a")
        asked = Asked(
            "GET", "watch", target, kind, kind.versions[0], parse_query(query), {},
            User("admin"), nothing,
        )  # fmt: skip
        return await self.watching.open(asked)

    async def write(self, data: bytes) -> None:
        await self.gate.wait()
        self.raw += data
        for line in data.splitlines():
            event = json.loads(line)
            shown = event["object"]["metadata"].get("name", "")
            if event["type"] in {"ERROR", "BOOKMARK"}:
                shown = str(
                    event["object"].get("code") or event["object"]["metadata"]["resourceVersion"]
                )
            self.events.append((event["type"], shown))

    async def caught_up(self, count: int) -> None:
        while len(self.events) < count:
            await breathe()


async def nothing() -> bytes:
    return b""


async def test_bookmarks_come_every_minute_and_at_the_end() -> None:
    play = Play(bookmark_time=60)
    await play.put("x")
    play.start()
    async with asyncio.TaskGroup() as tasks:
        hub = tasks.create_task(play.hub.run())
        stream = await play.open("watch=true&allowWatchBookmarks=true&timeoutSeconds=150")
        watch = tasks.create_task(_run(stream, play))
        await play.caught_up(1)
        await play.put("elsewhere-seen-too")
        await play.caught_up(2)
        await play.clock.until_waiting(1)
        for count in (3, 4):
            await play.clock.turn(60)
            await play.caught_up(count)
        await play.clock.turn(30)
        await watch
        hub.cancel()
    assert play.events == [
        ("ADDED", "x"),
        ("ADDED", "elsewhere-seen-too"),
        ("BOOKMARK", "2"),
        ("BOOKMARK", "2"),
        ("BOOKMARK", "2"),
    ]


async def _run(stream: Stream, play: Play) -> None:
    await stream.run(play.write)


async def test_without_being_asked_no_bookmarks() -> None:
    play = Play(bookmark_time=60)
    play.start()
    async with asyncio.TaskGroup() as tasks:
        hub = tasks.create_task(play.hub.run())
        stream = await play.open("watch=true&timeoutSeconds=100")
        watch = tasks.create_task(_run(stream, play))
        await play.clock.until_waiting(1)
        await play.clock.turn(100)
        await watch
        hub.cancel()
    assert play.events == []


async def test_a_watch_older_than_the_ring_reads_the_stores_history() -> None:
    play = Play()
    for name in ("a", "b", "c"):
        await play.put(name)
    await play.delete("b")
    play.start()  # the ring begins here
    async with asyncio.TaskGroup() as tasks:
        hub = tasks.create_task(play.hub.run())
        stream = await play.open("watch=true&resourceVersion=1&timeoutSeconds=60")
        watch = tasks.create_task(_run(stream, play))
        await play.caught_up(3)
        await play.put("d")
        await play.caught_up(4)
        play.hub.close()
        await watch
        hub.cancel()
    told = [("ADDED", "b"), ("ADDED", "c"), ("DELETED", "b"), ("ADDED", "d")]
    assert play.events == told


async def test_a_watch_older_than_all_history_is_expired() -> None:
    play = Play()
    for name in ("a", "b", "c"):
        await play.put(name)
    await play.store.compact(3)
    play.start()
    stream = await play.open("watch=true&resourceVersion=1")
    await stream.run(play.write)
    assert play.events == [("ERROR", "410")]
    assert b'"reason":"Expired"' in play.raw


async def test_a_watcher_that_does_not_read_is_expired_and_others_go_on() -> None:
    play, other = Play(), Play()
    play.ring = 8
    play.start()
    other.hub, other.watching = play.hub, play.watching
    async with asyncio.TaskGroup() as tasks:
        hub = tasks.create_task(play.hub.run())
        slow = tasks.create_task(_run(await play.open("watch=true"), play))
        quick = tasks.create_task(_run(await other.open("watch=true"), other))
        await breathe()
        play.gate.clear()
        for number in range(40):
            await play.put(f"p{number}")
            await other.caught_up(number + 1)
        play.gate.set()
        await slow
        play.hub.close()
        await quick
        hub.cancel()
    assert play.events[-1] == ("ERROR", "410")
    assert len(play.events) < 40
    assert other.events == [("ADDED", f"p{number}") for number in range(40)]


async def test_many_events_are_written_together_and_shared() -> None:
    play, other = Play(), Play()
    play.start()
    other.hub, other.watching = play.hub, play.watching
    async with asyncio.TaskGroup() as tasks:
        hub = tasks.create_task(play.hub.run())
        watches = [
            tasks.create_task(_run(await each.open("watch=true"), each)) for each in (play, other)
        ]
        await breathe()
        for number in range(20):
            await play.put(f"p{number}")
        await play.caught_up(20)
        await other.caught_up(20)
        play.hub.close()
        await asyncio.gather(*watches)
        hub.cancel()
    assert play.raw == other.raw


async def test_labels_in_the_query_are_decoded() -> None:
    async with serving() as served:
        await create(served.admin, "x", **{"a.b/c": "d"})
        selector = quote("a.b/c=d", safe="")
        async with served.admin.watch(f"{CM}?watch=true&labelSelector={selector}") as lines:
            assert await lines.take(1) == [("ADDED", "x")]

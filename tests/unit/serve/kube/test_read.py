"""GET and LIST over HTTP: selectors, pages, revisions, forms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.serve.kube.serving import Client, serving

CM = "/api/v1/namespaces/a/configmaps"


def config_map(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


async def fill(client: Client, *names: str) -> int:
    """Create ConfigMaps; the revision of the last."""
    revision = 0
    for name in names:
        reply = await client.post(CM, config_map(name, tier=name[0]))
        assert reply.code == 201, reply.raw
        revision = int(reply.json["metadata"]["resourceVersion"])
    return revision


def names(document: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


async def test_one_object_has_kind_and_revision() -> None:
    async with serving() as served:
        revision = await fill(served.admin, "x1")
        reply = await served.admin.get(f"{CM}/x1")
        assert reply.code == 200
        assert reply.json["kind"] == "ConfigMap"
        assert reply.json["apiVersion"] == "v1"
        assert reply.json["metadata"]["resourceVersion"] == str(revision)
        assert reply.json["metadata"]["namespace"] == "a"
        assert reply.json["metadata"]["uid"]


async def test_what_is_not_there_is_a_status() -> None:
    async with serving() as served:
        reply = await served.admin.get(f"{CM}/nope")
        assert reply.code == 404
        assert reply.json["kind"] == "Status"
        assert reply.json["reason"] == "NotFound"
        assert reply.json["message"] == 'configmaps "nope" not found'
        assert reply.json["details"] == {"name": "nope", "kind": "configmaps"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothing",
        "/api/v2/pods",
        "/apis/nobody.example/v1/pods",
        "/api/v1/configmaps/x1",
        "/api/v1/namespaces/a/namespaces",
        "/api/v1/namespaces/a/configmaps/x1/status",
        "/api/v1/namespaces/a/configmaps/x1/scale",
        "/nothing",
    ],
)
async def test_what_is_not_served_is_not_found(path: str) -> None:
    async with serving() as served:
        await fill(served.admin, "x1")
        reply = await served.admin.get(path)
        assert (reply.code, reply.json["reason"]) == (404, "NotFound")


async def test_lists_select_by_label_and_name() -> None:
    async with serving() as served:
        revision = await fill(served.admin, "x1", "x2", "y1")
        whole = (await served.admin.get(CM)).json
        assert (whole["kind"], whole["apiVersion"]) == ("ConfigMapList", "v1")
        assert whole["metadata"] == {"resourceVersion": str(revision)}
        assert names(whole) == ["x1", "x2", "y1"]
        assert names((await served.admin.get(f"{CM}?labelSelector=tier%3Dx")).json) == ["x1", "x2"]
        one = (await served.admin.get(f"{CM}?fieldSelector=metadata.name%3Dx2")).json
        assert names(one) == ["x2"]
        assert int(one["metadata"]["resourceVersion"]) >= revision
        none = await served.admin.get(f"{CM}?fieldSelector=metadata.name%3Dx2,metadata.name%3Dx1")
        assert names(none.json) == []
        everywhere = (await served.admin.get("/api/v1/configmaps")).json
        assert names(everywhere) == ["x1", "x2", "y1"]
        assert names((await served.admin.get("/api/v1/namespaces/b/configmaps")).json) == []


@pytest.mark.parametrize(
    "query",
    ["labelSelector=a%20in%20b", "labelSelector=%28", "fieldSelector=spec.nothing%3Dx",
     "fieldSelector=x", "limit=many", "continue=abc", "resourceVersion=abc",
     "includeObject=Everything"],
)  # fmt: skip
async def test_a_query_that_cannot_be_read_is_a_bad_request(query: str) -> None:
    async with serving() as served:
        reply = await served.admin.get(f"{CM}?{query}")
        assert (reply.code, reply.json["reason"]) == (400, "BadRequest"), reply.raw


@pytest.mark.parametrize("query", ["limit=2", "limit=2&labelSelector=tier%3Dx"])
async def test_pages_are_of_one_revision(query: str) -> None:
    async with serving() as served:
        revision = await fill(served.admin, *(f"x{n}" for n in range(5)))
        found, url, page = [], f"{CM}?{query}", dict[str, Any]()
        for _ in range(3):
            page = (await served.admin.get(url)).json
            assert page["metadata"]["resourceVersion"] == str(revision)
            found.append(names(page))
            await fill(served.admin, f"x0{len(found)}")  # not of the list's revision
            url = f"{CM}?{query}&continue={page['metadata'].get('continue', '')}"
        assert found == [["x0", "x1"], ["x2", "x3"], ["x4"]]
        assert "continue" not in page["metadata"]


async def test_a_page_says_how_many_remain() -> None:
    async with serving() as served:
        await fill(served.admin, "x1", "x2", "x3")
        page = (await served.admin.get(f"{CM}?limit=1")).json
        assert page["metadata"]["remainingItemCount"] == 2
        exact = (await served.admin.get(f"{CM}?limit=3")).json
        assert "continue" not in exact["metadata"]
        selected = (await served.admin.get(f"{CM}?limit=3&labelSelector=tier%3Dx")).json
        assert "continue" not in selected["metadata"]


async def test_revisions_exact_old_and_of_the_future() -> None:
    async with serving() as served:
        old = await fill(served.admin, "x1")
        new = await fill(served.admin, "x2")
        exact = f"{CM}?resourceVersion={old}&resourceVersionMatch=Exact"
        assert names((await served.admin.get(exact)).json) == ["x1"]
        assert names((await served.admin.get(f"{CM}?resourceVersion={old}&limit=9")).json) == ["x1"]
        assert names((await served.admin.get(f"{CM}?resourceVersion={old}")).json) == ["x1", "x2"]
        assert names((await served.admin.get(f"{CM}?resourceVersion=0")).json) == ["x1", "x2"]
        for path in (f"{CM}?resourceVersion={new + 9}", f"{CM}/x1?resourceVersion={new + 9}"):
            late = await served.admin.get(path)
            assert (late.code, late.json["reason"]) == (504, "Timeout")
            assert "Too large resource version" in late.json["message"]
        await served.store.compact(new)
        gone = await served.admin.get(exact)
        assert (gone.code, gone.json["reason"]) == (410, "Expired")


async def test_a_continue_token_of_a_forgotten_revision_is_expired() -> None:
    async with serving() as served:
        await fill(served.admin, "x1", "x2")
        page = (await served.admin.get(f"{CM}?limit=1")).json
        await served.store.compact(await fill(served.admin, "x3"))
        url = f"{CM}?limit=1&continue={page['metadata']['continue']}"
        gone = await served.admin.get(url)
        assert (gone.code, gone.json["reason"]) == (410, "Expired")
        assert "continue parameter is too old" in gone.json["message"]


async def test_tables_and_metadata() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    metadata_list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    async with serving() as served:
        await fill(served.admin, "x1", "x2")
        many = (await served.admin.get(CM, Accept=table)).json
        assert many["kind"] == "Table"
        assert many["columnDefinitions"][0]["name"] == "Name"
        assert [row["cells"][0] for row in many["rows"]] == ["x1", "x2"]
        assert many["rows"][0]["object"]["metadata"]["namespace"] == "a"
        one = (await served.admin.get(f"{CM}/x1", Accept=table)).json
        assert [row["cells"][0] for row in one["rows"]] == ["x1"]
        partial = (await served.admin.get(f"{CM}/x1", Accept=metadata)).json
        assert partial["kind"] == "PartialObjectMetadata"
        assert "data" not in partial
        partials = (await served.admin.get(CM, Accept=metadata_list)).json
        assert partials["kind"] == "PartialObjectMetadataList"
        assert names(partials) == ["x1", "x2"]
        plain = (await served.admin.get(CM, Accept="application/vnd.kubernetes.protobuf")).json
        assert plain["kind"] == "ConfigMapList"


async def test_a_long_list_is_written_in_pieces() -> None:
    async with serving() as served:
        wanted = [f"x{n:03}" for n in range(300)]
        await fill(served.admin, *wanted)
        reply = await served.admin.get(CM)
        assert names(reply.json) == wanted
        assert reply.headers.get("Transfer-Encoding") == "chunked"
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        rows = (await served.admin.get(CM, Accept=table)).json["rows"]
        assert [row["cells"][0] for row in rows] == wanted
        selected = (await served.admin.get(f"{CM}?labelSelector=tier%3Dx&limit=250")).json
        assert names(selected) == wanted[:250]


async def test_head_answers_without_a_body() -> None:
    async with serving() as served:
        await fill(served.admin, "x1")
        for path in (f"{CM}/x1", CM, "/version"):
            reply = await served.admin.ask("HEAD", path)
            assert (reply.code, reply.raw) == (200, b"")

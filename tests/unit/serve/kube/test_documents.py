"""Discovery, OpenAPI, version and health over HTTP."""

from __future__ import annotations

from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.documents import Documents, version
from tests.unit.serve.kube.serving import serving

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_discovery_in_both_forms() -> None:
    async with serving() as served:
        get = served.admin.get
        core = await get("/api", Accept=f"{AGGREGATED},application/json")
        assert core.headers["Content-Type"] == AGGREGATED
        (group,) = core.json["items"]
        resources = {item["resource"]: item for item in group["versions"][0]["resources"]}
        below = {sub["subresource"] for sub in resources["serviceaccounts"]["subresources"]}
        assert below == {"token"}
        named = (await get("/apis", Accept=AGGREGATED)).json["items"]
        assert "apps" in {item["metadata"]["name"] for item in named}
        assert (await get("/api")).json["versions"] == ["v1"]
        assert (await get("/apis")).json["kind"] == "APIGroupList"
        assert (await get("/apis/apps")).json["kind"] == "APIGroup"
        listed = (await get("/apis/apps/v1")).json
        assert "deployments/scale" in {row["name"] for row in listed["resources"]}
        assert (await get("/api/v1")).json["groupVersion"] == "v1"
        for path in ("/api/v9", "/apis/nobody", "/apis/apps/v9", "/openapi/v4", "/openapi"):
            assert (await get(path)).code == 404


async def test_openapi_is_cached_by_its_holder() -> None:
    async with serving() as served:
        get = served.admin.get
        index = (await get("/openapi/v3")).json["paths"]
        url = index["apis/apps/v1"]["serverRelativeURL"]
        document = await get(url)
        assert "io.k8s.api.apps.v1.Deployment" in document.json["components"]["schemas"]
        again = await served.admin.ask(
            "GET", url, headers={"If-None-Match": document.headers["Etag"]}
        )
        assert (again.code, again.raw) == (304, b"")
        assert (await get("/openapi/v3/api/v1")).json["openapi"] == "3.0.0"
        assert (await get("/openapi/v2")).json["swagger"] == "2.0"
        asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        binary = await get("/openapi/v2", Accept=asked)
        assert binary.raw.startswith(b"\x0a\x032.0")


async def test_every_kind_is_described_listed_and_discovered() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with serving() as served:
        get = served.admin.get
        index = (await get("/openapi/v3")).json["paths"]
        for kind in BUILT_IN:
            for version in kind.versions:
                base = f"apis/{kind.group}/{version.name}" if kind.group else f"api/{version.name}"
                described = await get(index[base]["serverRelativeURL"])
                assert f'"kind":"{kind.name}"'.encode() in described.raw
                rows = (await get(f"/{base}")).json["resources"]
                assert kind.plural in {row["name"] for row in rows}
                if kind.persisted:
                    listed = await get(f"/{base}/{kind.plural}")
                    assert listed.json["kind"] == f"{kind.name}List"
                    shown = (await get(f"/{base}/{kind.plural}", Accept=table)).json
                    columns = [column["name"] for column in shown["columnDefinitions"]]
                    assert columns.count("Name") == 1
                    assert len(columns) == len(set(columns)) > 1


async def test_paths_and_methods() -> None:
    async with serving() as served:
        paths = (await served.admin.get("/")).json["paths"]
        assert {"/api/v1", "/apis/apps/v1", "/version"} <= set(paths)
        assert (await served.admin.ask("POST", "/version", {})).code == 405
        assert (await served.admin.get("/version")).json == version()


def test_health_says_when_it_is_not_ready() -> None:
    ready = False
    documents = Documents(BUILT_IN, lambda: ready)
    assert documents.answer(("readyz",), {}).code == 503
    assert documents.answer(("livez",), {}).code == 200
    ready = True
    assert documents.answer(("readyz",), {}).body == b"ok"
    assert documents.answer(("healthz", "ping"), {}).body == b"ok"

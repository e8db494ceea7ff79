"""Create, update, patch, delete over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from isthmus.store.objects import Proposed, Verdict
from tests.unit.serve.kube.serving import Client, Reply, serving

CM = "/api/v1/namespaces/a/configmaps"
SVC = "/api/v1/namespaces/a/services"
SA = "/api/v1/namespaces/a/serviceaccounts"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(name: str) -> dict[str, object]:
    ports = [{"name": "http", "port": 80}, {"name": "grpc", "port": 81}]
    return {"metadata": {"name": name}, "spec": {"selector": {"a": "b"}, "ports": ports}}


async def patch(client: Client, path: str, body: object, kind: str = MERGE) -> Reply:
    return await client.ask("PATCH", path, body, content_type=kind)


async def test_create_gives_the_object_its_metadata() -> None:
    async with serving() as served:
        reply = await served.admin.post(CM, config_map("x", k="v"))
        assert reply.code == 201
        metadata = reply.json["metadata"]
        assert metadata["uid"]
        assert metadata["creationTimestamp"].endswith("Z")
        assert int(metadata["resourceVersion"]) == served.store.revision
        again = await served.admin.post(CM, config_map("x"))
        assert (again.code, again.json["reason"]) == (409, "AlreadyExists")
        assert again.json["message"] == 'configmaps "x" already exists'


async def test_generated_names_differ() -> None:
    async with serving() as served:
        body = {"metadata": {"generateName": "x-"}}
        names = {(await served.admin.post(CM, body)).json["metadata"]["name"] for _ in range(5)}
        assert len(names) == 5
        assert all(name.startswith("x-") for name in names)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"apiVersion": "v2"}, "does not match the expected API version"),
        ({"apiVersion": 7}, "does not match the expected API version"),
        ({"kind": "Secret"}, "cannot be handled as a ConfigMap"),
        ({"metadata": {"namespace": "b"}}, "does not match the namespace"),
        ({"metadata": {"name": "x", "resourceVersion": "7"}}, "resourceVersion should not be set"),
        ({"metadata": "x"}, "metadata"),
        ({"data": {"a": 1}}, "data.a"),
        ({"data": ["a"]}, "data"),
    ],
)
async def test_what_does_not_fit_the_url_or_the_kind(body: Mapping[str, object], said: str) -> None:
    async with serving() as served:
        whole = {"metadata": {"name": "x"}, **body}
        reply = await served.admin.post(CM, whole)
        assert reply.code in (400, 422), reply.raw
        assert said in reply.json["message"]
        assert served.store.revision == 0


async def test_a_namespaced_object_needs_its_namespace_in_the_url() -> None:
    async with serving() as served:
        reply = await served.admin.post("/api/v1/configmaps", config_map("x"))
        assert reply.code == 400


async def test_unknown_and_repeated_fields_as_the_writer_wants_it() -> None:
    raw = (
        b'{"metadata":{"name":"x","colour":"blue"},"data":{"a":"1","a":"2"},'
        b'"data":{"b":"3"},"spec":{"c":{}}}'
    )
    async with serving() as served:
        strict = await served.admin.ask("POST", f"{CM}?fieldValidation=Strict", raw)
        assert (strict.code, strict.json["reason"]) == (400, "BadRequest")
        for field in ('unknown field "metadata.colour"', 'unknown field "spec"',
                      'duplicate field "data.a"', 'duplicate field "data"'):  # fmt: skip
            assert field in strict.json["message"]
        assert served.store.revision == 0
        warned = await served.admin.ask("POST", f"{CM}?dryRun=All", raw)
        assert warned.code == 201
        assert '299 - "unknown field \\"metadata.colour\\""' in warned.warnings
        assert len(warned.warnings) == 4
        ignored = await served.admin.ask("POST", f"{CM}?fieldValidation=Ignore", raw)
        assert (ignored.code, ignored.warnings) == (201, [])
        assert ignored.json["data"] == {"b": "3"}
        assert "spec" not in ignored.json
        odd = await served.admin.ask("POST", f"{CM}?fieldValidation=Maybe", raw)
        assert odd.code == 422


async def test_a_patch_warns_of_fields_too() -> None:
    async with serving() as served:
        await served.admin.post(CM, config_map("x"))
        body = {"colour": "blue"}
        reply = await patch(served.admin, f"{CM}/x", body)
        assert reply.warnings == ['299 - "unknown field \\"colour\\""']
        strict = await patch(served.admin, f"{CM}/x?fieldValidation=Strict", body)
        assert strict.code == 400


async def test_put_replaces_and_compares_the_revision() -> None:
    async with serving() as served:
        old = (await served.admin.post(CM, config_map("x", k="1"))).json
        old["data"] = {"k": "2"}
        first = await served.admin.ask("PUT", f"{CM}/x", old)
        assert (first.code, first.json["data"]) == (200, {"k": "2"})
        second = await served.admin.ask("PUT", f"{CM}/x", old)
        assert (second.code, second.json["reason"]) == (409, "Conflict")
        assert "the object has been modified" in second.json["message"]
        del old["metadata"]["resourceVersion"]
        assert (await served.admin.ask("PUT", f"{CM}/x", old)).code == 200
        old["metadata"]["uid"] = "other"
        assert (await served.admin.ask("PUT", f"{CM}/x", old)).code == 409
        renamed = await served.admin.ask("PUT", f"{CM}/y", old)
        assert (renamed.code, renamed.json["reason"]) == (400, "BadRequest")
        assert (await served.admin.ask("PUT", f"{CM}/y", config_map("y"))).code == 404


async def test_an_update_that_changes_nothing_writes_nothing() -> None:
    async with serving() as served:
        await served.admin.post(CM, config_map("x"))
        before = served.store.revision
        assert (await patch(served.admin, f"{CM}/x", {})).code == 200
        assert served.store.revision == before


async def test_three_patches() -> None:
    async with serving() as served:
        await served.admin.post(SVC, service("s"))
        merged = await patch(served.admin, f"{SVC}/s", {"spec": {"selector": {"c": "d"}}})
        assert merged.json["spec"]["selector"] == {"a": "b", "c": "d"}
        ports = {"spec": {"ports": [{"port": 80, "name": "web"}]}}
        strategic = await patch(served.admin, f"{SVC}/s", ports, STRATEGIC)
        assert [p["name"] for p in strategic.json["spec"]["ports"]] == ["web", "grpc"]
        replaced = await patch(served.admin, f"{SVC}/s", ports)
        assert [p["name"] for p in replaced.json["spec"]["ports"]] == ["web"]
        steps = [{"op": "replace", "path": "/spec/ports/0/port", "value": 90}]
        stepped = await patch(served.admin, f"{SVC}/s", steps, JSON_PATCH)
        assert stepped.json["spec"]["ports"][0]["port"] == 90


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"{", MERGE, 400),
        ([1], MERGE, 400),
        ("x", MERGE, 400),
        ([{"op": "remove", "path": "/spec/nothing"}], JSON_PATCH, 422),
        ([{"op": "test", "path": "/spec/type", "value": "x"}], JSON_PATCH, 422),
        ([{"op": "fly", "path": "/spec"}], JSON_PATCH, 400),
        ([{"op": "add", "path": "spec", "value": 1}], JSON_PATCH, 400),
        ({"spec": {"ports": [{"name": "no key"}]}}, STRATEGIC, 400),
        ({"spec": {"ports": "x"}}, MERGE, 400),
        ({"metadata": {"name": "other"}}, MERGE, 400),
        ({"metadata": {"namespace": "other"}}, MERGE, 400),
        ({"kind": "Secret"}, MERGE, 400),
        ({}, "application/json", 415),
    ],
)
async def test_patches_that_cannot_be(body: object, kind: str, code: int) -> None:
    async with serving() as served:
        await served.admin.post(SVC, service("s"))
        before = served.store.revision
        reply = await patch(served.admin, f"{SVC}/s", body, kind)
        assert reply.code == code, reply.raw
        assert reply.json["kind"] == "Status"
        assert served.store.revision == before


async def test_a_patch_to_nowhere_is_not_found() -> None:
    async with serving() as served:
        for kind in (MERGE, STRATEGIC):
            reply = await patch(served.admin, f"{SVC}/nope", {}, kind)
            assert (reply.code, reply.json["reason"]) == (404, "NotFound")


async def test_a_patch_is_taken_again_when_somebody_was_faster() -> None:
    class Meddler:
        """Writes to the same object while a patch is on its way, once."""

        def __init__(self) -> None:
            self.client: Client | None = None

        async def admit(self, proposed: Proposed) -> Verdict:
            if self.client is not None and proposed.old is not None:
                client, self.client = self.client, None
                reply = await patch(client, f"{CM}/x", {"data": {"other": "1"}})
                assert reply.code == 200
            return Verdict(None)

    meddler = Meddler()
    async with serving(admissions=(meddler,)) as served:
        await served.admin.post(CM, config_map("x"))
        meddler.client = served.admin
        reply = await patch(served.admin, f"{CM}/x", {"data": {"mine": "2"}})
        assert reply.json["data"] == {"other": "1", "mine": "2"}
        meddler.client = served.admin
        version = reply.json["metadata"]["resourceVersion"]
        held = {"metadata": {"resourceVersion": version}, "data": {"mine": "3"}}
        late = await patch(served.admin, f"{CM}/x", {**held, "data": {"mine": "3"}})
        # The meddler's own patch changes nothing, so the version still holds.
        assert late.code == 200
        stale = await patch(served.admin, f"{CM}/x", held)
        assert (stale.code, stale.json["reason"]) == (409, "Conflict")


async def test_dry_runs_write_nothing() -> None:
    async with serving() as served:
        tried = await served.admin.post(f"{CM}?dryRun=All", config_map("x"))
        assert tried.code == 201
        assert "resourceVersion" not in tried.json["metadata"]
        assert served.store.revision == 0
        await served.admin.post(CM, config_map("x"))
        before = served.store.revision
        body = {"data": {"k": "v"}}
        tried = await patch(served.admin, f"{CM}/x?dryRun=All", body)
        assert tried.json["data"] == body["data"]
        gone = await served.admin.ask("DELETE", f"{CM}/x?dryRun=All")
        assert gone.code == 200
        assert served.store.revision == before
        odd = await served.admin.post(f"{CM}?dryRun=Some", config_map("y"))
        assert odd.code == 422


async def test_warnings_of_admissions_are_headers_that_cannot_break_out() -> None:
    class Warns:
        async def admit(self, proposed: Proposed) -> Verdict:
            return Verdict(None, warnings=('say "no"\r\nX-Evil: 1', "a" * 9999))

    async with serving(admissions=(Warns(),)) as served:
        reply = await served.admin.post(CM, config_map("x"))
        assert reply.warnings[0] == '299 - "say \\"no\\"  X-Evil: 1"'
        assert len(reply.warnings[1]) < 600
        assert "X-Evil" not in reply.headers


# ----------------------------------------------------------------------------------- delete


async def test_a_deleted_object_is_gone_and_said_so() -> None:
    async with serving() as served:
        uid = (await served.admin.post(CM, config_map("x"))).json["metadata"]["uid"]
        body = {"propagationPolicy": "Background"}
        reply = await served.admin.ask("DELETE", f"{CM}/x", body)
        assert reply.json["status"] == "Success"
        assert reply.json["details"] == {"name": "x", "kind": "configmaps", "uid": uid}
        assert (await served.admin.get(f"{CM}/x")).code == 404
        assert (await served.admin.ask("DELETE", f"{CM}/x")).code == 404


async def test_an_object_with_finalizers_stays_until_they_are_gone() -> None:
    async with serving() as served:
        body = config_map("x")
        body["metadata"] = {"name": "x", "finalizers": ["example.org/wait"]}
        await served.admin.post(CM, body)
        reply = await served.admin.ask("DELETE", f"{CM}/x")
        assert reply.json["kind"] == "ConfigMap"
        assert reply.json["metadata"]["deletionTimestamp"]
        assert (await served.admin.get(f"{CM}/x")).code == 200
        await patch(served.admin, f"{CM}/x", {"metadata": {"finalizers": None}})
        assert (await served.admin.get(f"{CM}/x")).code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"preconditions": {"uid": "other"}}, 409),
        ({"preconditions": {"resourceVersion": "1"}}, 409),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"kind": "Pod"}, 400),
        (b"{", 400),
        ({"gracePeriodSeconds": "soon"}, 400),
    ],
)
async def test_deletes_that_are_refused(body: object, code: int) -> None:
    async with serving() as served:
        await served.admin.post(CM, config_map("x"))
        await patch(served.admin, f"{CM}/x", {"data": {"k": "v"}})
        reply = await served.admin.ask("DELETE", f"{CM}/x", body)
        assert reply.code == code, reply.raw
        assert (await served.admin.get(f"{CM}/x")).code == 200


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces", "/api/v1/configmaps", "/apis/apps/v1/deployments"]
)
async def test_a_whole_cluster_is_not_deleted_at_once(path: str) -> None:
    """One mistaken request must not take everything; kubectl deletes one by one."""
    async with serving() as served:
        await served.admin.post(CM, {"metadata": {"name": "x"}})
        reply = await served.admin.ask("DELETE", path)
        assert (reply.code, reply.json["reason"]) == (405, "MethodNotAllowed")
        assert (await served.admin.get(f"{CM}/x")).code == 200
        found = (await served.admin.get("/api/v1")).json["resources"]
        [verbs] = [each["verbs"] for each in found if each["name"] == "namespaces"]
        assert "deletecollection" not in verbs


async def test_delete_collection_deletes_what_is_selected() -> None:
    async with serving() as served:
        for name in ("x1", "x2", "y1"):
            body = config_map(name)
            body["metadata"] = {"name": name, "labels": {"tier": name[0]}}
            await served.admin.post(CM, body)
        reply = await served.admin.ask("DELETE", f"{CM}?labelSelector=tier%3Dx")
        assert reply.json["status"] == "Success"
        left = (await served.admin.get(CM)).json["items"]
        assert [item["metadata"]["name"] for item in left] == ["y1"]


async def test_one_object_that_stays_does_not_keep_the_others() -> None:
    class Keeps:
        async def admit(self, proposed: Proposed) -> Verdict:
            if proposed.new is None and proposed.name == "x1":
                message = "x1 stays"
                raise ValueError(message)
            return Verdict(None)

    async with serving(admissions=(Keeps(),)) as served:
        for name in ("x1", "x2"):
            await served.admin.post(CM, config_map(name))
        reply = await served.admin.ask("DELETE", CM)
        assert reply.code == 500
        left = (await served.admin.get(CM)).json["items"]
        assert [item["metadata"]["name"] for item in left] == ["x1"]


# --------------------------------------------------------------------------------- status etc.


async def test_status_and_the_rest_are_written_apart() -> None:
    async with serving() as served:
        await served.admin.post(SVC, service("s"))
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}}}
        both = {**status, "spec": {"externalName": "nope"}}
        written = await patch(served.admin, f"{SVC}/s/status", both)
        assert written.json["status"] == status["status"]
        assert "externalName" not in written.json["spec"]
        back = await patch(served.admin, f"{SVC}/s", {"status": {"loadBalancer": None}})
        assert back.json["status"] == status["status"]
        shown = await served.admin.get(f"{SVC}/s/status")
        assert shown.json["status"] == status["status"]
        whole = written.json
        whole["status"] = {"loadBalancer": {}}
        del whole["metadata"]["resourceVersion"]
        put = await served.admin.ask("PUT", f"{SVC}/s/status", whole)
        assert put.json["status"] == {"loadBalancer": {}}
        assert (await served.admin.ask("DELETE", f"{SVC}/s/status")).code == 405


async def test_a_namespace_is_finalized() -> None:
    async with serving() as served:
        namespace = {"metadata": {"name": "n"}}
        made = (await served.admin.post("/api/v1/namespaces", namespace)).json
        assert made["spec"]["finalizers"] == ["kubernetes"]
        gone = await served.admin.ask("DELETE", "/api/v1/namespaces/n")
        assert gone.json["status"]["phase"] == "Terminating"
        kept = (await served.admin.get("/api/v1/namespaces/n")).json
        kept["spec"] = {"finalizers": []}
        await served.admin.ask("PUT", "/api/v1/namespaces/n/finalize", kept)
        assert (await served.admin.get("/api/v1/namespaces/n")).code == 404
        assert (await served.admin.ask("PATCH", "/api/v1/namespaces/n/finalize", {})).code == 405


async def test_scale_is_read_and_written_as_a_scale() -> None:
    path = "/apis/apps/v1/namespaces/a/deployments"
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    async with serving() as served:
        made = await served.admin.post(path, {"metadata": {"name": "d"}, "spec": spec})
        assert made.code == 201, made.raw
        read = (await served.admin.get(f"{path}/d/scale")).json
        assert (read["apiVersion"], read["kind"]) == ("autoscaling/v1", "Scale")
        assert read["spec"] == {"replicas": 1}
        assert read["status"]["selector"] == "a=b"
        patched = await patch(served.admin, f"{path}/d/scale", {"spec": {"replicas": 3}})
        assert patched.json["spec"] == {"replicas": 3}
        shown = (await served.admin.get(f"{path}/d")).json
        assert (shown["spec"]["replicas"], shown["metadata"]["generation"]) == (3, 2)
        read["spec"]["replicas"] = 5
        stale = await served.admin.ask("PUT", f"{path}/d/scale", read)
        assert stale.code == 409
        del read["metadata"]["resourceVersion"]
        put = await served.admin.ask("PUT", f"{path}/d/scale", read)
        assert put.json["spec"] == {"replicas": 5}
        bad = await patch(served.admin, f"{path}/d/scale", {"spec": {"replicas": -1}})
        assert bad.code == 422
        odd = await patch(served.admin, f"{path}/d/scale", {"spec": {"replicas": "many"}})
        assert odd.code in (400, 422)


async def test_writers_at_the_same_time_all_get_through() -> None:
    async with serving() as served:
        await served.admin.post(CM, config_map("x"))
        bodies = [{"data": {f"k{n}": "v"}} for n in range(4)]
        replies = await asyncio.gather(*(patch(served.admin, f"{CM}/x", b) for b in bodies))
        assert [reply.code for reply in replies] == [200] * 4
        final = json.loads((await served.admin.get(f"{CM}/x")).raw)
        assert sorted(final["data"]) == ["k0", "k1", "k2", "k3"]

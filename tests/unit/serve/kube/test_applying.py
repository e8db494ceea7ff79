"""Server-side apply and the owners of fields over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.store.objects import Proposed, Verdict
from tests.support.rights import allow, authorizer, binding, role, user
from tests.unit.serve.kube.serving import Client, Reply, serving

CM = "/api/v1/namespaces/a/configmaps"
SVC = "/api/v1/namespaces/a/services"
DEPLOY = "/apis/apps/v1/namespaces/a/deployments"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


def config_map(name: str = "x", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(**container: object) -> dict[str, Any]:
    labels = {"app": "x"}
    pod = {"containers": [{"name": "main", "image": "one", **container}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


async def apply(client: Client, path: str, body: object, manager: str = "me", *more: str) -> Reply:
    query = "&".join((f"fieldManager={manager}", *more))
    return await client.ask("PATCH", f"{path}?{query}", body, content_type=APPLY)


def owners(reply: Reply) -> dict[str, Any]:
    """What each manager owns: `name operation subresource` -> fieldsV1."""
    listed = reply.json["metadata"].get("managedFields", [])
    return {
        " ".join(filter(None, (each["manager"], each["operation"], each.get("subresource")))): each[
            "fieldsV1"
        ]
        for each in listed
    }


# ------------------------------------------------------------------------- accounts of writes


async def test_every_write_says_who_owns_what() -> None:
    async with serving() as served:
        agent = {"User-Agent": "kubectl/v1.37.1 (linux/amd64) kubernetes/abc"}
        made = await served.admin.ask("POST", CM, config_map(a="1", b="1"), headers=agent)
        [entry] = made.json["metadata"]["managedFields"]
        assert entry.pop("time").endswith("Z")
        assert entry == {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
        }
        body = {"data": {"b": "2"}, "metadata": {"labels": {"l": "1"}}}
        path = f"{CM}/x?fieldManager=other"
        changed = await served.admin.ask("PATCH", path, body, content_type=MERGE)
        assert owners(changed) == {
            "kubectl Update": {"f:data": {".": {}, "f:a": {}}},
            "other Update": {
                "f:data": {"f:b": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }
        put = await served.admin.ask("PUT", f"{CM}/x?fieldManager=third", config_map(a="3"))
        assert owners(put) == {
            "kubectl Update": {"f:data": {}},
            "third Update": {"f:data": {"f:a": {}}},
        }


async def test_nameless_writers_are_unknown() -> None:
    async with serving() as served:
        made = await served.admin.ask("POST", CM, config_map(a="1"), headers={"User-Agent": "/"})
        assert list(owners(made)) == ["unknown Update"]
        long = await served.admin.ask(
            "POST", CM, config_map("y", a="1"), headers={"User-Agent": "ä" * 100 + "/1"}
        )
        [manager] = owners(long)
        assert len(manager.removesuffix(" Update").encode()) <= 128


async def test_status_and_scale_have_owners_of_their_own() -> None:
    async with serving() as served:
        await served.admin.post(f"{DEPLOY}?fieldManager=maker", deployment())
        status = {"status": {"replicas": 1}}
        path = f"{DEPLOY}/x/status?fieldManager=reporter"
        told = await served.admin.ask("PATCH", path, status, content_type=MERGE)
        assert owners(told)["reporter Update status"] == {"f:status": {"f:replicas": {}}}
        path = f"{DEPLOY}/x/scale?fieldManager=scaler"
        scaled = await served.admin.ask(
            "PATCH", path, {"spec": {"replicas": 5}}, content_type=MERGE
        )
        assert scaled.json["spec"] == {"replicas": 5}
        now = await served.admin.get(f"{DEPLOY}/x")
        assert owners(now)["scaler Update scale"] == {"f:spec": {"f:replicas": {}}}
        assert "f:replicas" not in owners(now)["maker Update"]["f:spec"]
        clash = await apply(served.admin, f"{DEPLOY}/x", deployment(), "me")
        assert clash.code == 409
        assert clash.json["message"] == (
            'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" '
            "using apps/v1: .spec.replicas"
        )


async def test_the_owners_can_be_rewritten_and_reset() -> None:
    async with serving() as served:
        made = await served.admin.post(f"{CM}?fieldManager=maker", config_map(a="1"))
        listed = made.json["metadata"]["managedFields"]
        moved = [{**listed[0], "manager": "heir", "operation": "Apply"}]
        revision = made.json["metadata"]["resourceVersion"]
        operations = [
            {"op": "replace", "path": "/metadata/managedFields", "value": moved},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": revision},
        ]
        path = f"{CM}/x?fieldManager=mover"
        reply = await served.admin.ask("PATCH", path, operations, content_type=JSON_PATCH)
        assert reply.json["metadata"]["managedFields"] == moved
        late = await served.admin.ask("PATCH", path, operations, content_type=JSON_PATCH)
        assert (late.code, late.json["reason"]) == (409, "Conflict")
        empty = [{"op": "replace", "path": "/metadata/managedFields", "value": []}]
        reply = await served.admin.ask("PATCH", path, empty, content_type=JSON_PATCH)
        assert list(owners(reply)) == ["heir Apply"]
        reset = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
        reply = await served.admin.ask("PATCH", path, reset, content_type=JSON_PATCH)
        assert "managedFields" not in reply.json["metadata"]
        body = {"data": {"b": "1"}}
        reply = await served.admin.ask("PATCH", path, body, content_type=MERGE)
        assert owners(reply) == {}
        reply = await apply(served.admin, f"{CM}/x", config_map(a="1"))
        assert list(owners(reply)) == ["me Apply", "before-first-apply Update"]


async def test_owners_that_make_no_sense_leave_the_old_ones() -> None:
    async with serving() as served:
        made = (await served.admin.post(f"{CM}?fieldManager=maker", config_map(a="1"))).json
        for listed in (
            [{"manager": "x", "operation": "Own"}],
            [{"manager": "x", "operation": "Update", "fieldsType": "FieldsV9"}],
            [{"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"k:": {}}}],
        ):
            made["metadata"]["managedFields"] = listed
            made["metadata"].pop("resourceVersion", None)
            reply = await served.admin.ask("PUT", f"{CM}/x", made)
            assert reply.code == 200, reply.raw
            assert list(owners(reply)) == ["maker Update"]


async def test_writers_that_forget_nothing_but_the_owners() -> None:
    async with serving() as served:
        await served.admin.post(f"{CM}?fieldManager=maker", config_map(a="1"))
        before = served.store.revision
        again = await served.admin.ask("PUT", f"{CM}/x?fieldManager=other", config_map(a="1"))
        assert list(owners(again)) == ["maker Update"]
        assert served.store.revision == before


# --------------------------------------------------------------------------------------- apply


async def test_apply_creates_and_then_changes() -> None:
    async with serving() as served:
        made = await apply(served.admin, f"{CM}/x", config_map(a="1", b="1"))
        assert (made.code, made.json["data"]) == (201, {"a": "1", "b": "1"})
        assert owners(made) == {"me Apply": {"f:data": {"f:a": {}, "f:b": {}}}}
        less = await apply(served.admin, f"{CM}/x", config_map(a="2"))
        assert (less.code, less.json["data"]) == (200, {"a": "2"})
        assert owners(less) == {"me Apply": {"f:data": {"f:a": {}}}}
        before = served.store.revision
        again = await apply(served.admin, f"{CM}/x", config_map(a="2"))
        assert again.json == less.json
        assert served.store.revision == before


async def test_yaml_and_json_say_the_same() -> None:
    async with serving() as served:
        text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '\\u00e4'}\n"
        made = await apply(served.admin, f"{CM}/x", text)
        assert made.json["data"] == {"a": "\\u00e4"}
        quick = json.dumps(config_map(a="\U0001f40d")).encode()
        assert b"\\ud83d" in quick
        assert (await apply(served.admin, f"{CM}/x", quick)).json["data"] == {"a": "\U0001f40d"}
        flow = b"{apiVersion: v1, kind: ConfigMap, data: {a: b}}"
        assert (await apply(served.admin, f"{CM}/x", flow)).json["data"] == {"a": "b"}


async def test_conflicts_name_every_manager_and_field() -> None:
    async with serving() as served:
        await served.admin.post(f"{CM}?fieldManager=other", config_map(a="1", b="1"))
        one = await apply(served.admin, f"{CM}/x", config_map(a="2", b="1"))
        assert (one.code, one.json["reason"]) == (409, "Conflict")
        assert one.json["message"] == (
            'Apply failed with 1 conflict: conflict with "other" using v1: .data.a'
        )
        assert one.json["details"] == {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "other" using v1',
                    "field": ".data.a",
                }
            ]
        }
        await apply(served.admin, f"{CM}/x", config_map(c="1"), "applier")
        more = await apply(served.admin, f"{CM}/x", config_map(a="2", b="2", c="2"))
        assert more.json["message"] == (
            'Apply failed with 3 conflicts: conflicts with "applier":\n- .data.c\n'
            'conflicts with "other" using v1:\n- .data.a\n- .data.b'
        )
        assert len(more.json["details"]["causes"]) == 3
        forced = await apply(served.admin, f"{CM}/x", config_map(a="2", c="2"), "me", "force=true")
        assert forced.json["data"] == {"a": "2", "b": "1", "c": "2"}
        assert owners(forced) == {
            "me Apply": {"f:data": {"f:a": {}, "f:c": {}}},
            "other Update": {"f:data": {".": {}, "f:b": {}}},
        }


async def test_paths_of_conflicts_name_items_by_key() -> None:
    async with serving() as served:
        ports = [{"containerPort": 80, "name": "http"}]
        made = await served.admin.post(f"{DEPLOY}?fieldManager=o", deployment(ports=ports))
        assert made.code == 201, made.raw
        ports = [{"containerPort": 80, "name": "web"}]
        mine = deployment(image="two", ports=ports)
        reply = await apply(served.admin, f"{DEPLOY}/x", mine)
        fields = [cause["field"] for cause in reply.json["details"]["causes"]]
        item = '.spec.template.spec.containers[name="main"]'
        assert fields == [f"{item}.image", f'{item}.ports[containerPort=80,protocol="TCP"].name']


async def test_equal_values_are_owned_together() -> None:
    async with serving() as served:
        await apply(served.admin, f"{CM}/x", config_map(a="1", b="1"), "one")
        both = await apply(served.admin, f"{CM}/x", config_map(a="1", c="1"), "two")
        assert both.json["data"] == {"a": "1", "b": "1", "c": "1"}
        nothing = {"apiVersion": "v1", "kind": "ConfigMap"}
        left = await apply(served.admin, f"{CM}/x", nothing, "one")
        assert left.json["data"] == {"a": "1", "c": "1"}
        assert list(owners(left)) == ["two Apply"]


@pytest.mark.parametrize(
    ("query", "body", "code", "said"),
    [
        ("", {}, 422, "fieldManager: Required value: is required for apply patch"),
        ("?fieldManager=" + "m" * 129, {}, 422, "fieldManager: Too long"),
        ("?fieldManager=me", [], 400, "mapping"),
        ("?fieldManager=me", b"{", 400, "YAML"),
        ("?fieldManager=me", {"apiVersion": "v1"}, 400, "kind"),
        ("?fieldManager=me", {"kind": "ConfigMap"}, 400, "apiVersion"),
        ("?fieldManager=me", {"apiVersion": "v2", "kind": "ConfigMap"}, 400, "API version"),
        ("?fieldManager=me", config_map("y"), 400, "does not match the name"),
        (
            "?fieldManager=me",
            {**config_map(), "metadata": {"name": "x", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        ("?fieldManager=me&fieldValidation=Strict", {**config_map(), "spec": 1}, 400, "spec"),
        ("?fieldManager=me", {**config_map(), "data": {"a": 1}}, 400, "data.a"),
        (
            "?fieldManager=me",
            {**config_map(), "metadata": {"finalizers": ["x/a", "x/a"]}},
            400,
            '.metadata.finalizers: duplicate entries for key [="x/a"]',
        ),
        (
            "?fieldManager=me",
            {**config_map(), "metadata": {"ownerReferences": [{"name": "a"}]}},
            400,
            ".metadata.ownerReferences: an item omits all of its key fields (uid)",
        ),
        (
            "?fieldManager=me",
            {**config_map(), "metadata": {"name": "x", "resourceVersion": "7"}},
            409,
            "there is no such object",
        ),
    ],
)
async def test_what_cannot_be_applied(query: str, body: object, code: int, said: str) -> None:
    async with serving() as served:
        reply = await served.admin.ask("PATCH", f"{CM}/x{query}", body, content_type=APPLY)
        assert reply.code == code, reply.raw
        assert said in reply.json["message"]
        assert served.store.revision == 0


async def test_unknown_fields_are_warned_of() -> None:
    async with serving() as served:
        reply = await apply(served.admin, f"{CM}/x", {**config_map(a="1"), "colour": "blue"})
        assert reply.warnings == ['299 - "unknown field \\"colour\\""']
        assert "colour" not in reply.json


async def test_a_revision_in_the_body_must_be_the_objects() -> None:
    async with serving() as served:
        made = await apply(served.admin, f"{CM}/x", config_map(a="1"))
        body = config_map(a="2")
        body["metadata"]["resourceVersion"] = made.json["metadata"]["resourceVersion"]
        assert (await apply(served.admin, f"{CM}/x", body)).code == 200
        body["data"] = {"a": "3"}
        late = await apply(served.admin, f"{CM}/x", body)
        assert (late.code, late.json["reason"]) == (409, "Conflict")
        assert "the object has been modified" in late.json["message"]


async def test_a_dry_run_writes_nothing() -> None:
    async with serving() as served:
        made = await apply(served.admin, f"{CM}/x", config_map(a="1"), "me", "dryRun=All")
        assert (made.code, served.store.revision) == (201, 0)
        await apply(served.admin, f"{CM}/x", config_map(a="1"))
        before = served.store.revision
        tried = await apply(served.admin, f"{CM}/x", config_map(a="2"), "me", "dryRun=All")
        assert tried.json["data"] == {"a": "2"}
        assert (await served.admin.get(f"{CM}/x")).json["data"] == {"a": "1"}
        assert served.store.revision == before


async def test_status_is_applied_apart() -> None:
    async with serving() as served:
        whole = {**deployment(), "status": {"replicas": 9}}
        made = await apply(served.admin, f"{DEPLOY}/x", whole)
        assert not made.json.get("status")
        assert "f:status" not in owners(made)["me Apply"]
        condition = {"type": "Available", "status": "True"}
        whole["status"] = {"conditions": [condition]}
        whole["spec"]["replicas"] = 7
        told = await apply(served.admin, f"{DEPLOY}/x/status", whole, "reporter")
        assert told.json["status"]["conditions"] == [condition]
        assert told.json["spec"]["replicas"] == 2
        key = 'k:{"type":"Available"}'
        assert owners(told)["reporter Apply status"] == {
            "f:status": {"f:conditions": {key: {".": {}, "f:status": {}, "f:type": {}}}}
        }
        missing = await apply(served.admin, f"{DEPLOY}/y/status", {**whole, "metadata": {}})
        assert missing.code == 404


async def test_a_scale_is_applied_too() -> None:
    async with serving() as served:
        await apply(served.admin, f"{DEPLOY}/x", deployment())
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 4}}
        clash = await apply(served.admin, f"{DEPLOY}/x/scale", scale, "scaler")
        assert clash.json["details"]["causes"][0]["field"] == ".spec.replicas"
        taken = await apply(served.admin, f"{DEPLOY}/x/scale", scale, "scaler", "force=true")
        assert (taken.json["kind"], taken.json["spec"]) == ("Scale", {"replicas": 4})
        now = await served.admin.get(f"{DEPLOY}/x")
        assert owners(now)["scaler Apply scale"] == {"f:spec": {"f:replicas": {}}}


async def test_creation_asks_for_the_right_to_create() -> None:
    rights = authorizer(
        role("patch", allow("patch", "configmaps")),
        role("make", allow("create", "configmaps")),
        binding("patch", "ClusterRole/patch", user("patcher"), user("maker")),
        binding("make", "ClusterRole/make", user("maker")),
    )
    async with serving(authorizer=rights) as served:
        patcher = await served.client("patcher")
        refused = await apply(patcher, f"{CM}/x", config_map(a="1"))
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
        assert 'cannot create resource "configmaps"' in refused.json["message"]
        maker = await served.client("maker")
        assert (await apply(maker, f"{CM}/x", config_map(a="1"))).code == 201
        assert (await apply(patcher, f"{CM}/x", config_map(a="1"))).code == 200


async def test_an_apply_that_is_overtaken_is_done_again() -> None:
    class Meddler:
        """Creates the object while an apply is about to, once."""

        client: Client | None = None

        async def admit(self, proposed: Proposed) -> Verdict:
            if self.client is not None:
                client, self.client = self.client, None
                path = f"{CM}?fieldManager=other"
                assert (await client.post(path, config_map(b="1"))).code == 201
            return Verdict(None)

    meddler = Meddler()
    async with serving(admissions=(meddler,)) as served:
        meddler.client = served.admin
        reply = await apply(served.admin, f"{CM}/x", config_map(a="1"))
        assert (reply.code, reply.json["data"]) == (200, {"a": "1", "b": "1"})
        assert sorted(owners(reply)) == ["me Apply", "other Update"]

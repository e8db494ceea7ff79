"""A kind with several versions: any may be written, any may be read, one is stored."""

from __future__ import annotations

import msgspec

from isthmus.model.crd import kind_of
from isthmus.model.kind import Column, Document, Kind, Scale, Version
from isthmus.model.meta import Object
from isthmus.model.registry import Registry
from isthmus.model.schema import Schema, Type
from isthmus.model.shapes import INT32, STRING, resource, structure
from tests.unit.model.crd.widgets import definition, version
from tests.unit.serve.kube.serving import serving

OLD, NEW = "/apis/example.org/v1beta1", "/apis/example.org/v1"


NAMES = {"v1": "hue", "v1beta1": "colour"}


def rename(document: Document, present: str, wanted: str) -> Document:
    spec = dict(document["spec"])
    spec[NAMES[wanted]] = spec.pop(NAMES[present])
    return {**document, "spec": spec}


GADGET = Kind(
    group="example.org",
    name="Gadget",
    plural="gadgets",
    singular="gadget",
    stored="v1",
    versions=(
        Version(
            "v1",
            resource(structure({"hue": STRING, "replicas": INT32})),
            columns=(Column("Hue", lambda document, _: document["spec"]["hue"]),),
        ),
        Version(
            "v1beta1",
            resource(structure({"colour": STRING, "replicas": INT32})),
            deprecated="use v1",
        ),
        Version("v0", Schema(type=Type.OBJECT), served=False),
    ),
    view=Object,
    convert=rename,
    scale=Scale(),
    field_selectors={"spec.hue": "spec.hue"},
)
KINDS = Registry([GADGET])


def gadgets(base: str) -> str:
    return f"{base}/namespaces/a/gadgets"


async def test_what_is_written_in_one_version_is_read_in_the_other() -> None:
    async with serving(kinds=KINDS) as served:
        body = {"metadata": {"name": "g"}, "spec": {"colour": "blue"}}
        made = await served.admin.post(gadgets(OLD), body)
        assert made.code == 201, made.raw
        assert made.json["apiVersion"] == "example.org/v1beta1"
        assert made.json["spec"] == {"colour": "blue"}
        assert made.warnings == ['299 - "example.org/v1beta1 Gadget is deprecated: use v1"']
        new = (await served.admin.get(f"{gadgets(NEW)}/g")).json
        assert (new["apiVersion"], new["spec"]) == ("example.org/v1", {"hue": "blue"})
        stored = await served.store.get(GADGET.key("a", "g"))
        assert stored is not None
        assert msgspec.json.decode(stored.value)["spec"] == {"hue": "blue"}
        listed = (await served.admin.get(gadgets(OLD))).json
        assert listed["apiVersion"] == "example.org/v1beta1"
        assert listed["items"][0]["spec"] == {"colour": "blue"}
        assert listed["items"][0]["metadata"]["resourceVersion"]


async def test_patches_are_taken_in_their_version() -> None:
    async with serving(kinds=KINDS) as served:
        body = {"metadata": {"name": "g"}, "spec": {"hue": "blue"}}
        await served.admin.post(gadgets(NEW), body)
        patch = {"spec": {"colour": "green"}}
        kind = "application/merge-patch+json"
        path = f"{gadgets(OLD)}/g"
        done = await served.admin.ask("PATCH", path, patch, content_type=kind)
        assert done.json["spec"] == {"colour": "green"}
        whole = done.json
        whole["spec"]["colour"] = "red"
        put = await served.admin.ask("PUT", path, whole)
        assert put.json["spec"] == {"colour": "red"}
        assert (await served.admin.get(f"{gadgets(NEW)}/g")).json["spec"] == {"hue": "red"}


async def test_watches_convert_too() -> None:
    async with serving(kinds=KINDS) as served:
        body = {"metadata": {"name": "g"}, "spec": {"hue": "blue"}}
        await served.admin.post(gadgets(NEW), body)
        path = f"{gadgets(OLD)}?watch=true&fieldSelector=spec.hue%3Dblue"
        async with served.admin.watch(path) as lines:
            assert (await lines.next())["object"]["spec"] == {"colour": "blue"}


async def test_custom_kinds_take_no_strategic_patch_and_no_protobuf() -> None:
    async with serving(kinds=KINDS) as served:
        body = {"metadata": {"name": "g"}, "spec": {"hue": "blue"}}
        await served.admin.post(gadgets(NEW), body)
        kind = "application/strategic-merge-patch+json"
        reply = await served.admin.ask("PATCH", f"{gadgets(NEW)}/g", {}, content_type=kind)
        assert reply.code == 415
        assert "application/merge-patch+json" in reply.json["message"]
        binary = "application/vnd.kubernetes.protobuf"
        reply = await served.admin.ask("POST", gadgets(NEW), b"k8s\x00", content_type=binary)
        assert reply.code == 415


async def test_a_version_that_is_not_served_is_not_there() -> None:
    async with serving(kinds=KINDS) as served:
        assert (await served.admin.get("/apis/example.org/v0/gadgets")).code == 404
        body = {"apiVersion": "example.org/v1beta1", "metadata": {"name": "g"}, "spec": {}}
        mixed = await served.admin.post(gadgets(NEW), body)
        assert mixed.code == 400


async def test_custom_kinds_scale() -> None:
    async with serving(kinds=KINDS) as served:
        body = {"metadata": {"name": "g"}, "spec": {"hue": "blue", "replicas": 1}}
        await served.admin.post(gadgets(NEW), body)
        path = f"{gadgets(OLD)}/g/scale"
        kind = "application/merge-patch+json"
        patch = {"spec": {"replicas": 4}}
        done = await served.admin.ask("PATCH", path, patch, content_type=kind)
        assert done.json["spec"] == {"replicas": 4}
        shown = (await served.admin.get(f"{gadgets(NEW)}/g")).json
        assert shown["spec"] == {"hue": "blue", "replicas": 4}


def limited(name: str, most: int, *, storage: bool) -> Document:
    rule = {"rule": f"self.number < {most}", "message": f"below {most}"}
    spec = {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "x-kubernetes-validations": [rule],
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": storage, "schema": schema}


LIMITED = kind_of(
    {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge"},
        "versions": [limited("v1", 10, storage=True), limited("v1beta1", 5, storage=False)],
    },
    "uid",
)


async def test_the_rules_are_those_of_the_version_that_was_asked() -> None:
    async with serving(kinds=Registry([LIMITED])) as served:
        new, old = (f"{base}/namespaces/a/gauges" for base in (NEW, OLD))

        def gauge(name: str, number: int) -> Document:
            return {"metadata": {"name": name}, "spec": {"number": number}}

        assert (await served.admin.post(new, gauge("g", 7))).code == 201
        refused = await served.admin.post(old, gauge("h", 7))
        assert refused.code == 422
        assert "below 5" in refused.json["message"]
        assert (await served.admin.post(old, gauge("i", 4))).code == 201
        for number, code in ((8, 422), (3, 200)):
            patch = {"spec": {"number": number}}
            for media in ("application/merge-patch+json", "application/apply-patch+yaml"):
                applied = {"apiVersion": "example.org/v1beta1", "kind": "Gauge"} | patch
                path = f"{old}/g?fieldManager=m" + "&force=true" * ("apply" in media)
                body = applied if "apply" in media else patch
                done = await served.admin.ask("PATCH", path, body, content_type=media)
                assert done.code == code, done.raw
        named = {"apiVersion": "example.org/v1beta1", "kind": "Gauge"}
        path = f"{old}/new?fieldManager=m"
        media = "application/apply-patch+yaml"
        born = {**named, "spec": {"number": 9}}
        assert (await served.admin.ask("PATCH", path, born, content_type=media)).code == 422


async def test_subresources_and_selectable_fields_are_those_of_the_version() -> None:
    plain = version("v1", subresources={}, selectableFields=[])
    beta = version("v1beta1", storage=False)
    kind = kind_of(definition(plain, beta)["spec"], "u1")
    base = "/apis/shop.example.com"
    async with serving(kinds=Registry([kind])) as served:
        get, ask = served.admin.get, served.admin.ask
        v1, v1beta1 = (f"{base}/{name}/namespaces/shop/widgets" for name in ("v1", "v1beta1"))
        body = {"metadata": {"name": "a"}, "spec": {"color": "red"}, "status": {"note": "kept"}}
        assert (await served.admin.post(v1, body)).json["status"] == {"note": "kept"}
        for name in ("status", "scale"):
            assert (await get(f"{v1}/a/{name}")).code == 404
            assert (await get(f"{v1beta1}/a/{name}")).code == 200
        patch = {"status": {"note": "new"}, "spec": {"replicas": 5}}
        merge = "application/merge-patch+json"
        held = (await ask("PATCH", f"{v1beta1}/a", patch, content_type=merge)).json
        assert (held["status"], held["spec"]["replicas"]) == ({"note": "kept"}, 5)
        assert held["metadata"]["generation"] == 2
        held = (await ask("PATCH", f"{v1beta1}/a/status", patch, content_type=merge)).json
        assert (held["status"], held["metadata"]["generation"]) == ({"note": "new"}, 2)
        # Without the subresource a status is a field like any other.
        patch = {"status": {"note": "newer"}}
        held = (await ask("PATCH", f"{v1}/a", patch, content_type=merge)).json
        assert (held["status"], held["metadata"]["generation"]) == ({"note": "newer"}, 3)
        scale = (await get(f"{v1beta1}/a/scale")).json
        assert scale["spec"] == {"replicas": 5}
        selected = "?fieldSelector=spec.color%3Dred"
        assert len((await get(v1beta1 + selected)).json["items"]) == 1
        refused = await get(v1 + selected)
        assert (refused.code, refused.json["message"]) == (
            400, "field label not supported: spec.color",
        )  # fmt: skip
        rows = {name: (await get(f"{base}/{name}")).json["resources"] for name in ("v1", "v1beta1")}
        names = {name: [row["name"] for row in found] for name, found in rows.items()}
        assert names == {
            "v1": ["widgets"], "v1beta1": ["widgets", "widgets/scale", "widgets/status"],
        }  # fmt: skip
        asked = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        (group,) = (await get("/apis", Accept=asked)).json["items"]
        told = {each["version"]: each["resources"][0] for each in group["versions"]}
        assert "subresources" not in told["v1"]
        below = [each["subresource"] for each in told["v1beta1"]["subresources"]]
        assert below == ["scale", "status"]

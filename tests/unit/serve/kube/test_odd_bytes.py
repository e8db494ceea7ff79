"""What others wrote into the store: objects that are not in our form, and what is no object."""

from __future__ import annotations

import json

from isthmus.model.key import Key
from isthmus.store.contract import Put
from tests.unit.serve.kube.serving import serving

BASE = "/api/v1/namespaces/a/configmaps"
META = {"namespace": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def written(name: str, *, indent: int | None = None, last: bool = False) -> bytes:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    meta = {"metadata": {"name": name, "labels": {"x": "y"}, **META}}
    data = {"data": {"metadata": '{"metadata":{'}, "odd": {"metadata": {"name": "inner"}}}
    whole = {**head, **data, **meta} if last else {**head, **meta, **data}
    return json.dumps(whole, indent=indent).encode()


ODD = {
    "plain": written("plain"),
    "pretty": written("pretty", indent=2),
    "last": written("last", last=True),
    "bare": b'{"kind":"ConfigMap"}',
    "nothing": b'{"kind":"ConfigMap","metadata":null}',
}
BROKEN = {"text": b"not JSON", "list": b"[]", "cut": written("cut")[:40], "empty": b""}


async def test_lists_and_watches_show_what_can_be_shown() -> None:
    async with serving() as served:
        get = served.admin.get
        for name, raw in (ODD | BROKEN).items():
            await served.store.txn([], [Put(Key("configmaps", "a", name), raw)])
        listed = await get(BASE)
        assert listed.code == 200
        items = listed.json["items"]
        assert len(items) == len(ODD)
        named = [item["metadata"].get("name", "") for item in items]
        assert sorted(filter(None, named)) == ["last", "plain", "pretty"]
        assert all(item["metadata"]["resourceVersion"].isdecimal() for item in items)
        assert all(b"\n" not in listed.raw for _ in items)
        assert len((await get(BASE, **TABLE)).json["rows"]) == len(ODD)
        chosen = (await get(f"{BASE}?labelSelector=x%3Dy")).json["items"]
        assert len(chosen) == 3
        async with served.admin.watch(f"{BASE}?watch=1&timeoutSeconds=1") as lines:
            seen = [name for _, name in await lines.take(len(ODD))]
            assert sorted(filter(None, seen)) == ["last", "plain", "pretty"]
        for name in ODD:
            assert (await get(f"{BASE}/{name}")).code == 200
        for name in BROKEN:
            refused = await get(f"{BASE}/{name}")
            assert refused.code == 503
            assert "cannot be read" in refused.json["message"]

from __future__ import annotations

from typing import Any

from isthmus.model.kind import Document
from isthmus.model.registry import BUILT_IN
from isthmus.serve.kube.apply import Writing, tracked
from isthmus.serve.kube.apply.managers import MOST_UPDATERS
from tests.unit.serve.kube.apply.things import LATER, owners, thing, writes


def then(
    live: Document, manager: str, version: str = "v1", subresource: str = "", **spec: Any  # noqa: ANN401 - JSON
) -> Document:  # fmt: skip
    wanted = thing(version, **spec)
    wanted["metadata"]["managedFields"] = live["metadata"].get("managedFields")
    if subresource:
        wanted["status"] = wanted.pop("spec")
    return tracked(writes(manager, version, now=LATER, subresource=subresource), live, wanted)


def test_the_maker_of_a_custom_object_owns_all_of_it() -> None:
    made = tracked(writes("maker"), None, thing(text="a"))
    assert owners(made) == {"maker Update": {"f:spec": {".": {}, "f:text": {}}}}


def test_the_maker_of_a_built_in_object_does_not_own_what_is_always_there() -> None:
    kind = BUILT_IN.by_resource("", "services")
    assert kind is not None
    who = Writing(kind, kind.versions[0], "maker", LATER)
    document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x", "uid": "1", "labels": {"a": "b"}},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
        "status": {"loadBalancer": {}},
    }
    assert owners(tracked(who, None, document))["maker Update"] == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
            "f:selector": {},
        },
    }


def test_what_is_changed_changes_hands_and_what_is_gone_is_nobodys() -> None:
    made = tracked(writes("maker"), None, thing(text="a", number=1, tags=["x"]))
    changed = then(made, "other", text="b", tags=["x", "y"])
    assert owners(changed) == {
        "maker Update": {"f:spec": {".": {}, "f:tags": {".": {}, 'v:"x"': {}}}},
        "other Update": {"f:spec": {"f:tags": {'v:"y"': {}}, "f:text": {}}},
    }
    times = {each["manager"]: each["time"] for each in changed["metadata"]["managedFields"]}
    assert times == {"maker": "2026-01-02T03:04:05Z", "other": LATER}


def test_only_who_gains_something_is_dated() -> None:
    made = tracked(writes("maker"), None, thing(text="a", number=1))
    less = then(made, "maker", text="a")
    assert owners(less) == {"maker Update": {"f:spec": {".": {}, "f:text": {}}}}
    assert less["metadata"]["managedFields"][0]["time"] == "2026-01-02T03:04:05Z"


def test_a_write_that_changes_nothing_leaves_the_accounts_as_they_are() -> None:
    made = tracked(writes("maker"), None, thing(text="a"))
    listed = made["metadata"]["managedFields"]
    assert then(made, "other", text="a")["metadata"]["managedFields"] is listed
    forgetful = tracked(writes("other"), made, thing(text="a"))
    assert forgetful["metadata"]["managedFields"] is listed


def test_status_is_written_apart() -> None:
    made = tracked(writes("maker"), None, {**thing(text="a"), "status": {"phase": "x"}})
    assert owners(made) == {"maker Update": {"f:spec": {".": {}, "f:text": {}}}}
    told = then(made, "maker", subresource="status", phase="y")
    assert [each.get("subresource") for each in told["metadata"]["managedFields"]] == [
        None, "status",
    ]  # fmt: skip
    fields = told["metadata"]["managedFields"][1]["fieldsV1"]
    assert fields == {"f:status": {"f:phase": {}}}


def test_managers_of_other_versions_count_and_those_of_none_go() -> None:
    made = tracked(writes("maker", "v2"), None, thing("v2", words="a", number=1))
    listed = made["metadata"]["managedFields"]
    listed.append({**listed[0], "manager": "lost", "apiVersion": "example.io/v0"})
    listed.append({**listed[0], "manager": "strange", "apiVersion": "other.io/v1"})
    live = {**thing(text="a", number=1), "metadata": made["metadata"]}
    changed = then(live, "other", text="b", number=1)
    assert owners(changed) == {
        "maker Update": {"f:spec": {".": {}, "f:number": {}}},
        "other Update": {"f:spec": {"f:text": {}}},
    }


def test_many_managers_are_few() -> None:
    live = tracked(writes("maker"), None, thing(text="a"))
    for number in range(MOST_UPDATERS * 3):
        live = then(live, f"m{number}", text="a", labels={str(n): "x" for n in range(number + 1)})
    held = owners(live)
    assert len(held) == MOST_UPDATERS
    assert "f:0" in held["ancient-changes Update"]["f:spec"]["f:labels"]


def test_a_status_writer_cannot_rewrite_the_accounts() -> None:
    made = tracked(writes("maker"), None, {**thing(text="a"), "status": {"phase": "x"}})
    entry = made["metadata"]["managedFields"][0]
    cases: list[list[Document]] = [[{**entry, "manager": "thief"}], [{}]]
    for listed in cases:
        wanted = {**made, "status": {"phase": "y"}}
        wanted["metadata"] = {**made["metadata"], "managedFields": listed}
        told = tracked(writes("reporter", subresource="status"), made, wanted)
        assert list(owners(told)) == ["maker Update", "reporter Update"]
